"""The cheapest programs: paths through a graph of cuts, by dynamic programming over its states.

The costs of regions add up, and each region has the whole budget, since one runs after the other. So every part of a cheapest
path is a cheapest one between its ends, and cuts share no resource, for which a solver would be needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from math import inf

from fuseflow.autoscheduler.budget.cut_graph import CutGraph, CutState, OrderedRange
from fuseflow.cut.units import UnitPartition

EdgeCost = Callable[[OrderedRange], float]
"""The cycles of a range. They are infinite if no program may have it."""


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Ranges one after the other from the first cut on, and the sum of their cycles. It is a program if it reaches the last
    cut."""

    cycles: float
    edges: tuple[OrderedRange, ...] = ()

    @property
    def partition(self) -> UnitPartition:
        """The ranges of units."""
        return tuple(edge.part for edge in self.edges)

    @property
    def rank(self) -> tuple[float, int, tuple[tuple[int, int, int], ...]]:
        """The key by which paths are sorted: fewer cycles first, then fewer regions, then orders that the compiler ranks
        better."""
        return self.cycles, len(self.edges), tuple((*edge.part, edge.rank) for edge in self.edges)

    def then(self, edge: OrderedRange, cycles: float) -> Path:
        """Return the path with one more range."""
        return Path(self.cycles + cycles, (*self.edges, edge))


def cheapest_paths(graph: CutGraph, cost: EdgeCost, keep: int, fused: bool = True) -> tuple[Path, ...]:
    """Return the `keep` cheapest paths to the last cut that differ in their partitions, the best first. Infinite ones are left
    out. Without `fused`, every range is one unit. At each cut, longer ranges begin only at the `graph.most_states` states that
    are reached in the fewest cycles."""
    arrived = defaultdict[int, dict[CutState, list[Path]]](dict)
    arrived[0][graph.start] = [Path(0.0)]
    for cut in range(graph.last):
        here = {state: best_of_partitions(paths, keep) for state, paths in arrived.pop(cut, {}).items()}
        near = nsmallest(graph.most_states, here, key=lambda state: here[state][0].rank)
        for state, paths in here.items():
            for edge in graph.edges(state, fused and state in near):
                cycles = cost(edge)
                if cycles < inf:
                    arrived[edge.after.cut].setdefault(edge.after, []).extend(path.then(edge, cycles) for path in paths)
    return tuple(best_of_partitions([path for paths in arrived[graph.last].values() for path in paths], keep))


def best_of_partitions(paths: list[Path], keep: int) -> list[Path]:
    """Return the best path of each of the `keep` best partitions, the best first."""
    best: dict[UnitPartition, Path] = {}
    for path in sorted(paths, key=lambda path: path.rank):
        best.setdefault(path.partition, path)
        if len(best) == keep:
            break
    return list(best.values())
