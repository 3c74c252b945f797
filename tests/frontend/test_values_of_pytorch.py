"""Values are those of PyTorch where a rounding decides, where signs, zeros and infinities meet, and where NaN is ordered, however a model
is cut into regions."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.errors import FrontendError

CUTS = ("none", "layerwise", "full")
ENDS = ("none", "full")
"""A single operator is a layer: these cut it into all its statements, and not at all."""
GRID = (-inf, -1.5, -0.1, -0.0, 0.0, 0.1, 0.3, 1.0, 5.0, inf, nan)
V = torch.tensor([GRID])
X, Y = V.t().expand(11, 11).contiguous(), V.expand(11, 11).contiguous()
NUMBERS = torch.tensor([[-5.0, -1.5, -0.3, -0.1, 0.1, 0.3, 0.7, 1.0, 1.5, 5.0]]).expand(10, 10).contiguous()
ROWS = torch.tensor([
    [1.0, nan, 3.0, -2.0], [nan, nan, 0.0, 1.0], [inf, -inf, 2.0, nan], [-inf, -inf, -inf, -inf], [inf, inf, 1.0, 0.0],
    [5.0, 3.0, 4.0, 1.0], [nan, nan, nan, nan], [-inf, 5.0, -inf, 2.0],
])  # fmt: skip
I = torch.tensor([[7, -7, 6, -6, 0, 1, -1, 2**25 + 1]]).expand(6, 8).contiguous()
J = torch.tensor([[3], [-3], [2], [-2], [1], [-7]]).expand(6, 8).contiguous()
BOUNDARIES = torch.tensor([-1.5, 0.0, 0.3, 1.0])

Case = tuple[Callable[..., Any], tuple[Tensor, ...]]


def values(model: Callable[..., Any], sample: tuple[Tensor, ...], cut: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return what fuseflow computes and what PyTorch computes."""
    result = ff.compile(model, sample, schedule=ff.Schedule.fuse(cut)).run()
    (output,) = result.outputs.values()
    wanted = model(*sample).detach().numpy()
    return np.asarray(output, np.float64).reshape(wanted.shape), wanted.astype(np.float64)


def agree(case: Case, cut: str) -> None:
    actual, wanted = values(*case, cut)
    np.testing.assert_allclose(actual, wanted, rtol=2e-6, atol=0)


