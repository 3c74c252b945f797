"""The emitter of Einsums: it collects the Einsums of a program and gives them names and indices."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from fuseflow.einsum.index_names import fresh_indices, substitute
from fuseflow.einsum.nodes import Access, Einsum, Expr, Index, Reduce, Split, TensorType, index_names, plain_names, walk
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg import einsum_names
from fuseflow.frontend.linalg.locations import Origin
from fuseflow.frontend.linalg.symbolic_values import SymbolicValue, dimension_index, tensor_value, uses_undefined
from fuseflow.frontend.linalg.unit_dimensions import squeeze_shape
from fuseflow.tensors.dtypes import DTYPES


class EinsumEmitter:
    """A collection of Einsums in order, and of the tensors that must be declared. These are the inputs, and the intermediate tensors
    whose extents or format do not follow from the Einsums."""

    def __init__(self) -> None:
        self.einsums: list[Einsum] = []
        self.declared: dict[str, TensorType] = {}
        self._names = einsum_names.NameAllocator()

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
        result = self._append(name or einsum_names.einsum_name(body, origin), indices, body, type, origin, force)
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
        name = einsum_names.qualified_name(origin, "split" if splits else "merge")
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
        name = einsum_names.qualified_name(origin, "part")
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
