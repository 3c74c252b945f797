"""The two-layer graph convolutional network of PyTorch Geometric, on a sparse adjacency; needs `pip install torch-geometric`."""

import torch.nn.functional as F
from torch import Tensor, nn

try:
    from torch_geometric.nn import GCNConv
except ImportError:
    raise ImportError("this model is made of PyTorch Geometric's layers: pip install torch-geometric") from None


class GCN(nn.Module):
    """`GCNConv` without its own normalization: the adjacency is normalized already."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.conv1 = GCNConv(features, hidden, normalize=False)
        self.conv2 = GCNConv(hidden, classes, normalize=False)

    def forward(self, x: Tensor, adj: Tensor) -> Tensor:
        x = F.relu(self.conv1(x, adj))
        return F.log_softmax(self.conv2(x, adj), dim=1)


def build(data, *, small: bool = False, hidden: int | None = None):
    """The model and its inputs: the features, dense as the library's layers want them, and the normalized adjacency, CSR."""
    model = GCN(data.features.shape[1], hidden or (4 if small else 16), data.classes)
    return model.eval(), (data.features.to_dense(), data.adjacency)
