"""Paths through a graph of cuts, which are programs, and the cheapest of them by the ways to run each range.

Where two regions may lie on an array at once (`resident: 2`), neighbours decide together what loading costs: a region that fits beside the
one before it is loaded while that runs, and only what loading takes longer counts. So the cycles of a program are no sum over its ranges
any more: fewer lanes of a range may make room for the next one. But only neighbours are coupled, and a program is a chain. With the last
region in the state, every part of a cheapest path is a cheapest one again, so a shortest path over pairs of ranges is exact, and takes as
many steps as there are pairs.

Each way to run a range (its lanes and depths) is an option. One that takes no fewer cycles, loading and tiles than another is never better
than that, whatever its neighbours are. At a cut, paths are left out that are behind by more than the loading of the next region. That a
region is loaded already if the one before has the same graph is not known here: the estimate of a whole program counts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import pairwise
from math import inf

from fuseflow.array.capacity import fit_together
from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.costs import RegionCost
from fuseflow.autoscheduler.budget.cut_graph import CutGraph, CutState, OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.cut.units import UnitPartition
from fuseflow.resources import Resources


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRegion:
    """A region on an array: the cycles that it runs, those of loading it, and what it takes."""

    cycles: float
    loading: float
    used: Resources

    def hides(self, other: LoadedRegion, array: ArraySettings) -> float:
        """Return the cycles of loading another region that pass while this one runs."""
        return min(self.cycles, other.loading) if fit_together((self.used, other.used), array) else 0.0

    @property
    def amounts(self) -> tuple[float, ...]:
        """What there is less of in a better region."""
        return self.cycles, self.loading, *(count for _, count in self.used.tiles)


@dataclass(frozen=True, slots=True, eq=False)
class RangeOption:
    """A way to run a range: the `cycles` of its regions (copies, and then its own) with loading, and the first and last of them. Those of
    an option without a decision are a bound, in which no loading counts, neither its own nor that of the next region."""

    cycles: float
    regions: tuple[LoadedRegion, ...] = ()
    decision: RegionDecision | None = None

    @classmethod
    def of(cls, edge: OrderedRange, decision: RegionDecision, cost: RegionCost, array: ArraySettings) -> RangeOption:
        """Return the option of a decision about a range, given its cost."""
        copies = [LoadedRegion(own.cycles - own.loading, own.loading, own.resources) for own in edge.figures[:-1]]
        own = cost.cycles - cost.loading - sum(copy.cycles + copy.loading for copy in copies)
        regions = (*copies, LoadedRegion(max(0.0, own), cost.loading, cost.own))
        hidden = sum(before.hides(after, array) for before, after in pairwise(regions))
        return cls(cost.cycles - hidden, regions, decision)

    def hides(self, other: RangeOption, array: ArraySettings) -> float:
        """Return the cycles of loading the next range that pass while this one runs."""
        if not other.regions:
            return 0.0
        return self.regions[-1].hides(other.regions[0], array) if self.regions else other.regions[0].loading


NOTHING = RangeOption(0.0, decision=RegionDecision(()))
"""The option of a range that computes nothing."""


def undominated_options(options: Iterable[RangeOption]) -> tuple[RangeOption, ...]:
    """Return the options of a range that may be the best beside some neighbours."""
    kept = list[RangeOption]()
    for option in sorted(options, key=lambda option: option.regions[-1].amounts):
        amounts = option.regions[-1].amounts
        if not any(all(a <= b for a, b in zip(other.regions[-1].amounts, amounts, strict=True)) for other in kept):
            kept.append(option)
    return tuple(kept)


def most_loading(array: ArraySettings) -> int:
    """Return the cycles that loading any region takes at most, without hops."""
    return array.load.cycles(sum(array.available.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The first regions of a program, as ranges of its operators one behind the other, and the cycles that they take together. It is a
    whole program if they reach the last operator. `options` says how each range runs, where the choice for one depends on its
    neighbours; it is empty where each range runs in its own best way."""

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

    def extended(self, edge: OrderedRange, option: RangeOption, hidden: float | None) -> Path:
        """Return the path with one more range. `hidden` is what the range before hides of its loading, None if nothing is coupled."""
        options = self.options if hidden is None else (*self.options, option)
        return Path(self.cycles + option.cycles - (hidden or 0.0), (*self.edges, edge), options)


def cheapest_paths(
    graph: CutGraph,
    options: Callable[[OrderedRange], Sequence[RangeOption]],
    keep: int,
    fused: bool = True,
    array: ArraySettings | None = None,
) -> tuple[Path, ...]:
    """Return the `keep` cheapest paths to the last cut that differ in their partitions, the best first. `options` has the ways to run a
    range, none if no program may have it. Without `fused`, every range is one unit. At each cut, longer ranges begin only at the
    `graph.most_states` states that are reached in the fewest cycles. With an `array` on which two regions may lie at once, what loading
    costs depends on the range before."""
    arrived = defaultdict[int, dict[CutState, dict[RangeOption | None, list[Path]]]](
        lambda: defaultdict(lambda: defaultdict(list))
    )
    arrived[0][graph.start][None] = [Path(0.0)]
    slack = 0 if array is None else most_loading(array)
    for cut in range(graph.last):
        here = {state: _hopeful(groups, keep, slack) for state, groups in arrived.pop(cut, {}).items()}
        fewest = {state: min(paths[0].rank for paths in groups.values()) for state, groups in here.items()}
        near = nsmallest(graph.most_states, here, key=fewest.__getitem__)
        for state, groups in here.items():
            for edge in graph.edges(state, fused and state in near):
                for option in options(edge):
                    later = arrived[edge.after.cut][edge.after]
                    for before, paths in groups.items():
                        hidden = None if array is None else 0.0 if before is None else before.hides(option, array)
                        last = before if array is None or option is NOTHING else option
                        later[last] += [path.extended(edge, option, hidden) for path in paths]
    ends = [path for groups in arrived[graph.last].values() for paths in groups.values() for path in paths]
    return tuple(best_of_partitions(ends, keep))


def _hopeful(groups: dict[RangeOption | None, list[Path]], keep: int, slack: float) -> dict[RangeOption | None, list[Path]]:
    """Return the best paths by the last option, without those that can never be as good as the `keep` best again."""
    best = {last: best_of_partitions(paths, keep) for last, paths in groups.items()}
    ranked = best_of_partitions([path for paths in best.values() for path in paths], keep)
    limit = (ranked[-1].cycles if len(ranked) == keep else inf) + slack
    return {last: paths for last, paths in best.items() if paths[0].cycles <= limit}


def best_of_partitions(paths: list[Path], keep: int) -> list[Path]:
    """Return the best path of each of the `keep` best partitions, the best first."""
    best: dict[UnitPartition, Path] = {}
    for path in sorted(paths, key=lambda path: path.rank):
        best.setdefault(path.partition, path)
        if len(best) == keep:
            break
    return list(best.values())
