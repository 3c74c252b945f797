"""Elements of a given rank and the first elements in order: what PyTorch gives, on the sample and on other numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fuseflow as ff
from fuseflow.einsum.nodes import Keep
from fuseflow.frontend import import_model
from fuseflow.schedule import Schedule

GENERATOR = torch.Generator().manual_seed(3)
SAMPLE, OTHER = (torch.randn(5, 12, generator=GENERATOR) for _ in range(2))
TIES = OTHER.round()
BROKEN = OTHER.clone()
BROKEN[0, 3] = math.nan
BROKEN[1, :2] = math.inf
BROKEN[2] = math.nan
MASKED = OTHER.masked_fill(OTHER < 0.3, -math.inf)


def written_back(
    x: Tensor, base: Tensor, change: Callable[[Tensor], Tensor] = lambda x: x, count: int = 3, largest: bool = True
) -> Tensor:
    top = x.topk(count, dim=-1, largest=largest)
    return base.scatter(-1, top.indices, change(top.values))


def of_all(x: Tensor) -> Tensor:
    flat = x.flatten()
    top = flat.topk(9)
    return torch.zeros_like(flat).scatter_(-1, top.indices, top.values).reshape(x.shape)


def in_place(x: Tensor) -> Tensor:
    top = x.relu().topk(3, dim=-1, sorted=False)
    return top.values.new_zeros(x.shape).scatter_(dim=-1, index=top.indices, src=top.values)


def masked(x: Tensor) -> Tensor:
    chosen = torch.zeros_like(x, dtype=torch.bool).scatter_(-1, x.topk(3).indices, True)
    return torch.where(chosen, x * 2, -1.0)


KEPT: dict[str, Callable[[Tensor], Any]] = {
    "top-k": lambda x: written_back(x, torch.zeros_like(x)),
    "of the least": lambda x: written_back(x, torch.zeros_like(x), largest=False),
    "over data": lambda x: written_back(x, x * 3),
    "relu of top-k": lambda x: written_back(x, torch.zeros_like(x), lambda v: v.relu() * 2),
    "along the first": lambda x: (lambda top: torch.zeros(5, 12).scatter(0, top.indices, top.values))(x.topk(2, 0)),
    "in place": in_place,
    "of all": of_all,
    "a number": lambda x: torch.zeros_like(x).scatter(-1, x.topk(3).indices, 1.0),
    "a number over data": lambda x: x.scatter(-1, x.topk(3).indices, -1.0),
    "a mask": masked,
}
RANKS: dict[str, Callable[[Tensor], Any]] = {
    "the least of top-k": lambda x: x.topk(4, dim=-1).values[..., -1:],
    "one rank of top-k": lambda x: x.topk(4, dim=0, largest=False).values[1],
    "two ranks of a sort": lambda x: x.sort(-1).values[:, 5:6] + x.sort(-1, descending=True).values[:, 2:3],
    "where one rank is": lambda x: x.sort(-1).indices[:, 3],
    "a threshold": lambda x: torch.where(x >= x.sort(-1, descending=True).values[:, 3:4], x, torch.zeros_like(x)),
    "k-th value": lambda x: tuple(x.kthvalue(5, dim=1)),
    "k-th value from the other end": lambda x: x.kthvalue(11, dim=1, keepdim=True).values,
    "median": lambda x: tuple(x.median(1)),
    "median of all": lambda x: x.median(),
    "extremes": lambda x: (x.argmax(1), x.argmin(0), *x.max(1), *x.min(1, keepdim=True)),
    "extreme of all": lambda x: x.argmin(),
    "top-1": lambda x: tuple(x.topk(1)),
    "quantile": lambda x: x.quantile(0.8, dim=1, keepdim=True),
    "quantile of all": lambda x: x.quantile(0.37),
    "quantiles": lambda x: x.quantile(torch.tensor([0.0, 0.25, 1.0]), dim=0),
    "quantile at an element": lambda x: tuple(
        x.quantile(0.3, dim=1, interpolation=how) for how in ("lower", "higher", "nearest", "midpoint")
    ),
}


def outputs(model: Callable[[Tensor], Any], x: Tensor, fuse: str) -> list[Any]:
    """The outputs on `x` of the program that was imported with the sample."""
    source = import_model(lambda x: model(x), (SAMPLE,))
    tensors = {name: tensor.to_dense() for name, tensor in source.tensors.items()} | {"x": x.numpy()}
    run = ff.compile(source.program, tensors=tensors, schedule=Schedule.fuse(fuse)).run()
    assert run.check is not None and run.check.passed
    return [out.toarray() if hasattr(out, "toarray") else np.asarray(out) for out in run.outputs.values()]


def expected(model: Callable[[Tensor], Any], x: Tensor) -> list[Any]:
    result = model(x)
    return [value.squeeze().numpy() for value in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("case", [*KEPT, *RANKS])
def test_what_pytorch_gives(case: str, fuse: str) -> None:
    model = (KEPT | RANKS)[case]
    for x in (SAMPLE, OTHER):
        for found, wanted in zip(outputs(model, x, fuse), expected(model, x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("case", RANKS)
def test_values_of_equal_elements_infinities_and_nan(case: str) -> None:
    for x in (TIES, BROKEN, *([] if "quantile" in case else [MASKED])):  # -inf from -inf is -inf here
        for found, wanted in zip(outputs(RANKS[case], x, "full"), expected(RANKS[case], x), strict=True):
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("case", KEPT)
def test_what_is_written_back_is_kept(case: str) -> None:
    """No two elements are compared with each other, and nothing counts places."""
    program = import_model(KEPT[case], (SAMPLE,)).program
    assert any(isinstance(einsum.body, Keep) for einsum in program.einsums)
    assert all(len(einsum.indices) <= 2 for einsum in program.einsums)
    assert not any(name.startswith(("before", "places")) for name in program.declared)


@pytest.mark.parametrize("case", RANKS)
def test_work_is_in_proportion_to_the_elements(case: str) -> None:
    program = import_model(RANKS[case], (SAMPLE,)).program
    sizes = [math.prod(program.declared[tensor].shape) for tensor in program.declared]
    assert max(sizes) == SAMPLE.numel()
    assert all(len(set(einsum.indices)) <= 2 for einsum in program.einsums)


def test_as_many_as_there_are() -> None:
    """Of a dimension with one element, and all of the elements: there is nothing to choose."""
    for x in (torch.randn(5, 1), torch.randn(1, 1), torch.randn(4, 3)):
        top = x.shape[-1]
        run = ff.compile(
            lambda x, top=top: (
                written_back(x, torch.zeros_like(x), count=top),
                torch.zeros_like(x).scatter(-1, x.topk(top).indices, 1.0) + x,
                x.max(-1, keepdim=True).indices + x,
            ),
            (x,),
        ).run()
        assert run.check is not None and run.check.passed


def test_ordered_results_are_compared_as_before() -> None:
    for model in (
        lambda x: tuple(x.topk(3)),
        lambda x: (*x.sort(0), x.argsort(1)),
        lambda x: (written_back(x, torch.zeros_like(x)), x.topk(3).values),
    ):
        for fuse in ("none", "full"):
            run = ff.compile(model, (SAMPLE,), schedule=Schedule.fuse(fuse)).run()
            assert run.check is not None and run.check.passed


def test_more_than_there_are_is_the_error_of_pytorch() -> None:
    with pytest.raises(ff.errors.FuseFlowError, match="selected index k out of range"):
        ff.compile(lambda x: x.topk(13).values[:, -1:], (SAMPLE,))
