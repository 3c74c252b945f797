"""Gradients of the largest and the smallest element: of equal ones, the first one has it."""

from __future__ import annotations

import pytest
import torch
from derivative_checks import check_rule
from torch import Tensor

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
