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
    """What is `known` and what is `needed` of every tensor of a program, by name.

    `known` has the value of an element that every run has, and NaN where it is unknown. `needed` is true where an element is unknown and
    an output depends on it. Both have the shape of the tensor, and cannot be written to.
    """

    program: Program
    known: Mapping[str, Array]
    needed: Mapping[str, Mask]

    def dead(self, name: str) -> Mask:
        """Return which elements of a tensor need not be stored: those that are known to be its implicit value, and those that are unknown
        and not needed. A known element with another value stays, since what is computed of it needs it."""
        known = self.known[name]
        return (known == self.program.declared[name].fill) | (np.isnan(known) & ~self.needed[name])


def analyse(program: Program, attributes: Mapping[str, Attribute] | None = None) -> Analysis:
    """Return what is known and needed of a program, if this is known of some of its tensors.

    An attribute of a result says that the result is pruned there: it is as if the program had a mask behind it. Raise `AttributesError` for
    an attribute of a tensor that is not there, or of another shape.
    """
    typed, given = infer(program), dict(attributes or {})
    for name in given:
        if name not in typed.declared:
            raise AttributesError(f"there is no tensor `{name}` in `{program.name}`", hint=did_you_mean(name, typed.declared))
    return _Sweeps(typed, given).analysis()


class _Sweeps:
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
        return Analysis(self._program, self._whole(self._known), self._whole(self._needed))

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
            mask = written(access, elements, self._shapes[access.tensor], sizes)
            self._needed[access.tensor] = self._needed[access.tensor] | mask

        Backward(self._forward[name], mark).need(einsum.body, read(left, need, self._shapes[name], sizes, False))

    def _whole(self, arrays: Mapping[str, npt.NDArray[np.generic]]) -> dict[str, npt.NDArray[np.generic]]:
        return {name: np.broadcast_to(array, self._shapes[name]) for name, array in arrays.items()}
