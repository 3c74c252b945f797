"""Layers of recent models, as their authors write them, are imported and give what PyTorch gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn
from torch.nn import functional as F

LAYERS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {}
"""Functions of weights and inputs, with their numbers."""


def layer(*shapes: tuple[int, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def registered(function: Callable[..., Any]) -> Callable[..., Any]:
        generator = torch.Generator().manual_seed(len(LAYERS))
        LAYERS[function.__name__] = function, tuple(torch.randn(shape, generator=generator) for shape in shapes)
        return function

    return registered


def segment_sums(x: Tensor) -> Tensor:
    length = x.size(-1)
    before = torch.tril(torch.ones(length, length, dtype=torch.bool), diagonal=-1)
    sums = torch.cumsum(x[..., None].expand(*x.shape, length).masked_fill(~before, 0), dim=-2)
    return sums.masked_fill(~torch.tril(torch.ones(length, length, dtype=torch.bool)), -torch.inf)


@layer((1, 8, 2, 3), (1, 8, 2), (1, 8, 2, 4), (1, 8, 2, 4))
def state_space_dual(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Two chunks of a recurrence as products of matrices, with states that pass from chunk to chunk: Mamba-2."""
    x, b, c = (t.reshape(1, 2, 4, *t.shape[2:]) for t in (x, b, c))
    a = -F.softplus(a).reshape(1, 2, 4, 2).permute(0, 3, 1, 2)
    sums = torch.cumsum(a, -1)
    within = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, torch.exp(segment_sums(a)), x)
    states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, torch.exp(sums[..., -1:] - sums), x)
    states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
    decay = torch.exp(segment_sums(F.pad(sums[..., -1], (1, 0))))
    passed = torch.einsum("bhzc,bchpn->bzhpn", decay, states)[:, :-1]
    return (within + torch.einsum("bclhn,bchpn,bhcl->bclhp", c, passed, torch.exp(sums))).reshape(1, 8, 2, 3)


@layer((2, 4, 3), (2, 4, 3), (2, 4, 3), (2, 4), (2, 4))
def gated_delta_rule(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, gate: Tensor) -> Tensor:
    state, out, k = torch.zeros(2, 3, 3), [], F.normalize(k, dim=-1)
    for t in range(q.shape[1]):
        state = state * F.logsigmoid(gate[:, t]).exp()[:, None, None]
        change = (v[:, t] - (state * k[:, t, :, None]).sum(-2)) * beta[:, t, None].sigmoid()
        state = state + k[:, t, :, None] * change[:, None, :]
        out.append((state * q[:, t, :, None]).sum(-2))
    return torch.stack(out, 1)


