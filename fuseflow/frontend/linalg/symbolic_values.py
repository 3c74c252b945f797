"""Tensor values that need no Einsum of their own: they are expressions over the dimensions of the value.

Dimension p of a value is the index `%p`. A tensor as it is becomes an access. A transposed tensor is an access with its indices
exchanged, a broadcast tensor is an access that lacks an index, a fill is a constant, and the comparison of a mask is an expression. An
operation that reads such a value substitutes its own indices. A dimension of extent 1 has no index, because nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fuseflow.einsum.index_names import substitute
from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Index, free_indices, walk
from fuseflow.ops import OPERATORS

UNDEFINED = Access("%undefined", ())
"""The element of a tensor without content, which `tensor.empty` makes."""


@dataclass(frozen=True, slots=True)
class SymbolicValue:
    """A tensor value of a Linalg function: its shape in MLIR, and its element at the indices `%0, %1, ...`."""

    shape: tuple[int, ...]
    expr: Expr

    def at(self, indices: Mapping[int, Index]) -> Expr:
        """Return the element at the given index of each dimension. Dimensions of extent 1 may be left out."""
        return substitute(self.expr, {dimension_index(p): index for p, index in indices.items()})

    @property
    def nonunit_dimensions(self) -> tuple[int, ...]:
        """The dimensions that have an index: their extent is not 1."""
        return nonunit_dimensions(self.shape)

    @property
    def bound_dimensions(self) -> tuple[int, ...]:
        """The dimensions that the element depends on. Along the others the value is broadcast."""
        indices = free_indices(self.expr)
        return tuple(p for p in self.nonunit_dimensions if dimension_index(p) in indices)

    def squeezed(self) -> SymbolicValue:
        """Return the value without its dimensions of extent 1."""
        names = {dimension_index(old): dimension_index(new) for new, old in enumerate(self.nonunit_dimensions)}
        return SymbolicValue(tuple(self.shape[p] for p in self.nonunit_dimensions), substitute(self.expr, names))

    def unsqueezed(self, shape: tuple[int, ...]) -> SymbolicValue:
        """Return a value without dimensions of extent 1 as a value of the given shape, which may have such dimensions."""
        names = {dimension_index(old): dimension_index(new) for old, new in enumerate(nonunit_dimensions(shape))}
        return SymbolicValue(shape, substitute(self.expr, names))


def dimension_index(dimension: int) -> str:
    """Return the index that stands for a dimension of a value, such as `%0`."""
    return f"%{dimension}"


def nonunit_dimensions(shape: Iterable[int]) -> tuple[int, ...]:
    """Return the dimensions of a shape whose extent is not 1."""
    return tuple(p for p, size in enumerate(shape) if size != 1)


def tensor_value(name: str, shape: tuple[int, ...]) -> SymbolicValue:
    """Return the value of a named tensor, which is declared without its dimensions of extent 1."""
    return SymbolicValue(shape, Access(name, tuple(dimension_index(p) for p in nonunit_dimensions(shape))))


def uses_undefined(expr: Expr) -> bool:
    """Return whether an expression reads an element of a tensor without content."""
    return UNDEFINED in walk(expr)


def simplify_apply(op: str, *args: Expr) -> Expr:
    """Return the simplified application of an operator.

    Constants are folded and neutral operands are dropped. Linalg writes relu, min, max and sigmoid as comparisons and quotients; these
    become the operators again.

    >>> x = Access("x", ("i",))
    >>> simplify_apply("where", Apply("gt", (x, Const(0.0))), x, Const(0.0)).op
    'relu'
    """
    if args and all(isinstance(arg, Const) for arg in args):
        return Const(OPERATORS[op].scalar(*(arg.value for arg in args if isinstance(arg, Const))))
    match op, args:
        case ("copy", (x,)):
            return x
        case ("add", (x, Const(0.0))) | ("add", (Const(0.0), x)) | ("sub", (x, Const(0.0))):
            return x
        case ("mul", (x, Const(1.0))) | ("mul", (Const(1.0), x)) | ("div", (x, Const(1.0))) | ("pow", (x, Const(1.0))):
            return x
        case ("eq", (Apply("ne", (x, Const(0.0))), Const(0.0))):
            return Apply("eq", (x, Const(0.0)))
        case ("where", (Apply("gt" | "ge", (a, b)), c, d)) if (a, b) in ((c, d), (d, c)):
            return simplify_apply("max" if a == c else "min", a, b)
        case ("where", (Apply("lt" | "le", (a, b)), c, d)) if (a, b) in ((c, d), (d, c)):
            return simplify_apply("min" if a == c else "max", a, b)
        case ("pow", (x, Const(0.5))):
            return Apply("sqrt", (x,))
        case ("pow", (Access() as x, Const(2.0))):
            return Apply("mul", (x, x))
        case ("max", (x, Const(0.0))) | ("max", (Const(0.0), x)):
            return Apply("relu", (x,))
        case (
            "div",
            (
                Const(1.0),
                Apply(
                    "add", (Apply("exp", (Apply("neg", (x,)),)), Const(1.0)) | (Const(1.0), Apply("exp", (Apply("neg", (x,)),)))
                ),
            ),
        ):
            return Apply("sigmoid", (x,))
        case _:  # Operators and operands are of any kind, and no other application of one has a simpler form that is as exact.
            return Apply(op, args)
