"""Lanes: the loops of a region, or of one stage of it, that the schedule deals over several copies of the nodes inside them.

A stage is the nest of one producer of the fused tree: of a reduction, of a selection, or of a result of the region. It has the
name of the Einsum that the producer computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from fuseflow.errors import GraphError, ScheduleError, did_you_mean
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.fuse import to_region_names
from fuseflow.fusion.tree import Producer
from fuseflow.samml.nodes import Graph
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.schedule.section import split_lanes
from fuseflow.table import FusionTable
from fuseflow.transform import LaneGraph, parallelize
from fuseflow.transform.stream_levels import stage_loops

LaneAssignment: TypeAlias = Mapping[str, tuple[tuple[str, int], ...]]
"""The lanes that each node is in, by node name, outermost first, as loop and number. The loop is an index, or `T1.i` where one
stage has lanes for itself."""
StageLoops: TypeAlias = Mapping[str, tuple[str, ...]]
"""The stages of a region, producers first, each with the loops that it runs in, outermost first."""


class StagedRegion(Protocol):
    """A region with its stages and their loops."""

    @property
    def fused(self) -> FusedRegion: ...
    @property
    def stages(self) -> StageLoops: ...


def stages_of(graph: Graph, table: FusionTable) -> StageLoops:
    """Return the stages of a region with their loops, given its table and its graph without lanes."""
    inside = stage_loops(graph, table.loops, table.stages)
    place = {
        evaluation.node.label: at for at, evaluation in enumerate(table.evaluations) if isinstance(evaluation.node, Producer)
    }
    return {
        stage: tuple([index for index in table.order if index in inside[stage]])
        for stage in sorted(inside, key=lambda stage: place.get(stage, len(place)))
    }


def with_lanes(graph: Graph, table: FusionTable, fused: FusedRegion, schedule: Schedule) -> LaneGraph:
    """Return the graph of a region with the lanes that the schedule states. Lanes of an index that needs no loop are left out."""
    lanes = {index: count for index, count in scheduled_lanes(schedule, fused).items() if index in table.order}
    asked = _stage_entries(schedule, fused)
    stages = stages_of(graph, table) if asked else {}
    own = {key: count for key, count in asked.items() if key[1] in stages.get(key[0], ())}
    if own:
        lanes = {index: lanes.get(index, 1) for index in table.order}
    try:
        made = parallelize(graph, table.loops, lanes, table.stages, own, schedule.writers)
        if own:
            _refuse_crossing_lanes(made.graph, own)
        return made
    except ScheduleError as error:
        error.span = error.span or schedule.place("par", schedule.parallel[0][0])
        raise


def _refuse_crossing_lanes(graph: Graph, own: Iterable[tuple[str, str]]) -> None:
    """Raise `ScheduleError` if in a graph a stream of a stage would have to be aligned with a stream that other lanes divide.
    `own` are the stages with lanes for themselves, each with its index.

    Lanes of a stage beside lanes of two indices of its region may meet so. Each alone has a graph.
    """
    try:
        verify(graph)
    except GraphError as error:
        names = ", ".join(f"`{stage}.{index}`" for stage, index in own)
        raise ScheduleError(
            f"the lanes of stages ({names}) cross other lanes of region `{graph.name}`: {error.message}",
            hint="leave out the lanes of one of the indices",
        ) from error


def scheduled_lanes(schedule: Schedule, fused: FusedRegion) -> dict[str, int]:
    """Return the number of lanes that the schedule states for each index of a region, outermost first, as `REGION.INDEX` or else
    as `INDEX`."""
    keys = _keys(fused)
    lanes: dict[str, int] = {}
    for index in fused.order:
        count = next((n for key in keys[index] for name, n in schedule.parallel if name == key), None)
        if count is not None:
            lanes[index] = count
    return lanes


def most_lanes(schedule: Schedule, fused: FusedRegion, index: str) -> int:
    """Return the most lanes over which a region, or a stage of it, deals an index."""
    own = (count for (_, dealt), count in _stage_entries(schedule, fused).items() if dealt == index)
    return max((scheduled_lanes(schedule, fused).get(index, 1), *own))


def without_lanes(node: str, place: Iterable[tuple[str, int]]) -> str:
    """Return the name that a node has in the graph without lanes. `place` has the lanes that it is in."""
    for loop, lane in place:
        node = node.replace(f"/{loop.rpartition('.')[2]}{lane}", "", 1)
    return node


def refuse_unknown_lanes(schedule: Schedule, regions: Iterable[StagedRegion]) -> None:
    """Raise `ScheduleError` for lanes of an index that no region has, or of a stage that its region does not have."""
    if not schedule.parallel:
        return
    by_name = {region.fused.name: region for region in regions}
    names = {key: None for region in by_name.values() for keys in _keys(region.fused).values() for key in keys}
    for name, count in schedule.parallel:
        where, stage, index = split_lanes(name)
        if stage and where in by_name:
            message, hint = _stage_refusal(by_name[where], stage, index)
        elif stage:
            message, hint = f"no region `{where}`", did_you_mean(where, by_name)
        elif name not in names:
            message = f"no region `{where}` has an index `{index}`" if where else "no region has this index"
            hint = _nearest(name, names)
        else:
            continue
        if message:
            raise ScheduleError(f"{count} lanes of `{name}`: {message}", hint=hint, span=schedule.place("par", name))


def _stage_refusal(region: StagedRegion, stage: str, index: str) -> tuple[str, str]:
    """Return why a region cannot deal an index in a stage, and a hint; both are empty if it can."""
    name, stages = region.fused.name, region.stages
    listed = "; ".join(f"`{label}` runs in {', '.join(loops) or 'no loop'}" for label, loops in stages.items())
    if stage not in stages and stage in region.fused.einsums:
        return f"`{stage}` is no stage of region `{name}`, but computed in the nest of another one", listed
    if stage not in stages:
        return f"region `{name}` has no stage `{stage}`", did_you_mean(stage, stages) or listed
    if index not in region.fused.order:
        return f"no loop of region `{name}` is called `{index}`", did_you_mean(index, stages[stage]) or listed
    if index not in stages[stage]:
        return f"stage `{stage}` does not run in loop {index}: its nest neither has it nor lies in it", listed
    return "", ""


def _stage_entries(schedule: Schedule, fused: FusedRegion) -> dict[tuple[str, str], int]:
    """Return the lanes that the schedule states for stages of a region, by stage and index."""
    entries = ((split_lanes(name), count) for name, count in schedule.parallel)
    return {(stage, index): count for (region, stage, index), count in entries if stage and region == fused.name}


def _nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint with the nearest of the names. A name with a region is compared with names of that form, and a bare name with
    bare ones."""
    dotted = "." in name
    return did_you_mean(name, [key for key in names if ("." in key) == dotted])


def _keys(fused: FusedRegion) -> dict[str, tuple[str, ...]]:
    """Return, for each index, the names that a schedule may use for it, those that take precedence first: with the name of its
    region, or of the Einsum that is alone there (which may name the index differently), then bare."""
    names = {index: [f"{fused.name}.{index}"] for index in fused.order}
    if len(fused.einsums) == 1:
        (einsum,) = fused.einsums
        for name in dict.fromkeys((*fused.local_names.get(einsum, {}), *fused.order)):
            (index,) = to_region_names((name,), fused.local_names.get(einsum, {}), fused.indices)
            if index in names:
                names[index].append(f"{einsum}.{name}")
    return {index: (*dict.fromkeys(keys), index) for index, keys in names.items()}