class Quantised(nn.Module):
    """Fake quantisation before a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(4, 8, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(torch.round(x / 0.1) * 0.1, self.weight)


def averaged_halves(x: Tensor) -> Tensor:
    q = torch.round(x / 0.1) * 0.1
    return torch.round((q[:, :4] + q[:, 4:]) / 2 / 0.1)


def ternary(x: Tensor) -> Tensor:
    threshold = 0.7 * x.abs().mean()
    return torch.where(x > threshold, 1.0, torch.where(x < -threshold, -1.0, 0.0)) * x.abs().mean()


TENTHS = (torch.arange(64) * 0.05).reshape(8, 8) - 1.6
NORMAL = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))

DECIDED: dict[str, Case] = {
    "averages of quantised halves": (averaged_halves, (NORMAL,)),
    "a mask": (lambda x: torch.where(x > 0.1, x, 0.0) @ x, (torch.round(NORMAL * 10) / 10,)),
    "floors of tenths": (lambda x: torch.floor(x / 0.1), (TENTHS,)),
    "a threshold that is an element": (lambda x: (x >= 0.1).float() + (x <= 0.3).float(), (V[:, 1:9],)),
    "thirds": (lambda x: torch.floor(x / 3 * 3), (torch.arange(64).reshape(8, 8).float(),)),
    "ternary weights": (ternary, (TENTHS,)),
    "buckets": (
        lambda x: torch.bucketize(x * 0.1, torch.tensor([-0.1, 0.0, 0.1, 0.3])),
        (torch.arange(-5, 5).reshape(2, 5).float(),),
    ),
    "levels of eight bits": (lambda x: torch.clamp(torch.round(x / (3 / 127)), -128, 127) * (3 / 127), (NORMAL,)),
    "integers by a tenth": (lambda i: torch.floor(i.float() * 0.1 / 0.1), (torch.arange(64).reshape(8, 8),)),
    "64 bits inside": (lambda x: torch.floor(x.double() / 0.1).float(), (TENTHS,)),
    "32 bits inside": (lambda x: torch.floor(x.float() / 0.1).double(), (TENTHS.double(),)),
    "a float that holds no odd integer": (lambda x: (x + 1) - x, (torch.full((2, 2), 2.0**24),)),
}


@pytest.mark.parametrize("cut", CUTS)
def test_fake_quantisation(cut: str) -> None:
    result = ff.compile(Quantised().eval(), (TENTHS,), schedule=ff.Schedule.fuse(cut)).run()
    assert result.check is not None and result.check.passed and result.check.max_rel_error < 1e-6


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", DECIDED)
def test_a_rounding_that_decides_is_that_of_pytorch(name: str, cut: str) -> None:
    actual, wanted = values(*DECIDED[name], cut)
    np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-6)


def test_64_bits_can_be_chosen_and_differ() -> None:
    """0.3 / 0.1 is 3 as a 32-bit float, and less than 3 as one of 64 bits."""
    model, sample = DECIDED["floors of tenths"]
    machine = ff.load_machine("ideal", {"arithmetic": "f64"})
    wide = ff.compile(model, sample, schedule=ff.Schedule.fuse("full"), machine=machine)
    own = ff.compile(model, sample, schedule=ff.Schedule.fuse("full"), machine="ideal")
    assert (wide.run().check, own.run().check) != (None, None)
    assert wide.run().check.not_compared and own.run().check.passed and not own.run().check.not_compared
    assert wide.run().cycles == own.run().cycles


@pytest.mark.parametrize("cut", CUTS)
def test_both_simulators_round_alike(cut: str) -> None:
    for model, sample in (DECIDED["ternary weights"], DECIDED["averages of quantised halves"], (torch.softmax, (NORMAL, 1))):
        sample = tuple(sample)
        inputs = sample[:1]
        compiled = ff.compile(lambda x, model=model, rest=sample[1:]: model(x, *rest), inputs, schedule=ff.Schedule.fuse(cut))
        runs = [compiled.run(engine=engine) for engine in ("reference", "fast")]
        for name, output in runs[0].outputs.items():
            np.testing.assert_array_equal(output, runs[1].outputs[name])
        assert runs[0].cycles == runs[1].cycles


DIVISORS = (0.1, -0.1, 0.3, 2, -3.0, 0.0, inf)
QUOTIENTS: dict[str, Case] = {
    "remainder": (torch.remainder, (X, Y)),
    "fmod": (torch.fmod, (X, Y)),
    "floor_divide": (torch.floor_divide, (X, Y)),
    "div by floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), (X, Y)),
    "div by trunc": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), (NUMBERS.t().contiguous(), NUMBERS)),
    **{f"remainder by {c}": (lambda x, c=c: torch.remainder(x, c), (V,)) for c in DIVISORS},
    **{f"fmod by {c}": (lambda x, c=c: torch.fmod(x, c), (V,)) for c in DIVISORS},
    **{f"floor_divide by {c}": (lambda x, c=c: torch.floor_divide(x, c), (V,)) for c in DIVISORS},
    **{f"% {c}": (lambda x, c=c: x % c + x // c, (V[:, 1:9],)) for c in (0.1, -0.7)},
    "remainder of numbers": (torch.remainder, (NUMBERS.t() * 7.3, NUMBERS)),
    "fmod of numbers": (torch.fmod, (NUMBERS.t() * 7.3, NUMBERS)),
    "floor_divide of numbers": (torch.floor_divide, (NUMBERS.t() * 7.3, NUMBERS)),
    "remainder of large numbers": (lambda x: torch.remainder(x, 0.1), (torch.tensor([[1e6, -1e6, 123456.7, 1e7, 1e-30]]),)),
    "a chain": (lambda x: torch.floor(torch.remainder(x * 3, 0.7) / 0.1), (NUMBERS,)),
    "remainder of integers": (torch.remainder, (I, J)),
    "fmod of integers": (torch.fmod, (I, J)),
    "floor_divide of integers": (torch.floor_divide, (I, J)),
    "div of integers by trunc": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), (I, J)),
    "div of integers by floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), (I, J)),
    "integers by a number": (lambda x: x % 5 + x // -4, (I,)),
    "a power of two in 64 bits": (lambda x: torch.remainder(x, 2.0), (NUMBERS.double(),)),
}


@pytest.mark.parametrize("cut", ENDS)
@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients(name: str, cut: str) -> None:
    agree(QUOTIENTS[name], cut)


def test_a_remainder_in_64_bits_is_refused() -> None:
    with pytest.raises(FrontendError, match="64-bit floats has no exact Einsum form"):
        ff.compile(lambda x: torch.remainder(x, 0.1), (NUMBERS.double(),))


ORDERED: dict[str, Case] = {
    **{f"argmax {dim}": (lambda x, dim=dim: torch.argmax(x, dim), (ROWS,)) for dim in (0, 1)},
    **{f"argmin {dim}": (lambda x, dim=dim: torch.argmin(x, dim), (ROWS,)) for dim in (0, 1)},
    **{f"{name} of all": (lambda x, name=name: getattr(torch, name)(x), (ROWS,)) for name in ("argmax", "argmin", "max", "min")},
    **{
        f"{result} of {name}": (lambda x, name=name, result=result: getattr(getattr(torch, name)(x, 1), result), (ROWS,))
        for name in ("max", "min", "median")
        for result in ("values", "indices")
    },
    **{f"sort {d}": (lambda x, d=d: torch.sort(x, dim=1, descending=d, stable=True).values, (ROWS,)) for d in (False, True)},
    **{f"places of sort {d}": (lambda x, d=d: torch.argsort(x, dim=1, descending=d, stable=True), (ROWS,)) for d in (False, True)},
    **{f"topk {d}": (lambda x, d=d: torch.topk(x, 2, dim=1, largest=d).values, (ROWS,)) for d in (False, True)},
    "kthvalue": (lambda x: torch.kthvalue(x, 2, dim=1).values, (ROWS,)),
    "fmax": (torch.fmax, (X, Y)),
    "fmin": (torch.fmin, (X, Y)),
    "heaviside": (torch.heaviside, (X, Y)),
    "bucketize": (torch.bucketize, (V, BOUNDARIES)),
    "bucketize to the right": (lambda x, b: torch.bucketize(x, b, right=True), (V, BOUNDARIES)),
    "searchsorted": (lambda x, b: torch.searchsorted(b, x), (V, BOUNDARIES)),
    "softshrink": (lambda x: F.softshrink(x, 0.1), (V,)),
    "hardshrink": (lambda x: F.hardshrink(x, 0.1), (V,)),
    "clamp": (lambda x: torch.clamp(x, -0.1, 0.3), (V,)),
    "relu": (torch.relu, (V,)),
    "relu6": (F.relu6, (V,)),
    "leaky_relu": (F.leaky_relu, (V,)),
    "elu": (F.elu, (V,)),
    "hardtanh": (F.hardtanh, (V,)),
    "threshold": (lambda x: F.threshold(x, 0.2, -3.0), (V,)),
    "a choice that is no relu": (lambda x: torch.where(x > 0, x, 0.0), (V,)),
    "a choice that is no maximum": (lambda x, y: torch.where(x > y, x, y), (X, Y)),
    "a choice that is no minimum": (lambda x, y: torch.where(x <= y, x, y), (X, Y)),
    "equal to itself": (lambda x: torch.where(x == x, x * 2, 7.0), (V,)),
    "trunc": (torch.trunc, (V,)),
    "isfinite": (lambda x: torch.isfinite(x).float(), (V,)),
    "gelu": (F.gelu, (V,)),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), (V,)),
    "softplus": (F.softplus, (V,)),
    "sigmoid": (torch.sigmoid, (V,)),
    "logsigmoid": (F.logsigmoid, (V,)),
    "logaddexp": (torch.logaddexp, (X, Y)),
    "logsumexp of rows": (lambda x: torch.logsumexp(x, 1), (ROWS,)),
    "logsumexp of columns": (lambda x: torch.logsumexp(x, 0), (ROWS[[2, 4, 5, 7]][:, [0, 2]],)),
}  # fmt: skip


@pytest.mark.parametrize("cut", ENDS)
@pytest.mark.parametrize("name", ORDERED)
def test_nan_and_infinities(name: str, cut: str) -> None:
    with torch.backends.mkldnn.flags(enabled=False):  # oneDNN says on some processors that `gelu` of infinity is no number
        agree(ORDERED[name], cut)


@pytest.mark.parametrize(("tied", "is_told"), [(True, True), (False, False)])
def test_ties_of_a_router_are_told(tied: bool, is_told: bool) -> None:
    def routed(x: torch.Tensor) -> torch.Tensor:
        weights, chosen = x.topk(2, -1, sorted=False)
        return torch.zeros_like(x).scatter(-1, chosen, weights.softmax(-1)) @ torch.ones(5, 3)

    x = torch.ones(6, 5) if tied else torch.arange(30.0).reshape(6, 5).sin()
    assert any("of equal elements" in notice for notice in ff.compile(routed, (x,)).notices) == is_told


def test_ties_of_topk_are_told_where_positions_differ() -> None:
    tied = torch.tensor([[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
    assert not (torch.topk(tied, 2).indices == torch.tensor([[0, 1], [4, 3]])).all()
    both = ff.compile(lambda x: torch.topk(x, 2), (tied,))
    assert any("of equal elements, `topk` takes the first ones" in notice for notice in both.notices)
    for model, sample in (
        (lambda x: torch.topk(x, 2).values, tied),
        (lambda x: torch.topk(x, 2).indices, tied[1:]),
        (lambda x: torch.sort(x, stable=True).indices, tied),
    ):
        assert not any("topk" in notice for notice in ff.compile(model, (sample,)).notices)
