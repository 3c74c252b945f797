"""GPT-3 small (Brown et al., NeurIPS 2020) with the attention mask of BigBird (Zaheer et al., NeurIPS 2020).

It begins behind the embedding and ends at the last decoder: neither the gather of the embedding nor the product with the whole
vocabulary takes part in fusion.
"""

from typing import Literal

import torch
from torch import Tensor, nn

DATA = "bigbird:block=64"
SMALL_DATA = "bigbird:block=4,length=32,features=8"
FORMATS = {"mask": "csr"}


class MaskedAttention(nn.Module):
    """softmax(q @ k.T / sqrt(d)) @ v for every head, over the places that the mask keeps."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(mask == 0, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.attention = MaskedAttention()
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (self.split(projected) for projected in (self.query(x), self.key(x), self.value(x)))
        return self.out(self.attention(q, k, v, mask).transpose(1, 2).flatten(2))

    def split(self, x: Tensor) -> Tensor:
        """[batch, sequence, width] to [batch, heads, sequence, width of a head]."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


class Decoder(nn.Module):
    def __init__(self, width: int, heads: int, activation: str) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = SelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.ffn1 = nn.Linear(width, 4 * width)
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.ffn2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), mask)
        return x + self.ffn2(self.activation(self.ffn1(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, mask: Tensor, decoders: int, width: int, heads: int, activation: str) -> None:
        super().__init__()
        self.register_buffer("mask", mask)
        self.h = nn.ModuleList(  # as GPT-2 calls them
            Decoder(width, heads, activation) for _ in range(decoders)
        )

    def forward(self, x: Tensor) -> Tensor:
        for decoder in self.h:
            x = decoder(x, self.mask)
        return x


def build(
    data,
    *,
    small: bool = False,
    part: Literal["model", "decoder", "attention"] = "model",
    decoders: int | None = None,
    heads: int | None = None,
    activation: Literal["gelu", "relu"] = "gelu",
):
    """All decoders (`part="decoder"`: one of them) on a sequence; `part="attention"`: on queries, keys and values of every head.

    There are 12 decoders with 12 heads; `small` takes two with two. The target of training are, at each position, the features of the next.
    """
    mask, features = data.raw.to_dense(), data.features.to_dense()
    sequence, width = features.shape
    decoders, heads = decoders or (2 if small else 12), heads or (2 if small else 12)
    if decoders < 1 or heads < 1 or width % heads:
        raise ValueError(
            f"{decoders} decoders of {heads} heads: there is at least one of each, and {width} features are shared evenly"
        )
    if part == "attention":
        q, k, v = (torch.randn(1, heads, sequence, width // heads) for _ in range(3))
        return MaskedAttention().eval(), (q, k, v, mask)
    count = 1 if part == "decoder" else decoders
    return GPT(mask, count, width, heads, activation).eval(), (features.unsqueeze(0),), features.roll(-1, 0).unsqueeze(0)


loss, optimizer = "mse", "adamw:lr=0.001"  # of `--train`
