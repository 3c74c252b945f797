"""The encoder of BERT (Devlin et al., NAACL 2019), between the embedding and the head, with the names of Hugging Face.

Its weights are random: what it is for is the shapes.
"""

import torch
from torch import Tensor, nn


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.split(projected) for projected in (self.query(x), self.key(x), self.value(x)))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2)

    def split(self, x: Tensor) -> Tensor:
        """[batch, sequence, width] to [batch, heads, sequence, width of a head]."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.self = SelfAttention(width, heads)
        self.output = Output(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.self(x), x)


class Output(nn.Module):
    """A linear layer around which the input goes, and a norm behind both."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(inputs, width), nn.LayerNorm(width)

    def forward(self, x: Tensor, around: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x) + around)


class Intermediate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.activation = nn.Linear(width, 4 * width), nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.dense(x))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention, self.intermediate, self.output = Attention(width, heads), Intermediate(width), Output(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(width, heads) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layer:
            x = layer(x)
        return x


def build(*, small: bool = False, layers: int = 0, sequence: int = 0):
    """The encoder and a sequence of random words. It has 12 layers of 12 heads and 768 features; `small` takes two of two and 16."""
    width, heads = (16, 2) if small else (768, 12)
    layers, sequence = layers or (2 if small else 12), sequence or (8 if small else 128)
    if layers < 1 or sequence < 1:
        raise ValueError(f"{layers} layers and {sequence} words: there is at least one of each")
    return Encoder(layers, width, heads).eval(), (torch.randn(1, sequence, width),)
