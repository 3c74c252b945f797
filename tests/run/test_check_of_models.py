"""What the check says of models whose terms cancel, and of NaN in PyTorch, and that it finds results that are wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

import fuseflow as ff
from fuseflow.run.check import Check
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import check_json
from fuseflow.sim import load_machine
from fuseflow.tensors import pack

MACHINES = {arithmetic: load_machine("ideal").model_copy(update={"arithmetic": arithmetic}) for arithmetic in ("f64", "f32")}


def compiled(function: Callable[..., Any], *inputs: torch.Tensor, fuse: str = "full", arithmetic: str = "f64") -> Compiled:
    return ff.compile(function, inputs=inputs, schedule=ff.Schedule.fuse(fuse), machine=MACHINES[arithmetic])


def check_of(function: Callable[..., Any], *inputs: torch.Tensor, fuse: str = "full", arithmetic: str = "f64") -> Check:
    check = compiled(function, *inputs, fuse=fuse, arithmetic=arithmetic).run(engine="fast").check
    assert check is not None
    return check


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


# What rounding makes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.softmax(x.float(), -1).double(),
        lambda x: (x.float() @ x.float().T).double() * 2,
        lambda x: x + torch.tanh(x.float()).sum(1, keepdim=True),
        lambda x: (x.bfloat16() @ x.bfloat16().T).double(),
    ],
)
def test_what_was_computed_in_fewer_bits_is_compared_in_those(function: Callable[..., torch.Tensor], fuse: str):
    assert ff.compile(function, inputs=(normal(6, 5).double(),), schedule=ff.Schedule.fuse(fuse)).run().check.passed


# What rounding hides ---------------------------------------------------------------------------------------------------------


KEEP = torch.ones(4, 4).tril()
KEEP[2] = 0


def masked_attention(q: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """The case `mask_add_1e9`: a mask that is added as -1e9; the third query may see no key."""
    return ((q @ q.T) + (1 - keep) * -1e9).softmax(-1) @ q


@pytest.mark.parametrize("arithmetic", MACHINES)
def test_mask_add_1e9(arithmetic: str):
    """In 64 bits the third row is the softmax of scores that PyTorch, in 32 bits, loses beside 1e9."""
    program = compiled(masked_attention, normal(4, 3), KEEP, arithmetic=arithmetic)
    result = program.run(engine="fast")
    check = result.check
    assert check is not None and check.passed and check.max_rel_error < 1e-6
    (expected,) = program.source.expected.values()
    (output,) = result.tensors.values()
    differs = ~np.isclose(output.to_dense(), expected, rtol=1e-4).all(axis=1)
    assert check.not_compared == 3 * differs.sum() and not differs[[0, 1, 3]].any()
    if arithmetic == "f64":
        assert differs[2] and check.uncertain.coordinates[0] == 2
        assert "3 of 12 elements could not be compared (terms cancel: at (2, " in check.details
        assert check_json(check)["not_compared"] == 3 and check_json(check)["elements"] == 12
        assert "3 of 12 elements could not be compared" in repr(result)


HIDDEN: Mapping[str, tuple[Callable[..., torch.Tensor], torch.Tensor, list[bool]]] = {
    "a variance as a difference of means": (
        lambda x: (x * x).mean(1) - x.mean(1) ** 2,
        normal(3, 40) + torch.tensor([[0.0], [3e4], [1.0]]),
        [False, True, False],
    ),
    "a shift and back": (lambda x, c: (x + c) - c, normal(3, 4), [False, True, False]),
    "a distance as a difference of norms": (
        lambda x, y: (x * x).sum(1) + (y * y).sum(1) - 2 * (x * y).sum(1),
        normal(3, 8) + torch.tensor([[0.0], [1e4], [2.0]]),
        [False, True, False],
    ),
    "a norm of what cancels": (
        lambda x: ((x * x).mean(1) - x.mean(1) ** 2).abs().sqrt(),
        normal(3, 40) + torch.tensor([[0.0], [1e5], [1.0]]),
        [False, True, False],
    ),
}
SECOND = {
    "a shift and back": torch.tensor([[0.0], [1e9], [1.0]]),
    "a distance as a difference of norms": normal(3, 8) * 1.1 + torch.tensor([[0.0], [1e4], [2.0]]),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_cancels_is_counted_and_all_else_is_compared(name: str):
    function, first, hidden = HIDDEN[name]
    inputs = (first, SECOND[name]) if name in SECOND else (first,)
    check = check_of(function, *inputs)
    (size,) = {first.shape[1]} if name == "a shift and back" else {1}
    assert check.passed and check.not_compared == size * sum(hidden)
    assert check.uncertain.coordinates[0] == hidden.index(True)
    alone = check_of(function, *(x[1:2] for x in inputs))
    assert not alone.passed and alone.verdict == "UNKNOWN" and alone.not_compared == alone.elements == size


# NaN -------------------------------------------------------------------------------------------------------------------------

ADJACENCY = torch.tensor([[0, 1.0, 1], [0, 0, 0], [1, 0, 0]])


def mean(adjacency: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The case `nan_row_called_masked`: the second node has no neighbour, and nothing is masked."""
    return (adjacency @ x) / adjacency.sum(1, keepdim=True)


