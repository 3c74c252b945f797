"""Products with numbers of 8 bits and less, with one scale or with scales of blocks, as quantized checkpoints are run without a kernel."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from zoo_registry import Brought, zoo

ROWS, WIDTH, OUT = 4, 64, 12
E4M3_MAX, E5M2_MAX, E2M1_MAX = 448.0, 57344.0, 6.0
model = partial(zoo.model, "dynamic")


def scaled_to(x: torch.Tensor, dtype: torch.dtype, scale: torch.Tensor) -> torch.Tensor:
    limit = torch.finfo(dtype).max
    return (x / scale).clamp(-limit, limit).to(dtype)


@model(fast=True)
def float8_linear() -> Brought:
    class Float8Linear(nn.Module):
        """A stored e4m3 weight with a scale for each row, and an input that is scaled by its largest magnitude, as torchao has it."""

        def __init__(self) -> None:
            super().__init__()
            weight = torch.randn(OUT, WIDTH)
            scale = weight.abs().amax(dim=1, keepdim=True) / E4M3_MAX
            self.register_buffer("weight", scaled_to(weight, torch.float8_e4m3fn, scale))
            self.register_buffer("weight_scale", scale)

        def forward(self, x):
            scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / E4M3_MAX
            x8 = scaled_to(x, torch.float8_e4m3fn, scale)
            return (x8.float() @ self.weight.float().t()) * scale * self.weight_scale.t()

    return Float8Linear(), (torch.randn(ROWS, WIDTH),)


@model()
def float8_key_value_cache() -> Brought:
    class Cached(nn.Module):
        """Attention of one new token to a cache in e5m2, into which its own key and value go."""

        def forward(self, q, k, v, k_cache, v_cache):
            keys = torch.cat([k_cache, k.to(torch.float8_e5m2)], dim=-2).to(q.dtype)
            values = torch.cat([v_cache, v.to(torch.float8_e5m2)], dim=-2).to(q.dtype)
            return F.scaled_dot_product_attention(q, keys, values)

    caches = torch.randn(2, 1, 2, 7, 8).to(torch.float8_e5m2)
    return Cached(), (*torch.randn(3, 1, 2, 1, 8), *caches)


@model()
def mx_linear() -> Brought:
    class MxLinear(nn.Module):
        """Blocks of 32 elements in e4m3 that share a power of two, in the weight and, made for each call, in the input."""

        def __init__(self) -> None:
            super().__init__()
            weight, exponent = self.quantized(torch.randn(OUT, WIDTH))
            self.register_buffer("weight", weight)
            self.register_buffer("exponent", exponent)

        def quantized(self, x):
            blocks = x.unflatten(-1, (-1, 32))
            exponent = torch.floor(torch.log2(blocks.abs().amax(-1, keepdim=True).clamp(min=2.0**-126))) - 8
            return scaled_to(blocks, torch.float8_e4m3fn, torch.exp2(exponent)), exponent

        def forward(self, x):
            elements, exponent = self.quantized(x)
            x = (elements.float() * torch.exp2(exponent)).flatten(-2)
            weight = (self.weight.float() * torch.exp2(self.exponent)).flatten(-2)
            return x @ weight.t()

    return MxLinear(), (torch.randn(ROWS, WIDTH),)


@model()
def nvfp4_linear() -> Brought:
    class Nvfp4Linear(nn.Module):
        """A weight of 4-bit floats, two in a byte, with an e4m3 scale for every 16 of them and one scale for all."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("values", torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]))
            blocks = torch.randn(OUT, WIDTH).unflatten(-1, (-1, 16))
            largest = blocks.abs().amax(-1, keepdim=True)
            whole = largest.max() / (E4M3_MAX * E2M1_MAX)
            scale = (largest / E2M1_MAX / whole).to(torch.float8_e4m3fn)
            scaled = (blocks / (scale.float() * whole)).flatten(-2)
            codes = (scaled.abs()[..., None] - self.values).abs().argmin(-1) + 8 * (scaled < 0)
            self.register_buffer("packed", (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8))
            self.register_buffer("scale", scale.squeeze(-1))
            self.register_buffer("whole", whole)

        def forward(self, x):
            codes = torch.stack([self.packed & 0xF, self.packed >> 4], dim=-1).flatten(-2).to(torch.int64)
            table = torch.cat([self.values, -self.values])
            blocks = table[codes].unflatten(-1, (-1, 16)) * self.scale.float().unsqueeze(-1) * self.whole
            return F.linear(x, blocks.flatten(-2))

    return Nvfp4Linear(), (torch.randn(ROWS, WIDTH),)
