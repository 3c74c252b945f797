"""Regions that grow Einsum by Einsum, in program order, so that they can always be run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import networkx as nx

from fuseflow.einsum.nodes import Einsum, Program


@dataclass(frozen=True, slots=True)
class Region:
    """A region is a list of Einsums that run as one graph, in program order."""

    name: str
    einsums: tuple[str, ...]


@dataclass(slots=True, eq=False)
class RegionDraft:
    """A region while it grows. Several may have one label: a layer that a reshape cuts."""

    label: str
    einsums: list[str]


class Partition:
    """A partition under construction. Its invariant is that the regions depend on each other without a cycle."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._home = dict[str, RegionDraft]()
        self._labelled = dict[str, list[RegionDraft]]()
        self._needs: nx.DiGraph[RegionDraft] = nx.DiGraph()  # an edge from a region to one that reads its results

    def producers(self, einsum: Einsum) -> Iterator[RegionDraft]:
        """Yield the regions that compute the operands of `einsum`, in order of the operands."""
        return (self._home[name] for name in einsum.operands if name in self._home)

    def labelled(self, label: str) -> list[RegionDraft]:
        """Return the regions with this label, in the order in which they were opened."""
        return self._labelled.get(label, [])

    def may_join(self, einsum: Einsum, region: RegionDraft) -> bool:
        """Return whether no operand from outside needs a result of the region. (Nothing reads `einsum` yet, because Einsums come in program
        order.)
        """
        return not any(nx.has_path(self._needs, region, r) for r in self.producers(einsum) if r is not region)

    def join(self, einsum: Einsum, region: RegionDraft) -> None:
        """Add an Einsum to a region that it may join."""
        region.einsums.append(einsum.name)
        self._needs.add_edges_from((r, region) for r in self.producers(einsum) if r is not region)
        self._home[einsum.name] = region

    def open(self, einsum: Einsum, label: str) -> None:
        """Open a region with this Einsum."""
        region = RegionDraft(label, [])
        self._needs.add_node(region)
        self._labelled.setdefault(label, []).append(region)
        self.join(einsum, region)

    def join_or_open(self, einsum: Einsum, regions: Iterable[RegionDraft], label: str) -> None:
        """Join the first of the regions that it may join, else open one."""
        for region in regions:
            if self.may_join(einsum, region):
                return self.join(einsum, region)
        return self.open(einsum, label)

    def detour(self, einsum: Einsum, region: RegionDraft) -> str:
        """Return the operand of `einsum` from outside that needs a result of the region, which is why it may not join."""
        for name in einsum.operands:
            home = self._home.get(name, region)
            if home is not region and nx.has_path(self._needs, region, home):
                return name
        raise ValueError(f"{einsum.name} may join {region.label}")

    def regions(self, divide: Callable[[Sequence[str]], list[list[str]]] = lambda einsums: [list(einsums)]) -> tuple[Region, ...]:
        """Return the regions in an order in which they can run, as near to program order as that allows, with unique names. `divide` may
        part the Einsums of one in several pieces, each of which reads only the pieces before it.
        """
        position = {e.name: n for n, e in enumerate(self._program.einsums)}
        ordered = nx.lexicographical_topological_sort(self._needs, key=lambda r: position[r.einsums[0]])
        pieces = [(region.label, piece) for region in ordered for piece in divide(region.einsums)]
        names = _unique([label for label, _ in pieces])
        return tuple(Region(name, tuple(piece)) for name, (_, piece) in zip(names, pieces, strict=True))


def _unique(labels: list[str]) -> list[str]:
    """Return the labels, repeated ones with a number.

    >>> _unique(["a", "b", "a", "a"])
    ['a', 'b', 'a-2', 'a-3']
    """
    names = dict[str, None]()
    for label in labels:
        number = 2
        name = label
        while name in names:
            name, number = f"{label}-{number}", number + 1
        names[name] = None
    return list(names)
