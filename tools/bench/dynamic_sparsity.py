"""Measure models whose sparsity depends on data beside what PyTorch counts, or beside the dense model: simulated FLOPs and cycles.

    python tools/bench/dynamic_sparsity.py
    python tools/bench/dynamic_sparsity.py autoencoders experts --machine ideal

`autoencoders` compares a top-k autoencoder with one of the same size whose activation is a relu, in three numbers of latents. `experts`
compares mixtures of experts with the FLOPs that routing needs, and with the same experts, all of them for every token. `attention`
compares FlexAttention with the blocks of its mask that are not empty. `transforms` counts what Fourier transforms multiply, and compares
models that have them with PyTorch's FLOPs, a transform of n numbers as 5 n log2 n. Each run is checked against PyTorch. A figure that is
above its bar is marked, and exit status 1 says so.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fuseflow as ff


@dataclass(frozen=True)
class Figure:
    """A measured figure, and the bar that it must not be above; infinite if it has none."""

    name: str
    value: float
    bar: float = math.inf


@dataclass(frozen=True)
class Work:
    """The cycles, the FLOPs and the multiplications of a simulation."""

    cycles: int
    flops: int
    multiplications: int


def simulated(module: nn.Module, *inputs: Tensor, machine: str) -> Work:
    """Compile a module with the default cut, and run and check it."""
    run = ff.compile(module.eval(), inputs, machine=machine).run()
    multiplications = sum(region.times * region.simulation.operators.get("mul", 0) for region in run.regions)
    return Work(run.cycles, run.flops, multiplications)


class Autoencoder(nn.Module):
    """A sparse autoencoder. It keeps the `kept` greatest activations of a row, or all that are positive if `kept` is 0."""

    def __init__(self, width: int, latents: int, kept: int) -> None:
        super().__init__()
        self.encoder, self.kept = nn.Linear(width, latents), kept
        self.decoder = nn.Parameter(torch.randn(latents, width) / latents**0.5)

    def forward(self, x: Tensor) -> Tensor:
        activations = F.relu(self.encoder(x))
        if self.kept:
            values, indices = activations.topk(self.kept, dim=-1)
            activations = torch.zeros_like(activations).scatter(-1, indices, values)
        return activations @ self.decoder


def autoencoders(machine: str) -> Iterator[Figure]:
    width, kept, batch = 512, 32, 16
    before = 0
    for latents in (4_096, 8_192, 16_384):
        x = torch.randn(batch, width)
        top, relu = (simulated(Autoencoder(width, latents, k), x, machine=machine) for k in (kept, 0))
        yield Figure(f"top-k autoencoder, {latents} latents: cycles", top.cycles)
        yield Figure("  over those with a relu", top.cycles / relu.cycles, 1.3)
        if before:
            yield Figure("  over those of half as many latents", top.cycles / before, 2.1)
        before = top.cycles


class Experts(nn.Module):
    """A mixture of experts with a gated linear unit each: `chosen` of them for each token, or all of them, weighted."""

    def __init__(self, experts: int, chosen: int, width: int, inner: int) -> None:
        super().__init__()
        self.gate, self.chosen = nn.Linear(width, experts, bias=False), chosen
        self.up, self.gated = (nn.Parameter(0.3 * torch.randn(experts, width, inner)) for _ in range(2))
        self.down = nn.Parameter(0.3 * torch.randn(experts, inner, width))

    def forward(self, x: Tensor) -> Tensor:
        scores = F.softmax(self.gate(x), dim=-1)
        if self.chosen == scores.shape[-1]:
            hidden = F.silu(torch.einsum("td,edm->tem", x, self.gated)) * torch.einsum("td,edm->tem", x, self.up)
            return torch.einsum("te,tem,emd->td", scores, hidden, self.down)
        weights, experts = scores.topk(self.chosen, dim=-1)
        order = torch.argsort(experts.view(-1), stable=True)
        counts = torch.histc(experts.view(-1).float(), bins=scores.shape[-1], min=0, max=scores.shape[-1] - 1)
        rows, ends = order // self.chosen, torch.cumsum(counts, 0, dtype=torch.int32)
        routed = x[rows]
        hidden = F.silu(F.grouped_mm(routed, self.gated, offs=ends)) * F.grouped_mm(routed, self.up, offs=ends)
        out = F.grouped_mm(hidden, self.down, offs=ends) * weights.view(-1)[order, None]
        return torch.zeros_like(x).index_add(0, rows, out)


def experts(machine: str) -> Iterator[Figure]:
    tokens, width, inner = 16, 32, 48
    for count, chosen in ((8, 2), (64, 8)):
        x = torch.randn(tokens, width)
        routed, dense = (simulated(Experts(count, k, width, inner), x, machine=machine) for k in (chosen, count))
        counted = 2 * tokens * width * count + 6 * tokens * chosen * width * inner
        yield Figure(f"top {chosen} of {count} experts: cycles", routed.cycles)
        yield Figure("  FLOPs over PyTorch's", routed.flops / counted, 1.15)
        yield Figure("  cycles over those of all experts", routed.cycles / dense.cycles, 1.0)


def attention(machine: str) -> Iterator[Figure]:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    length, window, block, depth = 1_024, 128, 32, 64

    class Window(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return flex_attention(q, k, v, block_mask=mask)

    def near(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (q >= k) & (q - k <= window)

    mask = create_block_mask(near, None, None, length, length, device="cpu", BLOCK_SIZE=block)
    q, k, v = (torch.randn(1, 1, length, depth) for _ in range(3))
    work = simulated(Window(), q, k, v, machine=machine)
    blocks = int(mask.kv_num_blocks.sum()) + (0 if mask.full_kv_num_blocks is None else int(mask.full_kv_num_blocks.sum()))
    yield Figure(f"FlexAttention, length {length}, window {window}: cycles", work.cycles)
    yield Figure("  FLOPs over two products in each block that is not empty", work.flops / (blocks * block**2 * 4 * depth), 1.1)


class Transform(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.fft.fft(x)
        return y.real, y.imag


class Convolution(nn.Module):
    """A convolution with a kernel as long as its input, by transforms of twice the length, as S4D has it."""

    def __init__(self, channels: int, length: int) -> None:
        super().__init__()
        self.kernel, self.length = nn.Parameter(torch.randn(channels, length)), length

    def forward(self, x: Tensor) -> Tensor:
        n = 2 * self.length
        return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(self.kernel, n), n)[..., : self.length]


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: a product of matrices for each of the lowest `modes`."""

    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.real, self.imag = (nn.Parameter(torch.randn(channels, channels, modes)) for _ in range(2))
        self.modes = modes

    def forward(self, x: Tensor) -> Tensor:
        low = torch.fft.rfft(x)[..., : self.modes]
        mixed = torch.einsum("bix,iox->box", low, torch.complex(self.real, self.imag))
        out = torch.zeros(*x.shape[:-1], x.shape[-1] // 2 + 1, dtype=torch.cfloat)
        out[..., : self.modes] = mixed
        return torch.fft.irfft(out, x.shape[-1])


def counted_transform(n: int) -> float:
    """The FLOPs of a transform of n complex numbers, as FFTW counts them."""
    return 5 * n * math.log2(n)


def transforms(machine: str) -> Iterator[Figure]:
    n, channels, length, modes = 1_024, 4, 64, 8
    transform = simulated(Transform(), torch.randn(n), machine=machine)
    yield Figure(f"transform of {n}: cycles", transform.cycles)
    yield Figure("  multiplications over n log2 n", transform.multiplications / (n * math.log2(n)), 3.0)
    x = torch.randn(channels, length)
    convolution = simulated(Convolution(channels, length), x, machine=machine)
    counted = channels * (2 * counted_transform(2 * length) / 2 + 6 * (length + 1))
    yield Figure("convolution by transforms: FLOPs over PyTorch's", convolution.flops / counted, 2.0)
    spectral = simulated(Spectral(channels, modes), x[None], machine=machine)
    counted = channels * 2 * counted_transform(length) / 2 + 8 * channels**2 * modes
    yield Figure("Fourier neural operator: FLOPs over PyTorch's", spectral.flops / counted, 2.0)


GROUPS: dict[str, Callable[[str], Iterator[Figure]]] = {
    "autoencoders": autoencoders,
    "experts": experts,
    "attention": attention,
    "transforms": transforms,
}


@click.command(help=__doc__)
@click.argument("groups", nargs=-1, type=click.Choice(tuple(GROUPS)))
@click.option("--machine", default="rda", show_default=True)
def main(groups: tuple[str, ...], machine: str) -> None:
    missed = False
    for name in groups or GROUPS:
        torch.manual_seed(0)
        for figure in GROUPS[name](machine):
            bad = figure.value > figure.bar
            missed |= bad
            bar = "" if math.isinf(figure.bar) else f"  (at most {figure.bar:g}{': missed' if bad else ''})"
            click.echo(f"{figure.name:58} {figure.value:>12,.6g}{bar}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
