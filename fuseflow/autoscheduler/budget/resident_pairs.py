"""The cheapest programs where two regions may lie on an array at once (`resident: 2`): neighbours decide together what loading costs.

A region that fits beside the one before it is loaded while that runs, and only what loading takes longer counts. So the cycles of a program
are no sum over its ranges any more: fewer lanes of a range may make room for the next one. But only neighbours are coupled, and a program
is a chain. With the last region in the state, every part of a cheapest path is a cheapest one again, so a shortest path over pairs of
ranges is exact, and takes as many steps as there are pairs. CP-SAT would get the same pairs as tables and prove the same optimum, later.

Each way to run a range (its lanes and depths) is an option. One that takes no fewer cycles, loading and tiles than another is never better
than that, whatever its neighbours are. At a cut, paths are left out that are behind by more than the loading of the next region. That a
region is loaded already if the one before has the same graph is not known here: the estimate of a whole program counts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from heapq import nsmallest
from math import inf

from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.cut_graph import CutGraph, CutState, OrderedRange
from fuseflow.autoscheduler.budget.paths import Path, best_of_partitions
from fuseflow.autoscheduler.budget.range_options import NOTHING, RangeOption, most_loading


def cheapest_pairs(
    graph: CutGraph, options: Callable[[OrderedRange], Sequence[RangeOption]], array: ArraySettings, keep: int, fused: bool = True
) -> tuple[Path, ...]:
    """Return the `keep` cheapest paths as `cheapest_paths` does, where what loading costs depends on the range before."""
    arrived = defaultdict[int, dict[CutState, dict[RangeOption | None, list[Path]]]](
        lambda: defaultdict(lambda: defaultdict(list))
    )
    arrived[0][graph.start][None] = [Path(0.0)]
    slack = most_loading(array)
    for cut in range(graph.last):
        here = {state: _hopeful(groups, keep, slack) for state, groups in arrived.pop(cut, {}).items()}
        fewest = {state: min(paths[0].rank for paths in groups.values()) for state, groups in here.items()}
        near = nsmallest(graph.most_states, here, key=fewest.__getitem__)
        for state, groups in here.items():
            for edge in graph.edges(state, fused and state in near):
                for option in options(edge):
                    later = arrived[edge.after.cut][edge.after]
                    for before, paths in groups.items():
                        hidden = 0.0 if before is None else before.hides(option, array)
                        last = before if option is NOTHING else option
                        later[last] += [
                            Path(path.cycles + option.cycles - hidden, (*path.edges, edge), (*path.options, option))
                            for path in paths
                        ]
    ends = [path for groups in arrived[graph.last].values() for paths in groups.values() for path in paths]
    return tuple(best_of_partitions(ends, keep))


def _hopeful(groups: dict[RangeOption | None, list[Path]], keep: int, slack: float) -> dict[RangeOption | None, list[Path]]:
    """Return the best paths by the last option, without those that can never be as good as the `keep` best again."""
    best = {last: best_of_partitions(paths, keep) for last, paths in groups.items()}
    ranked = best_of_partitions([path for paths in best.values() for path in paths], keep)
    limit = (ranked[-1].cycles if len(ranked) == keep else inf) + slack
    return {last: paths for last, paths in best.items() if paths[0].cycles <= limit}
