"""Two-layer graph convolutional network (Kipf and Welling, ICLR 2017) for node classification."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HIDDEN = 16


class GraphConvolution(nn.Module):
    """adj @ (x @ weight) + bias. The features may be sparse (layer 1) or dense (layer 2)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        nn.init.xavier_uniform_(self.weight)
        nn.init.uniform_(self.bias, -0.1, 0.1)

    def forward(self, adj: Tensor, x: Tensor) -> Tensor:
        support = x @ self.weight if x.layout == torch.strided else torch.sparse.mm(x, self.weight)
        return torch.sparse.mm(adj, support) + self.bias


class GCN(nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layer1 = GraphConvolution(features, hidden)
        self.layer2 = GraphConvolution(hidden, classes)

    def forward(self, adj: Tensor, x: Tensor) -> Tensor:
        x = F.relu(self.layer1(adj, x))
        return F.log_softmax(self.layer2(adj, x), dim=1)


def build(data, *, small: bool = False, hidden: int | None = None):
    """The model and its inputs: the normalized adjacency and the features, both CSR."""
    model = GCN(data.features.shape[1], hidden or (4 if small else HIDDEN), data.classes)
    return model.eval(), (data.adjacency, data.features)


loss, optimizer = "nll", "sgd:lr=0.2,momentum=0.9"  # of `--train`; the target are the labels of the data
