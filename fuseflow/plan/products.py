"""The products that have a tensor as a factor: where they stand in a program, and at which indices they read it.

Y[i, j] = relu(bias[j] + (sum(k) A[i, k] * B[k, j]))        `sum(k) A[i, k] * B[k, j]` reads B at (k, j)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fuseflow.einsum.nodes import Access, Apply, Einsum, Expr, Program, Reduce, accesses, children
from fuseflow.einsum.text import show_einsum
from fuseflow.errors import PlanError


@dataclass(frozen=True, slots=True)
class Product:
    """A sum of products with a matrix as a factor. It stands in the statement `einsum`. `indices` are the indices of the matrix."""

    einsum: Einsum
    reduction: Reduce
    operand: str
    indices: tuple[str, str]

    @property
    def free(self) -> tuple[int, ...]:
        """The dimensions of the matrix that remain in the sum."""
        return tuple(d for d, index in enumerate(self.indices) if index not in self.reduction.over)

    @property
    def others(self) -> tuple[Access, ...]:
        """The accesses to other tensors."""
        return tuple(access for access in accesses(self.reduction) if access.tensor != self.operand)


def products_of(program: Program, operand: str) -> tuple[Product, ...]:
    """Return the products that have a tensor as a factor, in order of the program. Raise `PlanError` if nothing reads the tensor, and if it
    is read in another way."""
    products = [product for einsum in program.einsums for product in _products(einsum, einsum.body, operand)]
    if not products:
        raise PlanError(f"nothing reads `{operand}`", hint="leave it out of the plan")
    return tuple(dict.fromkeys(products))


def _products(einsum: Einsum, node: Expr, operand: str) -> Iterator[Product]:
    if isinstance(node, Reduce) and node.op == "sum":
        reads = [factor for factor in _factors(node.body) if isinstance(factor, Access) and factor.tensor == operand]
        if reads and [access.tensor for access in accesses(node)].count(operand) == 1:
            yield Product(einsum, node, operand, _matrix_indices(einsum, reads[0]))
            return
    if isinstance(node, Access) and node.tensor == operand:
        raise PlanError(
            f"`{operand}` is no factor of a sum of products in `{show_einsum(einsum)}`",
            hint="a plan divides operands of products, such as `B` in `sum(k) A[i, k] * B[k, j]`",
        )
    for child in children(node):
        yield from _products(einsum, child, operand)


def _factors(node: Expr) -> Iterator[Expr]:
    if isinstance(node, Apply) and node.op == "mul":
        for arg in node.args:
            yield from _factors(arg)
    else:
        yield node


def _matrix_indices(einsum: Einsum, access: Access) -> tuple[str, str]:
    match access.indices:
        case (str() as row, str() as column) if row != column:
            return row, column
        case _:
            raise PlanError(
                f"`{access.tensor}` is not read as a matrix in `{show_einsum(einsum)}`",
                hint="a plan divides operands with two indices, which are names",
            )
