"""The lanes that are asked for: of an index in a whole graph, or in one stage, which replaces the former there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.samml.nodes import Graph
from fuseflow.transform.stream_levels import Loops, node_levels, stage_loops, stream_levels

Writers: TypeAlias = str
"""How a dense result that lanes compute is written: once, after a merge (`once`); by each lane that knows its coordinates
(`lanes`), which may have to write the implicit value where the result has no entry; or by each lane if at most whole rows lack
entries (`auto`)."""

MAX_NODES = 30_000
"""The most nodes of a graph with lanes."""


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """The requested lanes.

    `lanes` has the number of lanes of each index, outermost first. `own` has the number of lanes of an index in one stage, which
    replaces the number in `lanes`. An index that only stages deal has one lane in `lanes`, at its position in the order.
    `writers` says whether each lane writes its part of a dense result.
    """

    lanes: Mapping[str, int]
    own: Mapping[tuple[str, str], int] = field(default_factory=dict)
    writers: Writers = "once"

    def count(self, stage: str, index: str) -> int:
        """Return over how many lanes a stage deals an index."""
        return self.own.get((stage, index), self.lanes.get(index, 1))

    def counts(self, index: str) -> tuple[int, ...]:
        """Return the different numbers of lanes above one over which an index is dealt, first that of stages without an entry in `own`."""
        counts = (self.lanes[index], *(count for (_, dealt), count in self.own.items() if dealt == index))
        return tuple(count for count in dict.fromkeys(counts) if count > 1)

    def loop(self, stage: str, index: str) -> str:
        """Return the name of the lanes of an index in a stage: `i`, or `T.i` if the stage has an entry in `own`."""
        return f"{stage}.{index}" if (stage, index) in self.own else index

    def check(self, graph: Graph, loops: Loops, stages: Mapping[str, str]) -> None:
        """Raise `ScheduleError` for numbers of lanes below 1, for indices and stages that do not exist, and if two indices that
        are dealt share a loop."""
        indices = {index for node in graph.nodes for index in loops.get(node.name, ())}
        for index, count in self.lanes.items():
            _check_count(index, count)
            if index not in indices:
                raise ScheduleError(f"graph `{graph.name}` has no loop over `{index}`", hint=did_you_mean(index, indices))
        inside = stage_loops(graph, loops, stages) if self.own else {}
        for (stage, index), count in self.own.items():
            _check_count(f"{stage}.{index}", count)
            if stage not in inside:
                hint = did_you_mean(stage, inside) or f"it has {', '.join(f'`{name}`' for name in inside)}"
                raise ScheduleError(f"graph `{graph.name}` has no stage `{stage}`", hint=hint)
            if index not in inside[stage]:
                hint = f"it runs in the loops {', '.join(i for i in self.lanes if i in inside[stage])}"
                raise ScheduleError(f"stage `{stage}` of graph `{graph.name}` has no loop over `{index}`", hint=hint)
        self._refuse_shared(graph, loops, stages)

    def _refuse_shared(self, graph: Graph, loops: Loops, stages: Mapping[str, str]) -> None:
        levels = stream_levels(graph, loops)
        for node in graph.nodes:
            stage = stages.get(node.name, "")
            dealt = {index for index in self.lanes if self.count(stage, index) > 1}
            for indices in node_levels(node, levels):
                shared = sorted(indices & dealt)
                if len(shared) > 1:
                    names = " and ".join(f"`{index}`" for index in shared)
                    where = f"{graph.name}/{stage}" if (stage, shared[-1]) in self.own else graph.name
                    raise ScheduleError(
                        f"indices {names} of graph `{graph.name}` are one loop: `{node.name}` runs over both",
                        hint=f"deal one of them there: `--par {where}.{shared[-1]}=1`",
                    )


def refuse_too_many(graph: Graph, loop: str, count: int, dealt: int) -> None:
    """Raise `ScheduleError` if a graph may have more than `MAX_NODES` nodes once `dealt` of its nodes are copied to `count`
    lanes. `loop` is the name of the lanes."""
    nodes = len(graph.nodes)
    most = nodes + (count - 1) * dealt
    if most > MAX_NODES:
        raise ScheduleError(
            f"{count} lanes of `{loop}` may take {most:,} nodes in graph `{graph.name}`, which has {nodes:,}",
            hint=f"at most {max(1, (MAX_NODES - nodes + dealt) // dealt):,} lanes",
        )


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise ScheduleError(f"{count} lanes of `{name}`: not a number of lanes", hint="1 or more")
