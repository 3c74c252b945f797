"""`alpha` and `beta` of sums and products: PyTorch computes the same at every cut."""

from collections.abc import Callable

import pytest
import torch
from eager import drawn, matches, sparse
from torch import Tensor

X, Y, TO = drawn(4, 2), drawn(4, 2) + 1, torch.tensor([0, 0, 2, 1])
MATRIX, OTHER, ROWS, COLUMNS = drawn(3, 4), drawn(4, 3), drawn(3), drawn(4)
BATCH = drawn(2, 3, 4), drawn(2, 4, 5)

CASES: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "index_add": (lambda x, to: torch.zeros(3, 2).index_add(0, to, x, alpha=2.0), (X, TO)),
    "index_add to a tensor": (lambda b, x: b.index_add(0, TO, x, alpha=-0.5), (drawn(3, 2), X)),
    "index_add along columns, in place": (lambda b, x: (b * 1).index_add_(1, TO, x, alpha=3), (drawn(2, 3), drawn(2, 4))),
    "index_add of nothing": (lambda b, x: b.index_add(0, TO, x, alpha=0), (drawn(3, 2), X)),
    "index_add at positions that are data": (
        lambda b, x, p: b.index_add(0, (p * 2).long(), x, alpha=2),
        (drawn(3, 2), X, torch.tensor([0.0, 0.6, 1, 0])),
    ),
    "index_add of taken rows": (
        lambda x: torch.zeros(3, 2).index_add(0, TO, x[torch.tensor([0, 1, 1, 3])], alpha=2.0),
        (X,),
    ),
    "sub": (lambda a, b: torch.sub(a, b, alpha=2), (X, Y)),
    "add of a number": (lambda a: torch.add(a, 3, alpha=2), (X,)),
    "rsub": (lambda a, b: torch.rsub(a, b, alpha=2), (X, Y)),
    "add of sparse matrices": (lambda a, b: torch.add(a, b, alpha=2), (sparse(4, 3), sparse(4, 3))),
    "addmv": (torch.addmv, (ROWS, MATRIX, COLUMNS)),
    "addmv scaled": (lambda b, m, x: torch.addmv(b, m, x, beta=0.5, alpha=2), (ROWS, MATRIX, COLUMNS)),
    "addmv without its first operand": (lambda b, m, x: torch.addmv(b, m, x, beta=0), (ROWS, MATRIX, COLUMNS)),
    "addmv in place": (lambda b, m, x: (b * 1).addmv_(m, x, alpha=3), (ROWS, MATRIX, COLUMNS)),
    "addmv of one number": (torch.addmv, (torch.tensor(2.0), MATRIX, COLUMNS)),
    "addmv of a sparse matrix": (torch.addmv, (ROWS, sparse(3, 4), COLUMNS)),
    "addmm": (lambda b, m, x: torch.addmm(b, m, x, beta=0.5, alpha=2), (drawn(3, 3), MATRIX, OTHER)),
    "addr": (lambda b, x, y: torch.addr(b, x, y, beta=0.5, alpha=2), (MATRIX, ROWS, COLUMNS)),
    "addbmm": (lambda b, x, y: torch.addbmm(b, x, y, beta=0.5, alpha=2), (drawn(3, 5), *BATCH)),
    "addbmm without its first operand": (lambda b, x, y: torch.addbmm(b, x, y, beta=0), (drawn(3, 5), *BATCH)),
    "baddbmm": (lambda b, x, y: torch.baddbmm(b, x, y, beta=0.5, alpha=2), (drawn(2, 3, 5), *BATCH)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_added_is_scaled(name: str) -> None:
    matches(*CASES[name])


@pytest.mark.parametrize("function", [torch.addmv, torch.addmm, torch.addbmm, torch.baddbmm])
def test_a_beta_of_zero_hides_nan(function: Callable[..., Tensor]) -> None:
    operands = {
        torch.addmv: (ROWS, MATRIX, COLUMNS),
        torch.addmm: (drawn(3, 3), MATRIX, OTHER),
        torch.addbmm: (drawn(3, 5), *BATCH),
        torch.baddbmm: (drawn(2, 3, 5), *BATCH),
    }
    first, *factors = operands[function]
    matches(lambda b, x, y: function(b, x, y, beta=0), (first * float("nan"), *factors), ("full",))
