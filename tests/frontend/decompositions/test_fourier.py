"""Factored Fourier transforms: the numbers that PyTorch gives, of any length, and about n log n multiplications."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions import fourier
from fuseflow.frontend.decompositions.complex_pairs import separate_complex
from fuseflow.frontend.decompositions.fourier import factors
from fuseflow.frontend.foreign_errors import quiet
from fuseflow.frontend.positions.selections import Selections
from fuseflow.frontend.trace.dependence import dependences
from fuseflow.frontend.trace.model_call import model_call
from fuseflow.frontend.trace.tracing import trace

fft = torch.fft
GENERATOR = torch.Generator().manual_seed(7)
LENGTHS = [*range(1, 65), 96, 97, 100, 127, 243, 1000, 1001, 1009, 1024]
NORMS = ("backward", "ortho", "forward")


def transforms(n: int, dim: int, norm: str) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, ...]]:
    """Return a function that takes n real numbers, n complex ones, and the first half of n complex ones, along a dimension."""

    def run(x: Tensor, z: Tensor, half: Tensor) -> tuple[Tensor, ...]:
        results = [fft.fft(x, n, dim, norm), fft.fft(z, n, dim, norm), fft.ifft(z, n, dim, norm)]
        results += [fft.rfft(x, n, dim, norm), fft.ihfft(x, n, dim, norm)]
        real = fft.irfft(half, n, dim, norm), fft.hfft(half, n, dim, norm)
        return *real, *[part for y in results for part in (y.real, y.imag)]

    return run


def separated(model: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return what a model computes after its complex numbers became pairs."""
    with quiet(), torch.no_grad():
        traced = trace(model_call(model, inputs, None))
        assert not separate_complex(Selections(traced, dependences(traced)))
        results: tuple[Tensor, ...] = traced.graph_module(*[tensor.to_dense() for tensor in traced.tensors.values()])
    return results


def numbers(n: int, beside: int, given: int) -> tuple[Tensor, Tensor, Tensor]:
    x, y = torch.randn(2, given, beside, generator=GENERATOR, dtype=torch.float64)
    return x, torch.complex(x, y), torch.complex(y, x)[: n // 2 + 1]


@pytest.mark.parametrize("saving", [0, fourier._SAVING], ids=["factored", "cheapest"])
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length_gives_what_pytorch_gives(n: int, saving: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "_SAVING", saving)
    inputs, model = numbers(n, 2, n), transforms(n, 0, NORMS[n % 3])
    for got, expected in zip(separated(model, inputs), model(*inputs), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("n", "given"), [(64, 32), (64, 21), (64, 1), (63, 40), (64, 80), (63, 80), (128, 33)])
def test_missing_numbers_are_zeros_and_further_ones_are_left_out(n: int, given: int) -> None:
    inputs, model = numbers(given, 2, given), transforms(n, 0, "backward")
    for got, expected in zip(separated(model, inputs), model(*inputs), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("n", [7, 12, 96, 101, 1001, 1024, 2310])
def test_the_factors_of_a_length_make_it(n: int) -> None:
    assert math.prod(factors(n)) == n
    assert all(r == 4 or all(r % d for d in range(2, r)) for r in factors(n))


class Filtered(nn.Module):
    """A dimension in the middle, transformed forth and back in 32 bits."""

    def forward(self, x: Tensor) -> Tensor:
        frequencies = fft.rfft(x, dim=1)
        y: Tensor = fft.irfft(frequencies * torch.linspace(1, 0, frequencies.shape[1])[:, None], n=x.shape[1], dim=1)
        return y


@pytest.mark.parametrize("fuse", ["none", "best", "full"])
def test_a_factored_transform_compiles_and_runs(fuse: str) -> None:
    x = torch.randn(2, 64, 2, generator=GENERATOR)
    result = ff.compile(Filtered(), (x,), schedule=ff.Schedule.fuse(fuse)).run()
    (output,) = result.outputs.values()
    np.testing.assert_allclose(np.asarray(output, dtype=np.float64), Filtered()(x).numpy(), atol=2e-6)


@pytest.mark.parametrize(("real", "bound"), [(True, 6.1), (False, 11.5)])
def test_a_transform_of_1024_takes_n_log_n_operations(real: bool, bound: float) -> None:
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = fft.rfft(x) if real else fft.fft(torch.complex(x, y))
        return z.real, z.imag

    inputs = tuple(torch.randn(2, 1024, generator=GENERATOR))
    result = ff.compile(model, inputs, schedule=ff.Schedule.fuse("none")).run()
    assert result.stats["flops"] < bound * 1024 * 10
    for output, expected in zip(result.outputs.values(), model(*inputs), strict=True):
        np.testing.assert_allclose(np.asarray(output, dtype=np.float64), expected.numpy(), atol=1e-4)


def test_a_large_prime_length_is_refused() -> None:
    with pytest.raises(FrontendError, match="large prime factors"):
        ff.compile(lambda x: fft.rfft(x).abs(), (torch.zeros(2 * 5003),))
