"""Layers of plain PyTorch, as `torch.nn` ships them and as users write them."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from zoo_registry import Brought, zoo

TOKENS, WIDTH = 6, 16
model = partial(zoo.model, "plain")


def tokens(batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, TOKENS, WIDTH)


class Call(nn.Module):
    """A function of PyTorch as a module."""

    def __init__(self, function, **options) -> None:
        super().__init__()
        self.function = function
        self.options = options

    def forward(self, *args):
        return self.function(*args, **self.options)


@model()
def lstm() -> Brought:
    return nn.LSTM(8, 8, batch_first=True), (torch.randn(2, 4, 8),)


@model()
def lstm_bidirectional() -> Brought:
    return nn.LSTM(4, 4, num_layers=2, bidirectional=True), (torch.randn(3, 1, 4),)


@model()
def lstm_cell() -> Brought:
    return nn.LSTMCell(8, 8), (torch.randn(2, 8), (torch.randn(2, 8), torch.randn(2, 8)))


@model()
def lstm_classifier() -> Brought:
    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 8)
            self.lstm = nn.LSTM(8, 8, batch_first=True)
            self.fc = nn.Linear(8, 3)

        def forward(self, ids):
            _, (h, _) = self.lstm(self.embedding(ids))
            return self.fc(h[-1])

    return Classifier(), (torch.randint(20, (2, 4)),)


@model()
def gru() -> Brought:
    return nn.GRU(8, 8), (torch.randn(4, 2, 8),)


@model(fast=True)
def gru_cell() -> Brought:
    return nn.GRUCell(8, 8), (torch.randn(2, 8), torch.randn(2, 8))


@model()
def rnn() -> Brought:
    return nn.RNN(8, 8), (torch.randn(4, 2, 8),)


@model()
def gru_cell_by_hand() -> Brought:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.x2h, self.h2h = nn.Linear(8, 24), nn.Linear(8, 24)

        def forward(self, x, h):
            i_r, i_z, i_n = self.x2h(x).chunk(3, 1)
            h_r, h_z, h_n = self.h2h(h).chunk(3, 1)
            r, z = torch.sigmoid(i_r + h_r), torch.sigmoid(i_z + h_z)
            return (1 - z) * torch.tanh(i_n + r * h_n) + z * h

    return Cell(), (torch.randn(2, 8), torch.randn(2, 8))


@model(fast=True)
def embedding() -> Brought:
    return nn.Embedding(20, 8), (torch.randint(20, (2, 5)),)


@model()
def embedding_bag_mean() -> Brought:
    return nn.EmbeddingBag(20, 8, mode="mean"), (torch.randint(20, (3, 4)),)


@model()
def text_classifier() -> Brought:
    class TextCnn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 8)
            self.convs = nn.ModuleList(nn.Conv1d(8, 4, k) for k in (2, 3))
            self.fc = nn.Linear(8, 3)

        def forward(self, ids):
            x = self.embedding(ids).transpose(1, 2)
            return self.fc(torch.cat([F.relu(conv(x)).max(dim=2).values for conv in self.convs], 1))

    return TextCnn(), (torch.randint(20, (2, 8)),)


@model(fast=True)
def conv2d() -> Brought:
    return nn.Conv2d(3, 4, 3, padding=1), (torch.randn(1, 3, 6, 6),)


@model()
def conv2d_pointwise() -> Brought:
    return nn.Conv2d(4, 8, 1), (torch.randn(1, 4, 5, 5),)


@model()
def conv2d_patches() -> Brought:
    return nn.Conv2d(3, 8, 4, stride=4), (torch.randn(1, 3, 8, 8),)


@model()
def conv2d_dilated() -> Brought:
    return nn.Conv2d(2, 3, 3, dilation=2), (torch.randn(1, 2, 8, 8),)


@model()
def conv2d_depthwise() -> Brought:
    return nn.Conv2d(4, 4, 3, padding=1, groups=4), (torch.randn(1, 4, 6, 6),)


@model()
def conv1d_causal() -> Brought:
    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(4, 4, 3, dilation=2)

        def forward(self, x):
            return F.relu(self.conv(F.pad(x, (4, 0))))

    return Causal(), (torch.randn(1, 4, 10),)


@model()
def conv3d() -> Brought:
    return nn.Conv3d(1, 2, 2), (torch.randn(1, 1, 4, 4, 4),)


@model()
def unfold() -> Brought:
    return nn.Unfold(3, padding=1), (torch.randn(1, 2, 5, 5),)


@model()
def pixel_shuffle() -> Brought:
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.PixelShuffle(2)), (torch.randn(1, 1, 4, 4),)


@model()
def upsample_nearest() -> Brought:
    return nn.Upsample(scale_factor=2), (torch.randn(1, 2, 3, 3),)


@model(fast=True)
def layer_norm() -> Brought:
    return nn.LayerNorm(WIDTH), (tokens(),)


@model()
def rms_norm() -> Brought:
    return nn.RMSNorm(WIDTH), (tokens(),)


@model()
def group_norm() -> Brought:
    return nn.GroupNorm(2, 4), (torch.randn(2, 4, 5),)


@model()
def instance_norm() -> Brought:
    return nn.InstanceNorm2d(3), (torch.randn(1, 3, 4, 4),)


@model()
def batch_norm() -> Brought:
    return nn.BatchNorm1d(8), (torch.randn(4, 8),)


@model()
def gated_linear_unit() -> Brought:
    return nn.Sequential(nn.Linear(8, 16), nn.GLU()), (torch.randn(4, 8),)


@model(fast=True)
def swiglu() -> Brought:
    class SwiGlu(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w1, self.w2, self.w3 = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 16)

        def forward(self, x):
            return self.w2(F.silu(self.w1(x)) * self.w3(x))

    return SwiGlu(), (torch.randn(4, 8),)


@model()
def bilinear() -> Brought:
    return nn.Bilinear(4, 5, 3), (torch.randn(2, 4), torch.randn(2, 5))


@model(fast=True)
def sparse_adjacency_layer() -> Brought:
    class GraphLayer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 4)

        def forward(self, adj, x):
            return F.relu(torch.spmm(adj, self.linear(x)))

    return GraphLayer(), ((torch.rand(12, 12) < 0.2).float().to_sparse_coo(), torch.randn(12, 8))


@model()
def linear_bfloat16() -> Brought:
    return nn.Linear(8, 4).to(torch.bfloat16), (torch.randn(3, 8).to(torch.bfloat16),)


@model()
def linear_int8_input() -> Brought:
    return Call(lambda q, w, s: (q.float() * s) @ w), (
        torch.randint(-128, 127, (3, 8), dtype=torch.int8),
        torch.randn(8, 4),
        torch.rand(1),
    )


@model()
def lora_linear() -> Brought:
    class Lora(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(8, 8)
            self.A, self.B = nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.randn(8, 2))

        def forward(self, x):
            return self.base(x) + x @ self.A.T @ self.B.T * 0.5

    return Lora(), (torch.randn(4, 8),)


@model()
def cross_entropy_loss() -> Brought:
    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 5)

        def forward(self, x, y):
            return F.cross_entropy(self.linear(x), y)

    return Loss(), (torch.randn(4, 8), torch.randint(5, (4,)))


@model()
def nearest_prototypes() -> Brought:
    return Call(lambda x, p: torch.cdist(x, p).softmax(-1)), (torch.randn(4, 8), torch.randn(3, 8))


@model()
def sorted_scores() -> Brought:
    return Call(lambda x: torch.sort(x, dim=-1, descending=True).values), (torch.randn(3, 8),)


@model()
def dictionary_of_outputs() -> Brought:
    class TwoHeads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk, self.boxes, self.scores = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 3)

        def forward(self, inputs):
            h = F.relu(self.trunk(inputs["features"]))
            return {"boxes": self.boxes(h), "scores": self.scores(h).softmax(-1)}

    return TwoHeads(), ({"features": torch.randn(4, 8)},)
