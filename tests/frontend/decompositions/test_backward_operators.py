"""Formulas of operators of gradients: each gives what PyTorch's operator gives, and consists of operators with an Einsum form."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from derivative_checks import operators
from torch import Tensor

from fuseflow.frontend.decompositions.backward_operators import BACKWARD_DECOMPOSITIONS

aten = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(11)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=GENERATOR)


def tied(*shape: int) -> Tensor:
    """Numbers as after a relu: many are 0, and others are equal."""
    return torch.relu(drawn(*shape).round())


def checked(operator: Any, *args: Any) -> list[str]:
    """Compare a formula with its operator, and return the operators in it."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    wanted, computed = operator(*args), BACKWARD_DECOMPOSITIONS[operator](*args)
    torch.testing.assert_close(computed, wanted)

    def formula(*given: Tensor) -> list[Tensor]:
        rest = iter(given)
        results = BACKWARD_DECOMPOSITIONS[operator](*(next(rest) if isinstance(x, Tensor) else x for x in args))
        return [x for x in (results if isinstance(results, tuple) else (results,)) if x is not None]

    return operators(formula, tensors)


CONVOLUTIONS: dict[str, tuple[Tensor, Tensor, list[int], list[int], list[int], int]] = {
    "signal": (drawn(2, 4, 9), drawn(6, 4, 3), [1], [0], [1], 1),
    "signal in groups": (drawn(2, 4, 9), drawn(6, 2, 3), [2], [1], [1], 2),
    "picture": (drawn(2, 4, 7, 8), drawn(6, 4, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    "picture with a rest": (drawn(2, 4, 7, 8), drawn(6, 2, 3, 2), [2, 3], [1, 0], [2, 1], 2),
    "depthwise": (drawn(2, 4, 7, 8), drawn(4, 1, 3, 3), [2, 2], [1, 1], [1, 1], 4),
    "points": (drawn(2, 4, 7, 8), drawn(3, 4, 1, 1), [2, 2], [0, 0], [1, 1], 1),
    "much padding": (drawn(2, 2, 5, 5), drawn(3, 2, 2, 2), [1, 1], [3, 2], [1, 1], 1),
    "volume": (drawn(1, 2, 4, 5, 4), drawn(2, 2, 2, 3, 2), [1, 2, 1], [1, 0, 1], [1, 1, 1], 1),
    "volume in groups": (drawn(1, 2, 4, 5, 4), drawn(2, 1, 2, 3, 2), [1, 2, 1], [1, 0, 1], [1, 1, 1], 2),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    x, weight, stride, padding, dilation, groups = CONVOLUTIONS[name]
    settings = (stride, padding, dilation, False, [0] * len(stride), groups)
    gradient = torch.randn_like(aten.convolution(x, weight, None, *settings))
    names = checked(aten.convolution_backward.default, gradient, x, weight, [weight.shape[0]], *settings, [True] * 3)
    if "groups" not in name:
        assert names == ["convolution", "convolution", "sum"]
    checked(aten.convolution_backward.default, gradient, x, weight, [0], *settings, [False, True, False])


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [([2, 2], [], [0, 0]), ([2, 3], [2, 3], [0, 0]), ([3, 3], [2, 2], [1, 1]), ([2, 2], [1, 1], [0, 0])],
)
@pytest.mark.parametrize("divisor", [None, 5])
def test_averages(kernel: list[int], stride: list[int], padding: list[int], divisor: int | None) -> None:
    x, settings = drawn(2, 4, 7, 8), (kernel, stride, padding, False, True, divisor)
    gradient = torch.randn_like(aten.avg_pool2d(x, *settings))
    checked(aten.avg_pool2d_backward.default, gradient, x, *settings)


def test_averages_of_volumes() -> None:
    x, settings = drawn(1, 2, 4, 6, 5), ([2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None)
    gradient = torch.randn_like(aten.avg_pool3d(x, *settings))
    assert checked(aten.avg_pool3d_backward.default, gradient, x, *settings) == ["mul"]


@pytest.mark.parametrize("draw", [drawn, tied])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"),
    [
        ([2, 2], [2, 2], [1, 1]),
        ([2, 3], [2, 3], [1, 1]),
        ([3, 3], [2, 2], [1, 1]),
        ([2, 2], [2, 2], [2, 1]),
        ([1, 2], [1, 1], [1, 3]),
    ],
)
def test_the_first_of_the_largest(draw: Any, kernel: list[int], stride: list[int], dilation: list[int]) -> None:
    x, settings = draw(2, 4, 7, 8), (kernel, stride, [0, 0], dilation, False)
    largest, places = aten.max_pool2d_with_indices(x, *settings)
    checked(aten.max_pool2d_with_indices_backward.default, torch.randn_like(largest), x, *settings, places)


def test_the_first_of_the_largest_of_volumes() -> None:
    x, settings = tied(1, 2, 4, 6, 5), ([2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False)
    largest, places = aten.max_pool3d_with_indices(x, *settings)
    checked(aten.max_pool3d_with_indices_backward.default, torch.randn_like(largest), x, *settings, places)


def test_small_elements() -> None:
    x = drawn(4, 6)
    assert "where" in checked(aten.hardshrink_backward.default, drawn(4, 6), x, 0.5)
    checked(aten.hardshrink_backward.default, drawn(4, 6), x.round(), 1.0)