NOT_MASKED: Mapping[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "nan_row_called_masked": (mean, (ADJACENCY, normal(3, 2).abs())),
    "the deviation of one element": (lambda x: x.std(1, keepdim=True) * torch.ones(1, 2), (normal(3, 1),)),
    "a mean of what a mask leaves out": (
        lambda x, m: (x * m).sum(1, keepdim=True) / m.sum(1, keepdim=True),
        (normal(3, 3), ADJACENCY),
    ),
    "a row that is divided by its norm": (lambda x: x / x.norm(dim=1, keepdim=True), (ADJACENCY,)),
    "zero times infinity": (lambda a, x: a * (1 / x), (ADJACENCY, ADJACENCY)),
    "a logarithm of a row of zeros": (lambda x: (x.log() - x.log()).exp(), (ADJACENCY,)),
}


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("name", NOT_MASKED)
def test_nan_of_pytorch_is_named(name: str, fuse: str):
    function, inputs = NOT_MASKED[name]
    want = function(*inputs)
    check = check_of(function, *inputs, fuse=fuse)
    assert want.isnan().any()
    assert not check.passed and check.verdict == "FAILED" and check.masked_rows == 0 and check.not_compared == 0
    place = f"at ({', '.join(map(str, check.largest.coordinates))})"
    assert want[check.largest.coordinates].isnan() and f"PyTorch has NaN {place} where the run has 0" in check.problem
    assert "0 / 0" in "".join(check.notes)


MASK = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 0, 1]]).bool()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.masked_fill(~MASK, -math.inf).softmax(-1),
        lambda x: (x + torch.where(MASK, 0.0, -math.inf)).softmax(-1) @ x,
        lambda x: torch.where(MASK, x @ x.T, -math.inf).softmax(-1).relu() @ x,
    ],
    ids=["masked_fill", "an added mask", "where"],
)
def test_a_row_behind_a_mask_is_left_out_and_counted(function: Callable[..., torch.Tensor]):
    program = compiled(function, normal(3, 3))
    result = program.run(engine="fast")
    assert result.check.passed and result.check.masked_rows == 1 and "1 fully masked rows left out" in result.check.details
    filled = dict(result.tensors)
    (name, tensor), *_ = filled.items()
    values = tensor.to_dense()
    values[1, 2] = 0.5
    check = program.compare({name: pack(values, tensor.format)})
    assert not check.passed and "PyTorch has NaN at (1, 0) where the run has 0" in check.problem


def test_an_output_of_masked_rows_alone_is_not_compared():
    check = check_of(lambda x, m: torch.where(m != 0, x, -math.inf).softmax(-1), normal(3, 3), torch.zeros(3, 3))
    assert not check.passed and check.unknown and check.masked_rows == 3 and "all of its rows are fully masked" in check.problem


# Wrong results ---------------------------------------------------------------------------------------------------------------


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.first, self.second = nn.LayerNorm(3), nn.Linear(3, 5), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.tanh(self.first(self.norm(x))))


def scores(q: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return (q @ q.T).masked_fill(keep == 0, -1e9)


MODELS: Mapping[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "attention beside -1e9": (masked_attention, (normal(4, 3), KEEP)),
    "scores beside -1e9": (scores, (normal(4, 3), torch.ones(4, 4).tril())),
    "attention beside infinity": (
        lambda q, keep: q.matmul(q.T).masked_fill(keep == 0, -math.inf).softmax(-1) @ q,
        (normal(4, 3), KEEP),
    ),
    "an encoder": (Encoder(), (normal(4, 3),)),
    "a sparse product": (lambda a, x: torch.relu(a @ x) - x, (KEEP.to_sparse_csr(), normal(4, 3))),
    "variances": (
        lambda x: (x * x).mean(2) - x.mean(2) ** 2,
        (normal(4, 3, 9) + torch.tensor([0.0, 1.0, 1e5, 2.0]).reshape(4, 1, 1),),
    ),
    "64 bits of 32": (lambda x, w: (x.float() @ w.float()).double() * 2, (normal(4, 3).double(), normal(3, 3).double())),
}
"""The third rows of four of these are behind a mask, or lost in rounding."""

Floats = npt.NDArray[np.float64]


def changed(values: Floats, at: tuple[Any, ...], to: npt.ArrayLike) -> Floats:
    result = values.copy()
    result[at] = to
    return result


WRONG: Mapping[str, Callable[[Floats], Floats]] = {
    "one element": lambda y: changed(y, (3, 1), y[3, 1] * 1.01),
    "twice an element beside masked ones": lambda y: changed(y, (1, 0), y[1, 0] * 2),
    "half a row": lambda y: changed(y, (0,), y[0] / 2),
    "no row": lambda y: changed(y, (3,), 0),
    "NaN": lambda y: changed(y, (2, 1), math.nan),
    "rows that are swapped": lambda y: changed(y, ([1, 3],), y[[3, 1]]),
    "a sign": lambda y: changed(y, (1, 1), -y[1, 1]),
    "the next column": lambda y: np.roll(y, 1, axis=1),
}


@cache
def run(model: str) -> tuple[Compiled, Check, str, Floats]:
    function, inputs = MODELS[model]
    program = compiled(function, *inputs)
    result = program.run(engine="fast")
    (name,) = result.tensors
    assert result.check is not None
    return program, result.check, name, result.tensors[name].to_dense().astype(np.float64)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("model", MODELS)
def test_a_planted_result_is_found(model: str, wrong: str):
    """56 wrong results, of which none may be one of those that rounding hides."""
    program, right, name, values = run(model)
    assert right.passed
    planted = WRONG[wrong](values)
    tensor = program.run(check=False, engine="fast").tensors[name]
    check = program.compare({name: pack(planted.astype(tensor.dtype), tensor.format, tensor.fill)})
    assert check.verdict == "FAILED"
    assert check.largest is not None and check.largest.coordinates is not None
    row = check.largest.coordinates[0]
    assert not np.array_equal(planted[row], values[row])
