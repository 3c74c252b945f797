"""Lanes: the loops of a region, or of one stage of it, that the schedule deals over several copies of the nodes inside them.

A stage is the nest of one producer of the fused tree: of a reduction, of a selection, or of a result of the region. It has the
name of the Einsum that the producer computes. The depths of FIFOs that a schedule states are set behind that: of all FIFOs of a
region (`layer1`), or of one of them and its copies in lanes (`layer1/mul.1`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from fuseflow.errors import GraphError, ScheduleError, did_you_mean
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.tree import Producer
from fuseflow.samml.nodes import Edge, Graph, TensorDecl, WriteValues
from fuseflow.samml.verify import verify
from fuseflow.samml.writers import LaneWriter
from fuseflow.schedule import Schedule
from fuseflow.schedule.section import split_fifo, split_lanes
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
    """Raise `ScheduleError` if a stream of a stage would have to be aligned with a stream that other lanes divide.

    Lanes of a stage beside lanes of two indices of its region may meet so; each alone has a graph. `own` are the stages with lanes
    for themselves, each with its index.
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
    """Return the stated number of lanes of the indices of a region, outermost first: of `REGION.INDEX`, or else of `INDEX`."""
    keys, stated = _keys(fused), dict(schedule.parallel)
    counts = ((index, next((stated[key] for key in keys[index] if key in stated), None)) for index in fused.order)
    return {index: count for index, count in counts if count is not None}


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
            hint = did_you_mean(name, [key for key in names if ("." in key) == ("." in name)])  # both with a region, or both bare
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


def _keys(fused: FusedRegion) -> dict[str, tuple[str, ...]]:
    """Return, for each index, the names that a schedule may use for it, those that take precedence first: with the name of its
    region, or of the Einsum that is alone there (which may name the index differently), then bare."""
    names = {index: [f"{fused.name}.{index}"] for index in fused.order}
    if len(fused.einsums) == 1:
        (einsum,) = fused.einsums
        for name in dict.fromkeys((*fused.local_names.get(einsum, {}), *fused.order)):
            (index,) = fused.own_names((name,))
            if index in names:
                names[index].append(f"{einsum}.{name}")
    return {index: (*dict.fromkeys(keys), index) for index, keys in names.items()}


class DealtRegion(Protocol):
    """A region with its graph, and in `places` the lanes of those of its nodes that are in lanes."""

    @property
    def graph(self) -> Graph: ...
    @property
    def places(self) -> Mapping[str, object]: ...


def writer_notices(schedule: Schedule, regions: Iterable[DealtRegion]) -> tuple[str, ...]:
    """Return sentences about `writers: lanes` without effect: no loop has lanes, or a result cannot be written so."""
    if schedule.writers != "lanes":
        return ()
    graphs = [region.graph for region in regions if region.places]
    if not graphs:
        return ("writers in lanes have no effect: no loop is dealt over lanes (`--par i=4`)",)
    return tuple(
        f"`{node.tensor}` is written once, not in lanes: {_why(graph.declared[node.tensor])}"
        for graph in graphs
        for node in graph.nodes
        if isinstance(node, WriteValues) and not isinstance(node, LaneWriter)
    )


def _why(tensor: TensorDecl) -> str:
    """Return why each lane cannot write its part of a result."""
    format = tensor.format
    if tensor.like:
        return f"it has the places of `{tensor.like}`, and its values are written in their order"
    if any(level.text != "dense" for level in format.levels):
        return f"it is stored {format.short()}, and only where all coordinates are stored a lane knows the place of its own"
    return "no lane has whole rows of it, since the lanes are of a loop that is summed over, or of stored coordinates"


def with_depths(graph: Graph, region: str, places: LaneAssignment, schedule: Schedule) -> Graph:
    """Return the graph of a region with the depths that the schedule states. A depth of one FIFO takes precedence over that of
    all FIFOs. `places` are the lanes of the nodes."""
    stated = {name: depth for name, depth in schedule.depths if split_fifo(name)[0] == region}
    if not stated:
        return graph
    names = fifo_names(graph, places)
    depths: dict[Edge, int] = {}
    if region in stated:
        depths = {edge: stated[region] for edges in names.values() for edge in edges}
    for name, depth in stated.items():
        depths |= dict.fromkeys(names.get(split_fifo(name)[1], ()), depth)
    return graph.with_depths(depths)


def fifo_names(graph: Graph, places: LaneAssignment) -> Mapping[str, tuple[Edge, ...]]:
    """Return the FIFOs of a graph by name: the name of the node that reads, and the number of its input, as in `mul.1`. All
    copies of a FIFO in lanes also have the name that it has without lanes. `places` are the lanes of the nodes."""
    names: dict[str, list[Edge]] = {}
    for node in graph.nodes:
        for k in range(len(node.inputs)):
            for name in dict.fromkeys((node.name, without_lanes(node.name, places.get(node.name, ())))):
                names.setdefault(f"{name}.{k}", []).append(Edge(node.name, k))
    return {name: tuple(edges) for name, edges in names.items()}


def refuse_unknown_depths(schedule: Schedule, regions: Mapping[str, tuple[Graph, LaneAssignment]]) -> None:
    """Raise `ScheduleError` for the depth of a FIFO or of a region that is not there, which would be silently ignored. `regions`
    are the graphs of all regions by name, each with the lanes that its nodes are in."""
    for name, depth in schedule.depths:
        region, fifo = split_fifo(name)
        if region not in regions:
            message, hint = f"no region `{region}`", did_you_mean(region, regions)
        elif fifo and fifo not in (names := fifo_names(*regions[region])):
            message, hint = f"region `{region}` has no FIFO `{fifo}`", did_you_mean(fifo, names)
        else:
            continue
        raise ScheduleError(f"depth {depth} of `{name}`: {message}", hint=hint, span=schedule.place("depth", name))
