"""The analysis of a program: one sweep forward, which finds what is known, and one backward, which finds what is needed.

Two sweeps are enough. What is known depends on the producers of a tensor only, and what is needed on what is known and on its consumers.
Leaving out what is not needed makes nothing known that was not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.narrowing import rounded
from fuseflow.einsum.nodes import Access, Einsum, Program
from fuseflow.einsum.verify import extents
from fuseflow.errors import AttributesError, did_you_mean
from fuseflow.ops import Array
from fuseflow.propagation.attribute import Attribute, folded
from fuseflow.propagation.backward import EVERYWHERE, Backward
from fuseflow.propagation.contraction import MAX_POINTS, Mask
from fuseflow.propagation.entries import Entries
from fuseflow.propagation.forward import UNKNOWN, Forward, Value
from fuseflow.propagation.labeled import Labeled, is_plain, read, tensor_array, written
from fuseflow.propagation.tensor_mask import Bits, TensorMask


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """What is known and what is needed of every tensor of a program, by name.

    `attributes` has the value of an element that every run has, and NaN where it is unknown; of a large sparse tensor, it has the
    coordinates of what is unknown. `reached` is true where an element is unknown and an output depends on it.
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
        """Return which elements of a tensor need not be stored: those that are known to be its implicit value, and those that are unknown
        and not needed. A known element with another value stays, since what is computed of it needs it."""
        return self.dead_mask(name).whole(name)

    def needed_mask(self, name: str) -> TensorMask:
        """Return which elements of a tensor are unknown and needed."""
        return self._mask(name, self.reached[name], False)

    def dead_mask(self, name: str) -> TensorMask:
        """Return `dead` in one of four forms, so that nothing dense is made of a tensor that is sparse."""
        known, needed = self.attributes[name], self.reached[name]
        if isinstance(known, Entries):
            return self._mask(name, ~needed, True)
        return self._mask(name, (known == self._fill(name)) | (np.isnan(known) & ~needed), True)

    def idle_mask(self, name: str) -> TensorMask:
        """Return which elements of a tensor are of no use by themselves: those that are known to be its implicit value, and those that are
        not needed. Another known element may still be what a known result is computed from."""
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
    """Return what is known and needed of a program, if this is known of some of its tensors.

    An attribute of a result says that the result is pruned there: it is as if the program had a mask behind it. Raise `AttributesError` for
    an attribute of a tensor that is not there, or of another shape.
    """
    typed, given = infer(program), dict(attributes or {})
    for name in given:
        if name not in typed.declared:
            raise AttributesError(f"there is no tensor `{name}` in `{program.name}`", hint=did_you_mean(name, typed.declared))
    return Sweeps(typed, given).analysis()


class Sweeps:
    """The two sweeps over a program, with what they know so far."""

    def __init__(self, program: Program, given: Mapping[str, Attribute]) -> None:
        self._program, self._given = program, given
        self._sizes = extents(program)
        self._shapes = {tensor.name: tensor.shape for tensor in program.tensors}
        self._known: dict[str, Array | Entries] = {tensor.name: self._initial(tensor.name) for tensor in program.inputs}
        self._needed: dict[str, Bits] = {}
        self._forward: dict[str, Forward] = {}

    def analysis(self) -> Analysis:
        bodies = [rounded(einsum, self._program.declared) for einsum in self._program.einsums]
        for einsum in bodies:
            self._find_known(einsum)
        for name, known in self._known.items():
            shape = known.mask.shape if isinstance(known, Entries) else (1,) * known.ndim
            self._needed[name] = np.full(shape, name in self._program.outputs)
        for einsum in reversed(bodies):
            self._find_needed(einsum)
        return Analysis(self._program, self._known, self._needed)

    def need(self, name: str, mask: Bits) -> None:
        """Add what one use of a tensor needs of it to what others need."""
        self._needed[name] = self._needed[name] | mask

    def _initial(self, name: str) -> Array | Entries:
        return self._given.get(name, Attribute()).known(self._program.declared[name])

    def _find_known(self, einsum: Einsum) -> None:
        sizes = self._sizes[einsum.name]
        self._forward[einsum.name] = forward = Forward(self._known, self._shapes, sizes)
        known = self._of_result(einsum, forward.value(einsum.body), sizes)
        if einsum.name in self._given:
            known = _pruned(known, self._initial(einsum.name), self._shapes[einsum.name])
        self._known[einsum.name] = known

    def _of_result(self, einsum: Einsum, value: Value, sizes: Mapping[str, int]) -> Array | Entries:
        """Return what is known of a result as an array over its dimensions."""
        if isinstance(value, Entries):
            if is_plain(Access(einsum.name, einsum.indices)) and set(einsum.indices) == set(value.names):
                rows = [value.names.index(str(index)) for index in einsum.indices]
                return Entries(value.crds if rows == sorted(rows) else value.crds[rows], value.mask)
            value = UNKNOWN
        return folded(tensor_array(einsum.indices, value, sizes))

    def _find_needed(self, einsum: Einsum) -> None:
        name, sizes = einsum.name, self._sizes[einsum.name]
        left, known, needed = Access(name, einsum.indices), self._known[name], self._needed[name]
        forward = self._forward.pop(name)  # no later sweep reads it
        if isinstance(known, Entries):
            need: Mask = Entries(known.crds, known.mask & needed, left.names)
        else:
            need = read(left, needed & np.isnan(known), self._shapes[name], sizes, False)

        def mark(access: Access, elements: Mask) -> None:
            self.need(access.tensor, self._of_operand(access, elements, sizes))

        Backward(forward, mark).need(einsum.body, need)

    def _of_operand(self, access: Access, elements: Mask, sizes: Mapping[str, int]) -> Bits:
        """Return which elements of a tensor an access needs, in the form in which they are kept for the tensor. Where it does not read them
        one by one, it may need all."""
        known, shape = self._known[access.tensor], self._shapes[access.tensor]
        if isinstance(known, Entries):
            entries = Entries(known.crds, known.mask, access.names)
            return entries.at(elements) if is_plain(access) else np.ones(known.mask.shape, dtype=bool)
        if isinstance(elements, Labeled):
            return written(access, elements, shape, sizes)
        fits = math.prod(shape) <= MAX_POINTS
        return written(access, elements.whole(sizes) if fits else EVERYWHERE, shape, sizes)


def _pruned(known: Array | Entries, given: Array | Entries, shape: tuple[int, ...]) -> Array | Entries:
    """Return what is known of a result that is masked as an attribute of it says."""
    if isinstance(given, Entries):
        return given
    if isinstance(known, Entries):
        return Entries(known.crds, known.mask & TensorMask(shape, np.isnan(given)).at(known.crds))
    return folded(np.where(np.isnan(given), known, given))
