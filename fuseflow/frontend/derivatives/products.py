"""Products of many elements: the gradient of a factor is the product of the others, which is no quotient where a factor is 0."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.extremes import of_last
from fuseflow.frontend.derivatives.rule import Gradients, Rule
from fuseflow.frontend.positions.linear_operators import scanned_along
from fuseflow.frontend.positions.selection_operators import multiplied_along

aten = torch.ops.aten


def of_product(gradient: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return the gradient of x from that of the product along `dim`, which has extent 1 in `gradient`."""
    zero = torch.where(x == 0, 1.0, 0.0).to(x.dtype)
    factors = torch.where(x == 0, 1.0, x)
    others = factors.prod(dim, keepdim=True) / factors
    return torch.where(zero.sum(dim, keepdim=True) - zero == 0, gradient * others, 0.0)


def _of_prod(gradients: Gradients, _: object, x: Tensor, *__: object, **___: object) -> Gradients:
    """Return the gradient of the product of all elements."""
    (gradient,) = gradients
    assert gradient is not None
    return (of_product(gradient.reshape(1), x.reshape(-1), 0).reshape(x.shape).to(x.dtype),)


def _of_prod_along(
    gradients: Gradients, _: object, x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Gradients:
    (gradient,) = gradients
    assert gradient is not None
    converted = x if dtype is None else x.to(dtype)
    return (of_product(gradient if keepdim else gradient.unsqueeze(dim), converted, dim).to(x.dtype),)


def _of_scan(
    gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, triangle: Tensor, dim: int, reduction: str
) -> Gradients:
    """Return the gradient of a reduction of the elements along `dim` up to each of them. Of equal elements, the last one is the largest."""
    gradient, result = (value.movedim(dim, -1).unsqueeze(-1) for value in (_given(gradients), results[0]))
    rows = x.movedim(dim, -1).unsqueeze(-2)
    match reduction:
        case "cumprod":
            parts = of_product(gradient, torch.where(triangle, rows, 1.0), -1)
        case "logcumsumexp":
            parts = gradient * torch.exp(rows - result)
        case _:
            neutral = float("-inf" if reduction == "cummax" else "inf")
            parts = of_last(gradient, torch.where(triangle, rows, neutral), result, [-1])
    return torch.where(triangle, parts, 0.0).sum(-2).movedim(-1, dim), None


def _of_products_of_rows(
    gradients: Gradients, _: object, selection: Tensor, empty: Tensor, x: Tensor, dim: int, start: Tensor | float
) -> Gradients:
    """Return the gradient of the product of the entries along `dim` that each row of a selection has."""
    gradient = _given(gradients).movedim(dim, 0)
    rows = x.movedim(dim, 0)
    absent = selection.reshape(*selection.shape, *[1] * (rows.dim() - 1)) == 0
    is_empty = empty.reshape(-1, *[1] * (rows.dim() - 1)) != 0
    parts = of_product(torch.where(is_empty, 0.0, gradient).unsqueeze(1), torch.where(absent, 1.0, rows.unsqueeze(0)), 1)
    of_x = torch.where(absent, 0.0, parts).sum(0).movedim(0, dim)
    if not isinstance(start, Tensor):
        return None, None, of_x
    return None, None, of_x, torch.where(is_empty, gradient, 0.0).movedim(0, dim)


def _given(gradients: Gradients) -> Tensor:
    (gradient,) = gradients
    assert gradient is not None
    return gradient


PRODUCT_RULES: dict[Any, Rule] = {
    aten.prod.default: _of_prod,
    aten.prod.dim_int: _of_prod_along,
    scanned_along: _of_scan,
    multiplied_along: _of_products_of_rows,
}
