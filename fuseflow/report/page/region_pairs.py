"""The regions of two runs that correspond: regions are put together if they compute the same Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuseflow.report.page.run_directory import StoredRun, Values


@dataclass(frozen=True, slots=True)
class RegionPair:
    """Regions of one run, and regions of another that compute the same Einsums. Either may be empty, if one run computes none."""

    before: tuple[Values, ...]
    after: tuple[Values, ...]

    @property
    def name(self) -> str:
        """The name of the pair: the regions of the second run, or of the first where the second has none."""
        return ", ".join(region["name"] for region in self.after or self.before)

    @property
    def cycles(self) -> tuple[int, int]:
        """The cycles of the regions of both sides, repeated regions included."""
        return _cycles(self.before), _cycles(self.after)

    @property
    def einsums(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(einsum for region in (*self.before, *self.after) for einsum in region["einsums"]))


def region_pairs(before: StoredRun, after: StoredRun) -> tuple[RegionPair, ...]:
    """Return the regions of two runs in pairs, in the order of the second run. Regions that only the first run has come last.

    A region with repeats counts for all regions that run like it. Copies, which compute no Einsum, are paired by their names.
    """
    sides: tuple[Sequence[Values], Sequence[Values]] = (before.result["regions"], after.result["regions"])
    owner: dict[str, int] = {}
    parent = list(range(len(sides[0]) + len(sides[1])))

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    every = [*sides[0], *sides[1]]
    for k, region in enumerate(every):
        for einsum in region["einsums"] or (f"region {region['name']}",):
            parent[root(k)] = root(owner.setdefault(einsum, k))
    groups: dict[int, tuple[list[Values], list[Values]]] = {}
    for k in (*range(len(sides[0]), len(every)), *range(len(sides[0]))):
        groups.setdefault(root(k), ([], []))[k >= len(sides[0])].append(every[k])
    return tuple(RegionPair(tuple(first), tuple(second)) for first, second in groups.values())


def _cycles(regions: Sequence[Values]) -> int:
    return sum(region["times"] * region["cycles"] for region in regions)
