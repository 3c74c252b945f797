"""Two-layer GraphSAGE with the mean aggregator (Hamilton, Ying and Leskovec, NeurIPS 2017) for node classification."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SageLayer(nn.Module):
    """x @ own + (mean of the neighbours' x) @ neighbours + bias. The features may be sparse (layer 1) or dense (layer 2)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.empty(inputs, outputs))
        self.neighbours = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        nn.init.xavier_uniform_(self.own)
        nn.init.xavier_uniform_(self.neighbours)
        nn.init.uniform_(self.bias, -0.1, 0.1)

    def forward(self, mean: Tensor, x: Tensor) -> Tensor:
        return x @ self.own + (mean @ x) @ self.neighbours + self.bias


class GraphSAGE(nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layer1 = SageLayer(features, hidden)
        self.layer2 = SageLayer(hidden, classes)

    def forward(self, mean: Tensor, x: Tensor) -> Tensor:
        return self.layer2(mean, F.relu(self.layer1(mean, x)))


def mean_over_neighbours(adjacency: Tensor) -> Tensor:
    """The matrix, CSR, whose product with features is the mean over each node's neighbours, itself left out."""
    rows, columns = adjacency.to_sparse_coo().indices()
    rows, columns = rows[rows != columns], columns[rows != columns]
    nodes = adjacency.shape[0]
    degrees = torch.bincount(rows, minlength=nodes)
    mean = torch.sparse_coo_tensor(torch.stack((rows, columns)), 1 / degrees[rows].float(), (nodes, nodes))
    return mean.coalesce().to_sparse_csr()


def build(data, *, small: bool = False, hidden: int | None = None):
    """The model and its inputs: the matrix of means over neighbours and the features, both CSR."""
    model = GraphSAGE(data.features.shape[1], hidden or (4 if small else 16), data.classes)
    return model.eval(), (mean_over_neighbours(data.adjacency), data.features)


loss, optimizer = "cross_entropy", "adamw:lr=0.01"  # of `--train`; the target are the labels of the data
