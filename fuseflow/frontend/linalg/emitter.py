"""The emitter of Einsums: it collects the Einsums of a program and gives them names and indices.

A symbolic value needs no Einsum of its own: it is an expression over its dimensions. Dimension p is the index `%p`. A tensor as it is
becomes an access. A transposed tensor is an access with its indices exchanged, a broadcast tensor is an access that lacks an index, a
fill is a constant, and the comparison of a mask is an expression. An operation that reads such a value substitutes its own indices. A
dimension of extent 1 has no index, because nothing depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from fuseflow.einsum.index_names import fresh_indices, substitute
from fuseflow.einsum.nodes import (
    Access,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Reduce,
    Split,
    TensorType,
    free_indices,
    index_names,
    plain_names,
    walk,
)
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg.locations import NameAllocator, Origin, einsum_name, qualified_name
from fuseflow.frontend.linalg.unit_dimensions import squeeze_shape
from fuseflow.ops import OPERATORS
from fuseflow.tensors.dtypes import DTYPES

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


class EinsumEmitter:
    """A collection of Einsums in order, and of the tensors that must be declared. These are the inputs, and the intermediate tensors
    whose extents or format do not follow from the Einsums."""

    def __init__(self) -> None:
        self.einsums: list[Einsum] = []
        self.declared: dict[str, TensorType] = {}
        self._names = NameAllocator()

    def declare(self, type: TensorType) -> str:
        """Declare an input under its own name, with a suffix if the name is taken, and return the name."""
        name = self._names.unique(type.name)
        self.declared[name] = replace(type, name=name)
        return name

    def define(
        self,
        value: SymbolicValue,
        type: TensorType,
        origin: Origin,
        *,
        name: str = "",
        force: bool = False,
        full: bool = False,
        order: tuple[str, ...] = (),
    ) -> SymbolicValue:
        """Emit an Einsum for a value and return its result as a value of the same shape.

        The indices of the Einsum are the dimensions that the value depends on. Along the others the result is broadcast, unless `full` asks
        for all dimensions. `force` declares the result with the format of `type`. `order` has the indices of the value in the order of the
        user's loops; some may have no loop.
        """
        dimensions = value.nonunit_dimensions if full or force else value.bound_dimensions
        letters = fresh_indices()
        index: dict[str, Index] = {dimension_index(p): next(letters) for p in dimensions}
        index |= {loop: next(letters) for loop in _reduced_indices(value.expr)}
        body = substitute(value.expr, index)
        indices = tuple(index[dimension_index(p)] for p in dimensions)
        type = replace(type, shape=tuple(value.shape[p] for p in dimensions))
        result = self._append(name or einsum_name(body, origin), indices, body, type, origin, force)
        loops = tuple(str(index[name]) for name in order if name in index)
        self.einsums[-1] = replace(self.einsums[-1], order=loops)
        return SymbolicValue(value.shape, Access(result, tuple(dimension_index(p) for p in dimensions)))

    def reshape(
        self, value: SymbolicValue, shape: tuple[int, ...], groups: Sequence[Sequence[int]], type: TensorType, origin: Origin
    ) -> SymbolicValue:
        """Emit the steps of a `tensor.expand_shape` or a `tensor.collapse_shape`, and return the value in its new shape. Each step splits a
        dimension into two or merges two. Dimensions of extent 1 do not count.

        `groups` is the reassociation of the operation: for each dimension of the shorter shape, the dimensions of the longer one.
        """
        splits = len(shape) > len(value.shape)
        longer = shape if splits else value.shape
        result, dimension = value.squeezed(), 0
        for part in filter(None, (squeeze_shape(tuple(longer[p] for p in group)) for group in groups)):
            for n in range(1, len(part)):
                size = math.prod(part[n:]) if splits else part[n]
                result = self._regrouped(result, dimension, size, splits, type, origin)
                dimension += splits
            dimension += 1
        return result.unsqueezed(shape)

    def _regrouped(
        self, value: SymbolicValue, dimension: int, size: int, splits: bool, type: TensorType, origin: Origin
    ) -> SymbolicValue:
        """Split a dimension into two, of which the inner one has the extent `size`, as in `T[i, j, k] = X[i, j*size + k]`, or merge it with
        the next one, as in `T[i, j*size + k] = X[i, j, k]`. No extent of the value is 1."""
        before, (extent, *after) = value.shape[:dimension], value.shape[dimension:]
        shape = (*before, extent // size, size, *after) if splits else (*before, extent * size, *after[1:])
        plain = tuple(islice(fresh_indices(), max(len(shape), len(value.shape))))
        pair = Split(plain[dimension], plain[dimension + 1], size)
        joined: tuple[Index, ...] = (*plain[:dimension], pair, *plain[dimension + 2 :])
        read, written = (joined, plain) if splits else (plain, joined)
        name = qualified_name(origin, "split" if splits else "merge")
        result = self._append(name, written, value.at(dict(enumerate(read))), replace(type, shape=shape), origin)
        return tensor_value(result, shape)

    def whole(self, value: SymbolicValue, units: Collection[int], type: TensorType, origin: Origin) -> Access:
        """Return an access to a tensor with exactly the elements of a value. Its indices are the dimensions of the value, so that
        reads outside are 0.

        The tensor has the dimensions of extent 1 in `units`, too. If there is no such tensor yet, an Einsum computes it.
        """
        stored = tuple(p for p, size in enumerate(value.shape) if size != 1 or p in units)
        wanted = tuple(dimension_index(p) for p in stored)
        if not units and isinstance(value.expr, Access) and sorted(map(str, value.expr.indices)) == sorted(wanted):
            return value.expr
        letters = fresh_indices()
        index: dict[str, Index] = {name: next(letters) for name in (*wanted, *_reduced_indices(value.expr))}
        indices = tuple(index[name] for name in wanted)
        shape = tuple(value.shape[p] for p in stored)
        body = substitute(value.expr, index)
        name = qualified_name(origin, "part")
        return Access(self._append(name, indices, body, replace(type, shape=shape), origin), wanted)

    def _append(
        self, name: str, indices: tuple[Index, ...], body: Expr, type: TensorType, origin: Origin, force: bool = False
    ) -> str:
        """Add an Einsum and return the name of its result. The result is declared if `force` asks for it, if its extents do not
        follow from its operands, or if it is rounded to a narrow float."""
        if uses_undefined(body):
            raise FrontendError(f"`{name}` reads an uninitialized tensor", hint="start from a linalg.fill")
        result = self._names.unique(name)
        is_narrow = DTYPES[type.dtype].narrow and not DTYPES[type.dtype].is_integer
        if force or is_narrow or not plain_names(body).issuperset(index_names(indices)):
            stored = type if force else replace(type, format=None, block=())
            self.declared[result] = replace(stored, name=result)
        self.einsums.append(Einsum(result, indices, body, origin.location))
        return result


def _reduced_indices(expr: Expr) -> Iterable[str]:
    return (name for node in walk(expr) if isinstance(node, Reduce) for name in node.over)
