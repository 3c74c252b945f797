"""Gradients of the largest and the smallest element: of equal ones, the first one has it, or they share it."""

from __future__ import annotations

import pytest
import torch
from derivative_checks import check_rule
from torch import Tensor

from fuseflow.frontend.positions.selection_operators import extreme_along, extreme_at_edges

aten = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(5)
NUMBERS = torch.randn(3, 4, 20, dtype=torch.float64, generator=GENERATOR)
EQUAL = NUMBERS.round()
PICTURE = torch.relu(torch.randn(2, 3, 7, 6, dtype=torch.float64, generator=GENERATOR).round())
VOLUME = torch.relu(torch.randn(2, 3, 4, 6, 3, dtype=torch.float64, generator=GENERATOR).round())


@pytest.mark.parametrize("x", [NUMBERS, EQUAL], ids=["numbers", "equal"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_along_a_dimension(x: Tensor, dim: int, keepdim: bool) -> None:
    for operator in (aten.max.dim, aten.min.dim):
        check_rule(operator, x, dim, keepdim)


def test_of_many() -> None:
    many = torch.randint(0, 4, (2, 700), generator=GENERATOR).double()
    check_rule(aten.max.dim, many, 1)


@pytest.mark.parametrize("parts", [[1, 1], [7, 2], [3, 3], [2, 6], [3, 4]])
def test_of_parts(parts: list[int]) -> None:
    check_rule(aten.adaptive_max_pool2d.default, PICTURE, parts)
    check_rule(aten.adaptive_max_pool2d.default, PICTURE[0], parts)
    check_rule(aten.adaptive_max_pool1d.default, PICTURE[0], parts[1:])


def test_of_parts_of_volumes() -> None:
    check_rule(aten.adaptive_max_pool3d.default, VOLUME, [2, 3, 1])


ROWS = torch.tensor([2, 0, 2, 2])
SELECTION = torch.nn.functional.one_hot(ROWS, 3).t()
NONE = (SELECTION.sum(1) == 0).to(torch.int32)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("start", [0.0, torch.full((3, 6), 1.0, dtype=torch.float64)])
def test_of_entries_that_go_to_a_row(largest: bool, start: Tensor | float) -> None:
    def scattered(_: Tensor, __: Tensor, x: Tensor, dim: int, start: Tensor | float, largest: bool) -> Tensor:
        base = start if isinstance(start, Tensor) else torch.full((3, 6), start, dtype=x.dtype)
        reduction = "amax" if largest else "amin"
        return base.scatter_reduce(dim, ROWS.unsqueeze(1).expand(x.shape), x, reduction, include_self=False)

    for x in (NUMBERS[0, :, :6], EQUAL[0, :, :6]):
        check_rule(extreme_along, SELECTION, NONE, x, 0, start, largest, witness=scattered)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("spread", [False, True])
def test_of_edges(largest: bool, spread: bool) -> None:
    pattern = torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]])
    targets, sources = pattern.nonzero().t()
    x = EQUAL[:, :4, :2]

    def scattered(_: Tensor, __: Tensor, x: Tensor, *___: object) -> Tensor:
        edges = x.expand(3, 4, 2)[targets, sources]
        index = targets.unsqueeze(1).expand(edges.shape)
        base = torch.zeros(3, 2, dtype=x.dtype)
        return base.scatter_reduce(0, index, edges, "amax" if largest else "amin", include_self=False)

    empty = (pattern.sum(1) == 0).to(torch.int32)
    check_rule(extreme_at_edges, pattern, empty, x[:1] if spread else x, 0, 1, 0.0, largest, witness=scattered)
