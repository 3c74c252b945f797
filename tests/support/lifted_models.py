"""Models for tests of `fuseflow.frontend.model_propagation`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from lifted import exported
from torch import Tensor, nn

from fuseflow.frontend import load_model
from fuseflow.frontend.model_propagation.export import ExportedModule

MODELS = Path(__file__).resolve().parents[2] / "models"


@dataclass(frozen=True, eq=False)
class MobileNet:
    """A MobileNet with an image, and its graph, which is the same for all weights."""

    model: nn.Module
    inputs: tuple[Any, ...]
    graph: ExportedModule


def mobilenet(small: bool = True, side: int = 16, shifted: bool = False, pairs: int = 13) -> MobileNet:
    return _mobilenet(small, side, shifted, pairs)


@cache
def _mobilenet(small: bool, side: int, shifted: bool, pairs: int) -> MobileNet:
    options = {"small": small, "side": side, "shifted": shifted, "pairs": pairs}
    loaded = load_model(MODELS / "mobilenet.py", options=options)
    assert isinstance(loaded.module, nn.Module) and isinstance(loaded.inputs, tuple)
    return MobileNet(loaded.module, loaded.inputs, exported(loaded.module, loaded.inputs))


class Residual(nn.Module):
    """Convolutions with batch norms around which the input goes, as in a ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), shifted_norm(8)
        self.conv1, self.norm1 = nn.Conv2d(8, 8, 3, padding=1, bias=False), shifted_norm(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, padding=1), shifted_norm(8)
        self.head = nn.Linear(8, 4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.relu(self.norm(self.stem(x))), 2)
        x = self.relu(x + self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x))))))
        return self.head(x.mean((2, 3)))


class Encoder(nn.Module):
    """A BERT in small: embeddings, two layers of attention and of features, and a pooled first word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16, padding_idx=0), nn.Parameter(torch.randn(6, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pooler = nn.Linear(16, 16)

    def forward(self, ids: Tensor, padding: Tensor) -> Tensor:
        x = self.layers(self.words(ids) + self.places, src_key_padding_mask=padding)
        return torch.tanh(self.pooler(x[:, 0]))


class Causal(nn.Module):
    """Attention with a mask that the model makes, added to the scores or written into them, and a weight that is used twice."""

    def __init__(self, added: bool = False) -> None:
        super().__init__()
        self.added = added
        self.embed = nn.Linear(8, 8, bias=False)
        self.qkv = nn.Linear(8, 24)
        self.head = nn.Linear(8, 8, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        q, k, v = self.qkv(x).chunk(3, -1)
        allowed = torch.ones(5, 5).tril().bool()
        scores = q @ k.transpose(-1, -2) / 8**0.5
        hidden = torch.zeros(5, 5).masked_fill(~allowed, -torch.inf)
        scores = scores + hidden if self.added else scores.masked_fill(~allowed, -torch.inf)
        return self.head(x + scores.softmax(-1) @ v)


def shifted_norm(channels: int) -> nn.Module:
    """A batch norm whose shifts have both signs, so that some constants are 0 behind a ReLU."""
    norm = nn.BatchNorm2d(channels)
    for tensor in (norm.bias, norm.running_mean):
        nn.init.normal_(tensor)
    for tensor in (norm.weight, norm.running_var):
        nn.init.uniform_(tensor, 0.5, 2)
    return norm
