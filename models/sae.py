"""Sparse autoencoder: two linear layers whose weights are pruned, on a batch of images.

The default is the size whose published cycles are stored for comparison: 28 x 28 pixels, 256 hidden features.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DATA = "images:side=28,count=1"
SMALL_DATA = "images:side=6,count=3"
FORMATS = {"images": "csr"}


class SparseLinear(nn.Module):
    """x @ weight.T + bias, where every output keeps the same share of its weights; `weight` is a CSR matrix."""

    def __init__(self, inputs: int, outputs: int, density: float) -> None:
        super().__init__()
        kept = round(min(1.0, max(0.0, density)) * inputs)
        columns = torch.rand(outputs, inputs).argsort(dim=1)[:, :kept].sort(dim=1).values
        values = torch.empty(outputs, kept).uniform_(-1, 1) / max(1, kept) ** 0.5
        rows = torch.arange(outputs + 1) * kept
        self.weight = nn.Parameter(torch.sparse_csr_tensor(rows, columns.flatten(), values.flatten(), (outputs, inputs)))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-0.1, 0.1))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class SparseAutoencoder(nn.Module):
    def __init__(self, pixels: int, hidden: int, density: float) -> None:
        super().__init__()
        self.encoder = SparseLinear(pixels, hidden, density)
        self.decoder = SparseLinear(hidden, pixels, density)

    def forward(self, images: Tensor) -> Tensor:
        return self.decoder(F.relu(self.encoder(images)))


def build(data, *, small: bool = False, hidden: int | None = None, density: float = 0.4):
    """The model, a batch of flat images, and the target of training, which are the images again. `density` is the share of the weights that
    is kept."""
    images = data.features.to_dense()
    return SparseAutoencoder(images.shape[1], hidden or (12 if small else 256), density).eval(), (images,), images


loss, optimizer = "mse", "sgd:lr=0.1,momentum=0.9"  # of `--train`; PyTorch updates weights in CSR by SGD alone
