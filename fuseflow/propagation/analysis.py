"""The analysis of a program: which elements of its tensors are known, and which are needed, by two sweeps over its Einsums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import Access, Einsum, Program
from fuseflow.einsum.rounding import rounded
from fuseflow.einsum.sparse_arrays import LabeledArray, SparseArray, flat_positions
from fuseflow.einsum.verify import extents
from fuseflow.errors import AttributesError, did_you_mean
from fuseflow.ops import Array
from fuseflow.propagation.attribute import Attribute, folded
from fuseflow.propagation.expressions import UNKNOWN, Expressions, Value
from fuseflow.propagation.labeled import EVERYWHERE, MAX_POINTS, Bits, Entries, Mask, read, tensor_array, written
from fuseflow.propagation.sweeps import known_after, needed_before
from fuseflow.tensors.levels.base import Ints


@dataclass(frozen=True, slots=True, eq=False)
class TensorMask:
    """A mask of a tensor of a shape, in one of four forms: everywhere the same, the same along some dimensions, an element for each, or at
    listed coordinates.

    Without `crds`, `bits` has an axis for each dimension, of extent 1 where nothing changes along it. With `crds`, `bits` has an element
    for each of these coordinates, and the mask is `elsewhere` at all others.
    """

    shape: tuple[int, ...]
    bits: Bits
    crds: Ints | None = None
    elsewhere: bool = False

    def __invert__(self) -> TensorMask:
        return replace(self, bits=~self.bits, elsewhere=not self.elsewhere)

    @property
    def size(self) -> int:
        """The number of elements of the tensor."""
        return math.prod(self.shape)

    def count(self) -> int:
        """Return the number of elements at which the mask is true."""
        true = int(np.count_nonzero(self.bits))
        if self.crds is None:
            return true * (self.size // self.bits.size) if self.bits.size else 0
        return true + (self.size - self.bits.size if self.elsewhere else 0)

    def along(self, mode: int) -> Bits:
        """Return at which coordinates of a dimension the mask is true for any element."""
        extent = self.shape[mode]
        if self.crds is None:
            others = tuple(axis for axis in range(self.bits.ndim) if axis != mode)
            return np.broadcast_to(self.bits.any(axis=others), (extent,)) if self.size else np.zeros(extent, dtype=bool)
        listed = np.bincount(self.crds[mode], minlength=extent) if self.elsewhere else np.zeros(extent, dtype=np.int64)
        any_of = self.elsewhere & (listed < self.size // max(1, extent))
        any_of[self.crds[mode][self.bits]] = True
        return any_of

    def at(self, crds: Ints) -> Bits:
        """Return the mask at some coordinates, an array [rank, n]."""
        if self.crds is None:
            places = [c if extent > 1 else np.zeros_like(c) for c, extent in zip(crds, self.bits.shape, strict=True)]
            return np.broadcast_to(self.bits[tuple(places)], crds.shape[1:])
        listed = SparseArray.of_points(self.shape, self.crds, self.bits.astype(np.float64), float(self.elsewhere))
        return np.asarray(listed.at(flat_positions(self.shape, crds)) != 0)

    def whole(self, name: str = "the tensor") -> Bits:
        """Return the mask as an array of the shape of the tensor. Raise `AttributesError` for one at listed coordinates of a tensor that
        has more than 2^26 elements."""
        if self.crds is None:
            return np.broadcast_to(self.bits, self.shape)
        if self.size > MAX_POINTS:
            why = f"`{name}` has {self.size:,} elements, and its mask lists coordinates"
            raise AttributesError(why, hint="`needed_mask` and `dead_mask` return masks by coordinates")
        array = np.full(self.shape, self.elsewhere)
        array[tuple(self.crds)] = self.bits
        return array


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The known values and the needed elements of every tensor of a program, by the name of the tensor.

    `attributes` has the value that an element has in every run, and NaN where it is unknown. For a large sparse tensor it has the
    coordinates of the unknown elements. `reached` is true where an element is unknown and an output depends on it.
    """

    program: Program
    attributes: Mapping[str, Array | Entries]
    reached: Mapping[str, Bits]

    @property
    def known(self) -> Mapping[str, Array]:
        """The value of every element that is the same in every run, and NaN for the others, as arrays that cannot be written to. Large
        sparse tensors are left out."""
        arrays = {name: array for name, array in self.attributes.items() if not isinstance(array, Entries)}
        return {name: np.broadcast_to(array, self._shape(name)) for name, array in arrays.items()}

    @property
    def needed(self) -> Mapping[str, Bits]:
        """Which elements are unknown, and an output depends on them. Large sparse tensors are left out."""
        return {name: self.needed_mask(name).whole() for name in self.known}

    def dead(self, name: str) -> Bits:
        """Return which elements of a tensor need not be stored: elements that are known to be its implicit value, and elements
        that are unknown and not needed. A known element with another value stays: results that are computed from it need it."""
        return self.dead_mask(name).whole(name)

    def needed_mask(self, name: str) -> TensorMask:
        """Return which elements of a tensor are unknown and needed."""
        return self._mask(name, self.reached[name], False)

    def dead_mask(self, name: str) -> TensorMask:
        """Return `dead` as a `TensorMask`, so that no dense array is made for a sparse tensor."""
        known, needed = self.attributes[name], self.reached[name]
        if isinstance(known, Entries):
            return self._mask(name, ~needed, True)
        return self._mask(name, (known == self._fill(name)) | (np.isnan(known) & ~needed), True)

    def idle_mask(self, name: str) -> TensorMask:
        """Return which elements of a tensor are of no use by themselves: elements that are known to be its implicit value, or are
        not needed. A known result may still be computed from another known element."""
        known, needed = self.attributes[name], self.reached[name]
        return self._mask(name, ~needed if isinstance(known, Entries) else (known == self._fill(name)) | ~needed, True)

    def constant_mask(self, name: str) -> TensorMask:
        """Return which elements of a tensor are known to be another value than its implicit one."""
        known = self.attributes[name]
        bits = np.zeros(known.mask.shape, bool) if isinstance(known, Entries) else ~np.isnan(known) & (known != self._fill(name))
        return self._mask(name, bits, False)

    def _mask(self, name: str, bits: Bits, elsewhere: bool) -> TensorMask:
        known = self.attributes[name]
        return TensorMask(self._shape(name), np.asarray(bits), known.crds if isinstance(known, Entries) else None, elsewhere)

    def _fill(self, name: str) -> float:
        return self.program.declared[name].fill

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.program.declared[name].shape


