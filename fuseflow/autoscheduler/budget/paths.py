"""Paths through a graph of cuts, which are programs, and the cheapest of them where the costs of ranges add up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from math import inf

from fuseflow.autoscheduler.budget.cut_graph import CutGraph, CutState, OrderedRange
from fuseflow.autoscheduler.budget.range_options import RangeOption
from fuseflow.cut.units import UnitPartition


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Ranges one after the other from the first cut on, and their cycles: a program if it reaches the last cut. `options` has the way to
    run each range if neighbours decide about that together (`resident_pairs`); it is empty if each has the best one."""

    cycles: float
    edges: tuple[OrderedRange, ...] = ()
    options: tuple[RangeOption, ...] = ()

    @property
    def partition(self) -> UnitPartition:
        """The ranges of units."""
        return tuple(edge.part for edge in self.edges)

    @property
    def rank(self) -> tuple[float, int, tuple[tuple[int, int, int], ...]]:
        """The key by which paths are sorted: fewer cycles, then fewer regions, then orders that the compiler ranks better."""
        return self.cycles, len(self.edges), tuple((*edge.part, edge.rank) for edge in self.edges)


def cheapest_paths(graph: CutGraph, cost: Callable[[OrderedRange], float], keep: int, fused: bool = True) -> tuple[Path, ...]:
    """Return the `keep` cheapest paths to the last cut that differ in their partitions, the best first. `cost` is the cycles of a
    range, infinite if no program may have it; infinite paths are left out. Without `fused`, every range is one unit. At each cut,
    longer ranges begin only at the `graph.most_states` states that are reached in the fewest cycles."""
    arrived = defaultdict[int, dict[CutState, list[Path]]](dict)
    arrived[0][graph.start] = [Path(0.0)]
    for cut in range(graph.last):
        here = {state: best_of_partitions(paths, keep) for state, paths in arrived.pop(cut, {}).items()}
        near = nsmallest(graph.most_states, here, key=lambda state: here[state][0].rank)
        for state, paths in here.items():
            for edge in graph.edges(state, fused and state in near):
                cycles = cost(edge)
                if cycles < inf:
                    longer = [Path(path.cycles + cycles, (*path.edges, edge)) for path in paths]
                    arrived[edge.after.cut].setdefault(edge.after, []).extend(longer)
    return tuple(best_of_partitions([path for paths in arrived[graph.last].values() for path in paths], keep))


def best_of_partitions(paths: list[Path], keep: int) -> list[Path]:
    """Return the best path of each of the `keep` best partitions, the best first."""
    best: dict[UnitPartition, Path] = {}
    for path in sorted(paths, key=lambda path: path.rank):
        best.setdefault(path.partition, path)
        if len(best) == keep:
            break
    return list(best.values())
