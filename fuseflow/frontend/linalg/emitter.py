"""The emitter of Einsums: it collects the Einsums of a program and gives them names and indices."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import islice

from fuseflow.einsum.indices import fresh_indices, substitute
from fuseflow.einsum.nodes import Access, Einsum, Expr, Index, Reduce, Split, TensorType, index_names, plain_names, walk
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg import einsum_names
from fuseflow.frontend.linalg.locations import Origin
from fuseflow.frontend.linalg.symbolic_values import SymbolicValue, dimension_index, tensor_value, uses_undefined
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

    def split(self, value: SymbolicValue, dimension: int, size: int, type: TensorType, origin: Origin) -> SymbolicValue:
        """Split a dimension of a value without dimensions of extent 1 into two, as in `T[i, j, k] = X[i, j*size + k]`."""
        shape = (*value.shape[:dimension], value.shape[dimension] // size, size, *value.shape[dimension + 1 :])
        plain, split = _split_letters(len(shape), dimension, size)
        name, body = einsum_names.qualified_name(origin, "split"), value.at(dict(enumerate(split)))
        return tensor_value(self._append(name, plain, body, replace(type, shape=shape), origin), shape)

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

    def merge(self, value: SymbolicValue, dimension: int, type: TensorType, origin: Origin) -> SymbolicValue:
        """Merge a dimension of a value with the next one, as in `T[i, j*size + k] = X[i, j, k]`."""
        size = value.shape[dimension + 1]
        shape = (*value.shape[:dimension], value.shape[dimension] * size, *value.shape[dimension + 2 :])
        plain, split = _split_letters(len(value.shape), dimension, size)
        name, body = einsum_names.qualified_name(origin, "merge"), value.at(dict(enumerate(plain)))
        return tensor_value(self._append(name, split, body, replace(type, shape=shape), origin), shape)

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


def _split_letters(rank: int, dimension: int, size: int) -> tuple[tuple[str, ...], tuple[Index, ...]]:
    """Return `rank` indices, and the same with index `dimension` and the next as a split, whose inner part has the extent `size`."""
    plain = tuple(islice(fresh_indices(), rank))
    return plain, (*plain[:dimension], Split(plain[dimension], plain[dimension + 1], size), *plain[dimension + 2 :])


def _reduced_indices(expr: Expr) -> Iterable[str]:
    return (name for node in walk(expr) if isinstance(node, Reduce) for name in node.over)