def analyse(program: Program, attributes: Mapping[str, Attribute] | None = None) -> Analysis:
    """Return which elements of the tensors of a program are known and needed, given the `attributes` of some tensors.

    An attribute of a result says that the result is pruned there: it is as if the program had a mask behind it. Raise `AttributesError` for
    an attribute of a tensor that is not there, or of another shape.
    """
    typed, given = infer(program), dict(attributes or {})
    for name in given:
        if name not in typed.declared:
            raise AttributesError(f"there is no tensor `{name}` in `{program.name}`", hint=did_you_mean(name, typed.declared))
    start = {tensor.name: given.get(tensor.name, Attribute()).known(tensor) for tensor in typed.inputs}
    shapes = {tensor.name: tensor.shape for tensor in typed.tensors}
    steps = [EinsumStep(einsum, typed, shapes, given.get(einsum.name)) for einsum in typed.einsums]
    known = known_after(steps, start)
    shape_by_name = {n: value.mask.shape if isinstance(value, Entries) else (1,) * value.ndim for n, value in known.items()}
    needed = {name: np.full(shape, name in typed.outputs) for name, shape in shape_by_name.items()}
    return Analysis(typed, known, needed_before(steps, known, needed))


class EinsumStep:
    """An Einsum of a program as a step of the two sweeps. `shapes` has the shapes of all tensors, and `attribute` says which
    elements of its result are pruned."""

    def __init__(
        self, einsum: Einsum, program: Program, shapes: Mapping[str, tuple[int, ...]], attribute: Attribute | None
    ) -> None:
        self._left, self._body = Access(einsum.name, einsum.indices), rounded(einsum, program.declared).body
        self._sizes, self._shapes = extents(program)[einsum.name], shapes
        self._given = None if attribute is None else attribute.known(program.declared[einsum.name])
        self._expressions: Expressions | None = None

    def known(self, known: Mapping[str, Array | Entries]) -> dict[str, Array | Entries]:
        self._expressions = Expressions(known, self._shapes, self._sizes)
        result = self._of_result(self._expressions.value(self._body))
        name = self._left.tensor
        return {name: result if self._given is None else _pruned(result, self._given, self._shapes[name])}

    def needed(self, known: Mapping[str, Array | Entries], needed: Mapping[str, Bits]) -> Iterator[tuple[str, Bits]]:
        name, expressions = self._left.tensor, self._expressions
        assert expressions is not None, "the sweep forward comes first"
        self._expressions = None  # no later step reads it
        result = known[name]
        if isinstance(result, Entries):
            need: Mask = Entries(result.crds, result.mask & needed[name], self._left.names)
        else:
            need = read(self._left, needed[name] & np.isnan(result), self._shapes[name], self._sizes, False)
        for access, elements in expressions.needs(self._body, need):
            yield access.tensor, self._of_operand(known[access.tensor], access, elements)

    def _of_result(self, value: Value) -> Array | Entries:
        """Return the known values of the result as an array over its dimensions."""
        if isinstance(value, Entries):
            names = self._left.names
            if self._left.is_plain and set(names) == set(value.names):
                rows = [value.names.index(name) for name in names]
                return Entries(value.crds if rows == sorted(rows) else value.crds[rows], value.mask)
            value = UNKNOWN
        return folded(tensor_array(self._left.indices, value, self._sizes))

    def _of_operand(self, known: Array | Entries, access: Access, elements: Mask) -> Bits:
        """Return which elements of a tensor an access needs, in the form of the known values of the tensor. `elements` are the
        needed points of the Einsum. For a split or an affine index of a listed tensor, all are needed."""
        shape = self._shapes[access.tensor]
        if isinstance(known, Entries):
            entries = Entries(known.crds, known.mask, access.names)
            return entries.at(elements) if access.is_plain else np.ones(known.mask.shape, dtype=bool)
        if isinstance(elements, LabeledArray):
            return written(access, elements, shape, self._sizes)
        fits = math.prod(shape) <= MAX_POINTS
        return written(access, elements.whole(self._sizes) if fits else EVERYWHERE, shape, self._sizes)


def _pruned(known: Array | Entries, given: Array | Entries, shape: tuple[int, ...]) -> Array | Entries:
    """Return the known values of a result after the mask that the attribute `given` puts on it."""
    if isinstance(given, Entries):
        return given
    if isinstance(known, Entries):
        return Entries(known.crds, known.mask & TensorMask(shape, np.isnan(given)).at(known.crds))
    return folded(np.where(np.isnan(given), known, given))
