"""The two sweeps of propagation: one forward, which finds known elements, and one backward, which finds needed elements.

They go over steps that compute tensors from tensors: the Einsums of a program, or the calls of operators in a graph of PyTorch.
Each step has methods that say what it means.

Two sweeps are enough. Whether an element is known depends on the producers of its tensor only; whether it is needed, on known
elements and on consumers. Leaving out elements that are not needed makes no other element known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import or_
from typing import Protocol, TypeVar

Name = TypeVar("Name")
"""The type of the names of tensors."""
Known = TypeVar("Known")
"""The known values of a tensor."""
Mask = TypeVar("Mask")
"""Which elements of a tensor are needed."""


class Step(Protocol[Name, Known, Mask]):
    """A computation of tensors from tensors."""

    def known(self, known: Mapping[Name, Known]) -> Mapping[Name, Known]:
        """Return the known values of the results, given the known values of the operands."""

    def needed(self, known: Mapping[Name, Known], needed: Mapping[Name, Mask]) -> Iterable[tuple[Name, Mask]]:
        """Return the needed elements of an operand for each use of it, given the needed elements of the results."""


def known_after(steps: Iterable[Step[Name, Known, Mask]], known: Mapping[Name, Known]) -> dict[Name, Known]:
    """Return the known values of every tensor, given the known values of the tensors that no step computes."""
    every = dict(known)
    for step in steps:
        every |= step.known(every)
    return every


def needed_before(
    steps: Sequence[Step[Name, Known, Mask]], known: Mapping[Name, Known], needed: Mapping[Name, Mask]
) -> dict[Name, Mask]:
    """Return the needed elements of every tensor. `needed` has the elements that are needed beside the steps: all of an output,
    none of others. An element is needed if any use of the tensor needs it."""
    every = dict(needed)
    for step in reversed(steps):
        for name, mask in step.needed(known, every):
            every[name] = or_(every[name], mask)
    return every
