"""The two sweeps of propagation: one forward, which finds what is known, and one backward, which finds what is needed.

They go over steps that compute tensors from tensors: the Einsums of a program, or the calls of operators in a graph of PyTorch. What a
step means, it says itself.

Two sweeps are enough. What is known depends on the producers of a tensor only, and what is needed on what is known and on its consumers.
Leaving out what is not needed makes nothing known that was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import or_
from typing import Protocol, TypeVar

Name = TypeVar("Name")
"""What tensors are called."""
Known = TypeVar("Known")
"""What is known of a tensor."""
Mask = TypeVar("Mask")
"""Which elements of a tensor are needed."""


class Step(Protocol[Name, Known, Mask]):
    """A computation of tensors from tensors."""

    def known(self, known: Mapping[Name, Known]) -> Mapping[Name, Known]:
        """Return what is known of the results, from what is known of the operands."""

    def needed(self, known: Mapping[Name, Known], needed: Mapping[Name, Mask]) -> Iterable[tuple[Name, Mask]]:
        """Return what each use of an operand needs of it, from what is needed of the results."""


def known_after(steps: Iterable[Step[Name, Known, Mask]], known: Mapping[Name, Known]) -> dict[Name, Known]:
    """Return what is known of every tensor, from what is known of those that no step computes."""
    every = dict(known)
    for step in steps:
        every |= step.known(every)
    return every


def needed_before(
    steps: Sequence[Step[Name, Known, Mask]], known: Mapping[Name, Known], needed: Mapping[Name, Mask]
) -> dict[Name, Mask]:
    """Return what is needed of every tensor, from what is needed of it beside the steps: all of an output, and nothing of others. An
    element is needed if any use of the tensor needs it."""
    every = dict(needed)
    for step in reversed(steps):
        for name, mask in step.needed(known, every):
            every[name] = or_(every[name], mask)
    return every
