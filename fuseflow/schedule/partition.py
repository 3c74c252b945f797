"""Regions that grow Einsum by Einsum, in program order, so that they can always be run one after the other.

Every region knows all regions that must run before it, as a set of bits, so that it costs no search of a graph to say whether an Einsum may
join it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fuseflow.directed_graphs import topological_order
from fuseflow.einsum.index_names import unused_name
from fuseflow.einsum.nodes import Einsum, Program


@dataclass(frozen=True, slots=True)
class Region:
    """A region is a list of Einsums that run as one graph, in program order."""

    name: str
    einsums: tuple[str, ...]


@dataclass(slots=True, eq=False)
class RegionDraft:
    """A region while it grows. Several may have one label, if a reshape cuts a layer. `bit` identifies the region, and `before`
    has the bits of all regions whose results it needs, directly or through others."""

    label: str
    bit: int
    einsums: list[str] = field(default_factory=list)
    before: int = 0


class Partition:
    """A partition under construction. Its invariant is that the regions depend on each other without a cycle."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._home = dict[str, RegionDraft]()
        self._labelled = dict[str, list[RegionDraft]]()
        self._labels = dict[str, int]()  # the bits of the regions of a label
        self._drafts = list[RegionDraft]()
        self._readers = dict[RegionDraft, dict[RegionDraft, None]]()  # for each region, those that read its results

    def producers(self, einsum: Einsum) -> Iterator[RegionDraft]:
        """Yield the regions that compute the operands of `einsum`, in order of the operands."""
        return (self._home[name] for name in einsum.operands if name in self._home)

    def labelled(self, label: str) -> list[RegionDraft]:
        """Return the regions with this label, in the order in which they were opened."""
        return self._labelled.get(label, [])

    def may_join(self, einsum: Einsum, region: RegionDraft) -> bool:
        """Return whether no operand from outside needs a result of the region. (Nothing reads `einsum` yet, because Einsums come
        in program order.)"""
        return not self._entered_again(einsum) & region.bit

    def first_labelled(self, einsum: Einsum, label: str) -> RegionDraft | None:
        """Return the first region with this label that an Einsum may join, or None if there is none."""
        joinable = self._labels.get(label, 0) & ~self._entered_again(einsum)
        return self._drafts[(joinable & -joinable).bit_length() - 1] if joinable else None

    def _entered_again(self, einsum: Einsum) -> int:
        """Return the bits of the regions that would be left and entered again if they had this Einsum."""
        before = 0
        for region in self.producers(einsum):
            before |= region.before
        return before

    def join(self, einsum: Einsum, region: RegionDraft) -> None:
        """Add an Einsum to a region that it may join."""
        region.einsums.append(einsum.name)
        self._home[einsum.name] = region
        for producer in self.producers(einsum):
            if producer is not region:
                self._readers[producer][region] = None
                self._run_before(region, producer.before | producer.bit)

    def _run_before(self, region: RegionDraft, before: int) -> None:
        """Record that the regions of the bits `before` must run before a region, and so before all that need a result of it."""
        waiting = [region]
        while waiting:
            region = waiting.pop()
            if before & ~region.before:
                region.before |= before
                waiting += self._readers[region]

    def open(self, einsum: Einsum, label: str) -> None:
        """Open a new region, with this Einsum and this label."""
        region = RegionDraft(label, 1 << len(self._drafts))
        self._drafts.append(region)
        self._readers[region] = {}
        self._labelled.setdefault(label, []).append(region)
        self._labels[label] = self._labels.get(label, 0) | region.bit
        self.join(einsum, region)

    def join_or_open(self, einsum: Einsum, regions: Iterable[RegionDraft], label: str) -> None:
        """Join the first of the regions that the Einsum may join, or open a new one."""
        for region in regions:
            if self.may_join(einsum, region):
                return self.join(einsum, region)
        return self.open(einsum, label)

    def detour(self, einsum: Einsum, region: RegionDraft) -> str:
        """Return the operand of `einsum` from outside that needs a result of the region, which is why it may not join."""
        return next(name for name in einsum.operands if self._home.get(name, region).before & region.bit)

    def regions(self, divide: Callable[[Sequence[str]], list[list[str]]] = lambda einsums: [list(einsums)]) -> tuple[Region, ...]:
        """Return the regions in an order in which they can run, as near to program order as that allows, with unique names.
        `divide` may divide the Einsums of one region into several pieces, where each piece reads only pieces before it."""
        position = {e.name: n for n, e in enumerate(self._program.einsums)}
        ordered = topological_order(self._readers, key=lambda r: position[r.einsums[0]])
        pieces = [(region.label, piece) for region in ordered for piece in divide(region.einsums)]
        names = unique_names([label for label, _ in pieces])
        return tuple(Region(name, tuple(piece)) for name, (_, piece) in zip(names, pieces, strict=True))


def unique_names(labels: list[str]) -> list[str]:
    """Return the labels, repeated ones with a number.

    >>> unique_names(["a", "b", "a", "a"])
    ['a', 'b', 'a-2', 'a-3']
    """
    names = dict[str, None]()
    for label in labels:
        names[unused_name(label, names, "-")] = None
    return list(names)
