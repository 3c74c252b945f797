"""The analysis of a program: one sweep forward, which finds what is known, and one backward, which finds what is needed.

Two sweeps are enough. What is known depends on the producers of a tensor only, and what is needed on what is known and on its consumers.
Leaving out what is not needed makes nothing known that was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.attributes.attribute import Attribute, folded
from fuseflow.attributes.backward import Backward
from fuseflow.attributes.forward import Forward
from fuseflow.attributes.labeled import Labeled, read, tensor_array, written
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.narrowing import rounded
from fuseflow.einsum.nodes import Access, Einsum, Program
from fuseflow.einsum.verify import extents
from fuseflow.errors import AttributesError, did_you_mean
from fuseflow.ops import Array

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """What is known and what is needed of every tensor of a program, by name.

    `folded_known` has the value of an element that every run has, and NaN where it is unknown. `folded_needed` is true where an element is
    unknown and an output depends on it. In both, a dimension of extent 1 stands for a whole one along which nothing changes. All else has
    the shapes of the tensors, and cannot be written to.
    """

    program: Program
    folded_known: Mapping[str, Array]
    folded_needed: Mapping[str, Mask]

    @property
    def known(self) -> Mapping[str, Array]:
        """The value of every element that is the same in every run, and NaN for the others."""
        return {name: np.broadcast_to(array, self._shape(name)) for name, array in self.folded_known.items()}

    @property
    def needed(self) -> Mapping[str, Mask]:
        """Which elements are unknown, and an output depends on them."""
        return {name: np.broadcast_to(array, self._shape(name)) for name, array in self.folded_needed.items()}

    def dead(self, name: str) -> Mask:
        """Return which elements of a tensor need not be stored: those that are known to be its implicit value, and those that are unknown
        and not needed. A known element with another value stays, since what is computed of it needs it."""
        known = self.folded_known[name]
        return self._whole(name, (known == self._fill(name)) | (np.isnan(known) & ~self.folded_needed[name]))

    def idle(self, name: str) -> Mask:
        """Return which elements of a tensor are of no use by themselves: those that are known to be its implicit value, and those that are
        not needed. Another known element may still be what a known result is computed from."""
        return self._whole(name, (self.folded_known[name] == self._fill(name)) | ~self.folded_needed[name])

    def constant(self, name: str) -> Mask:
        """Return which elements of a tensor are known to be another value than its implicit one."""
        known = self.folded_known[name]
        return self._whole(name, ~np.isnan(known) & (known != self._fill(name)))

    def _fill(self, name: str) -> float:
        return self.program.declared[name].fill

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.program.declared[name].shape

    def _whole(self, name: str, mask: Mask) -> Mask:
        return np.broadcast_to(mask, self._shape(name))


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
        self._known = {tensor.name: self._initial(tensor.name) for tensor in program.inputs}
        self._needed = {tensor.name: np.zeros((1,) * len(tensor.shape), dtype=bool) for tensor in program.tensors}
        self._forward: dict[str, Forward] = {}

    def analysis(self) -> Analysis:
        bodies = [rounded(einsum, self._program.declared) for einsum in self._program.einsums]
        for einsum in bodies:
            self._find_known(einsum)
        for name in self._program.outputs:
            self._needed[name] = ~self._needed[name] | True
        for einsum in reversed(bodies):
            self._find_needed(einsum)
        return Analysis(self._program, self._known, self._needed)

    def need(self, name: str, mask: Mask) -> None:
        """Add what one use of a tensor needs of it to what others need."""
        self._needed[name] = self._needed[name] | mask

    def _initial(self, name: str) -> Array:
        return self._given.get(name, Attribute()).known(self._program.declared[name])

    def _find_known(self, einsum: Einsum) -> None:
        sizes = self._sizes[einsum.name]
        self._forward[einsum.name] = forward = Forward(self._known, self._shapes, sizes)
        known = folded(tensor_array(einsum.indices, forward.value(einsum.body), sizes))
        if einsum.name in self._given:
            pruned = self._initial(einsum.name)
            known = folded(np.where(np.isnan(pruned), known, pruned))
        self._known[einsum.name] = known

    def _find_needed(self, einsum: Einsum) -> None:
        name, sizes = einsum.name, self._sizes[einsum.name]
        left = Access(name, einsum.indices)
        need = self._needed[name] & np.isnan(self._known[name])

        def mark(access: Access, elements: Labeled) -> None:
            self.need(access.tensor, written(access, elements, self._shapes[access.tensor], sizes))

        forward = self._forward.pop(name)  # no later sweep reads it
        Backward(forward, mark).need(einsum.body, read(left, need, self._shapes[name], sizes, False))