@layer((4, 3), (4, 3), (4, 3), (4,), (4,))
def exponential_gates(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    """The matrix memory of an xLSTM, whose gates are kept in range by a running maximum."""
    memory, norm, largest, out = torch.zeros(3, 3), torch.zeros(3), torch.tensor(-1e9), []
    for t in range(4):
        forget = F.logsigmoid(f[t]) + largest
        largest = torch.maximum(forget, i[t])
        kept, new = torch.exp(forget - largest), torch.exp(i[t] - largest)
        memory, norm = kept * memory + new * torch.outer(k[t], v[t]), kept * norm + new * k[t]
        out.append(q[t] @ memory / torch.maximum((q[t] @ norm).abs(), torch.exp(-largest)))
    return torch.stack(out)


@layer((1, 2, 8), (8, 3), (3, 2), (2,))
def implicit_filter(x: Tensor, times: Tensor, weight: Tensor, decay: Tensor) -> Tensor:
    """A long convolution whose filter a small network gives: Hyena."""
    filters = torch.sin(times) @ weight * torch.exp(-torch.linspace(0, 1, 8)[:, None] * decay.abs())
    return torch.fft.irfft(torch.fft.rfft(x, n=16) * torch.fft.rfft(filters.t(), n=16), n=16)[..., :8] * x


@layer((5, 4), (3, 4), (3, 4, 8))
def splines(x: Tensor, base: Tensor, weight: Tensor) -> Tensor:
    """Learned functions on edges, as sums of B-splines: a Kolmogorov-Arnold network."""
    grid, x = torch.arange(-3, 9) * 0.4 - 1.0, torch.tanh(x).unsqueeze(-1)
    bases = ((x >= grid[:-1]) & (x < grid[1:])).to(x.dtype)
    for k in range(1, 4):
        rising = (x - grid[: -(k + 1)]) / (grid[k:-1] - grid[: -(k + 1)]) * bases[..., :-1]
        bases = rising + (grid[k + 1 :] - x) / (grid[k + 1 :] - grid[1:-k]) * bases[..., 1:]
    return F.linear(F.silu(x.squeeze(-1)), base) + F.linear(bases.flatten(1), weight.flatten(1))


@layer((3, 8))
def top_p_filter(x: Tensor) -> Tensor:
    ordered, index = torch.sort(x, descending=True, dim=-1)
    removed = torch.cumsum(F.softmax(ordered, -1), -1) > 0.8
    removed = torch.cat([torch.zeros_like(removed[..., :1]), removed[..., :-1]], -1)
    return F.softmax(x.masked_fill(torch.zeros_like(removed).scatter(-1, index, removed), -torch.inf), -1)


@layer((3, 6))
def sparsemax(x: Tensor) -> Tensor:
    ordered, counts = torch.sort(x, -1, descending=True).values, torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    sums = ordered.cumsum(-1)
    support = (1 + counts * ordered > sums).sum(-1, keepdim=True)
    return torch.clamp(x - (sums.gather(-1, support - 1) - 1) / support, min=0)


@layer((2, 5), (2, 5, 3))
def soft_order(scores: Tensor, values: Tensor) -> Tensor:
    ordered = scores.sort(descending=True, dim=1).values.unsqueeze(-1)
    return (-(ordered - scores.unsqueeze(1)).abs() / 0.5).softmax(-1) @ values


@layer((5, 4), (6, 4))
def vector_quantizer(x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest codes, with a gradient that goes straight through, the loss, and how many codes are in use."""
    nearest = (x.pow(2).sum(1, keepdim=True) - 2 * x @ codes.t() + codes.pow(2).sum(1)).argmin(1)
    quantized = F.embedding(nearest, codes)
    share = F.one_hot(nearest, 6).float().mean(0)
    loss = F.mse_loss(quantized.detach(), x) + 0.25 * F.mse_loss(quantized, x.detach())
    return x + (quantized - x).detach(), loss, torch.exp(-(share * torch.log(share + 1e-10)).sum())


@layer((6, 3))
def balanced_router(scores: Tensor) -> Tensor:
    """Rows and columns are scaled by turns until the columns stay as they are."""
    cost = torch.exp(scores)
    rows, columns, error = torch.ones(6), torch.ones(3), torch.tensor(1.0)
    while error > 1e-2:
        rows = 1 / (6 * (columns * cost).sum(1) + 1e-8)
        previous, columns = columns, 1 / (3 * (rows[:, None] * cost).sum(0) + 1e-8)
        error = (previous - columns).abs().mean()
    return columns * cost * rows[:, None]


@layer((2, 5, 4))
def rotary_embedding(q: Tensor) -> Tensor:
    """Pairs of numbers are turned as complex ones, by an angle for each position."""
    angles = torch.outer(torch.arange(5).float(), 10000 ** (-torch.arange(0, 4, 2) / 4))
    turned = torch.view_as_complex(q.reshape(2, 5, 2, 2)) * torch.polar(torch.ones(5, 2), angles)
    return torch.view_as_real(turned).flatten(-2)


@layer((6, 4), (4, 3), (3, 4, 2), (3, 2, 5), (4, 5))
def adapters_by_token(x: Tensor, router: Tensor, down: Tensor, up: Tensor, weight: Tensor) -> Tensor:
    """The two best updates of low rank for each token."""
    gates = F.softmax(x @ router, -1)
    best, chosen = gates.topk(2, -1)
    gates = torch.zeros_like(gates).scatter_(-1, chosen, best / best.sum(-1, keepdim=True))
    return x @ weight + torch.einsum("ter,ero,te->to", torch.einsum("td,edr->ter", x, down), up, gates)


@layer((6, 3), (11, 4))
def hashed_embedding(x: Tensor, table: Tensor) -> Tensor:
    return table[((x * 10).floor().long() * 31 + 7) % 11].sum(-2)


@layer((1, 6, 4), (4, 8), (4, 8), (4, 4))
def differential_attention(x: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    """The difference of two softmaxes."""
    (q, other_q), (k, other_k) = (x @ wq).chunk(2, -1), (x @ wk).chunk(2, -1)
    scores, others = q @ k.transpose(-1, -2) / math.sqrt(4), other_q @ other_k.transpose(-1, -2) / math.sqrt(4)
    return (F.softmax(scores, -1) - 0.3 * F.softmax(others, -1)) @ (x @ wv)


class Layer(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_what_pytorch_gives(name: str) -> None:
    function, tensors = LAYERS[name]
    for inputs in (tensors, tuple(t.flip(0) * 0.7 for t in tensors)):
        for compiled in compiled_at(Layer(function), inputs, "none", "full"):
            result = compiled.run()
            assert result.check is not None and result.check.passed, compiled.schedule
