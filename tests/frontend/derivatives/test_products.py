"""Gradients of products, where factors are 0 too, and of reductions of all elements up to each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from derivative_checks import check_rule
from torch import Tensor

from fuseflow.frontend.positions.linear_operators import scanned_along
from fuseflow.frontend.positions.selection_operators import multiplied_along

aten = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(5)
X = torch.randn(4, 6, dtype=torch.float64, generator=GENERATOR)
EQUAL = X.round()
MATRICES = {"numbers": X, "equal": EQUAL, "zero": torch.zeros_like(X)}
matrices = pytest.mark.parametrize("x", MATRICES.values(), ids=MATRICES)


@matrices
def test_products(x: Tensor) -> None:
    check_rule(aten.prod.default, x)
    check_rule(aten.prod.dim_int, x, 1)
    check_rule(aten.prod.dim_int, x, -2, True)
    check_rule(aten.prod.dim_int, x.float(), 0, dtype=torch.float64)


@matrices
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("reduction", ["cumprod", "cummax", "cummin", "logcumsumexp"])
def test_reductions_up_to_each(x: Tensor, dim: int, reduction: str) -> None:
    triangle = torch.ones(x.shape[dim], x.shape[dim], dtype=torch.bool).tril()

    def witness(x: Tensor, *_: object) -> Any:
        result = getattr(torch, reduction)(x, dim)
        return result if isinstance(result, Tensor) else result[0]

    check_rule(scanned_along, x, triangle, dim, reduction, witness=witness)


@matrices
@pytest.mark.parametrize("start", [1.0, torch.full((3, 6), 2.0, dtype=torch.float64)])
def test_products_of_rows(x: Tensor, start: Tensor | float) -> None:
    rows = torch.tensor([2, 0, 2, 2])
    selection = torch.nn.functional.one_hot(rows, 3).t()

    def witness(selection: Tensor, empty: Tensor, x: Tensor, dim: int, start: Tensor | float) -> Tensor:
        base = start if isinstance(start, Tensor) else torch.full((3, 6), start, dtype=x.dtype)
        return base.scatter_reduce(dim, rows.unsqueeze(1).expand(x.shape), x, "prod", include_self=False)

    empty = (selection.sum(1) == 0).to(torch.int32)
    check_rule(multiplied_along, selection, empty, x, 0, start, witness=witness)
