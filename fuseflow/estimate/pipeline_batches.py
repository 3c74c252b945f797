"""Batches: the parts of a graph's work between which its stages wait for each other, and the cycles of the stages, batch by batch.

A workspace has two buffers. While a node behind it works on one batch, such as the row of a product, the nodes before it can be at most
one batch ahead. So the elements of the level around a workspace are batches, and levels of batches are nested like the loops. Streams that
have the same shape have the same lists, so they have the same batches.

How long a batch takes is decided by its largest stage. Example: the rows of one product are the batches between two matrix products that
are fused. Row i takes a_i cycles in the first product and b_i in the second one. Neither product can be more than a row ahead of the
other, so all rows take the sum of max(a_i, b_i), which is more than the larger of the two sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import floor, inf

import numpy as np

from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nest_refinement import ElementMap, apply_map, common_refinement
from fuseflow.estimate.counted.stream_trie import (
    CountedStream,
    ElementCounts,
    FiberNest,
    Ints,
    absent_elements,
    below_links,
    distinct_elements,
    sum_by_group,
)
from fuseflow.estimate.graph_counts import GraphCounts, Work, process_cycles
from fuseflow.estimate.node_work import firings
from fuseflow.estimate.stream_flow import Flow, Number, as_number
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import Paces
from fuseflow.samml import nodes as n
from fuseflow.samml.stream_alignment import StreamShape
from fuseflow.samml.verify import stream_facts


@dataclass(frozen=True, slots=True, eq=False)
class BatchLevel:
    """A level of batches: each element at `depth`, of a stream whose lists down to there have this `shape`, is one batch.

    `around` is the shape of the next level of batches outwards, None at the root. `workspaces` hold one batch each in a buffer,
    and `nodes` are the nodes that work inside of these batches, but not inside of batches of a deeper level.
    """

    shape: StreamShape
    depth: int
    around: StreamShape | None
    workspaces: tuple[n.Workspace, ...]
    nodes: tuple[n.Primitive, ...]


def batch_levels(graph: n.Graph) -> tuple[BatchLevel, ...]:
    """Return the levels of batches of a verified graph, the deepest first. The last one is the whole run as one batch."""
    lines = {port: _line(facts.shape) for port, facts in stream_facts(graph).items()}
    workspaces: dict[StreamShape, list[n.Workspace]] = {line[0]: [] for line in lines.values()}
    for node in graph.nodes:
        if isinstance(node, n.Workspace):
            workspaces.setdefault(lines[node.inputs[0]][-2], []).append(node)
    members: dict[StreamShape, list[n.Primitive]] = {shape: [] for shape in workspaces}
    for node in graph.nodes:
        around = [lines[port] for port in (*node.inputs, *node.ports)]
        if isinstance(node, n.Join | n.Align):  # it compares whole lists
            around.append(lines[node.inputs[0]][:-1])
        shared = [shape for shape in _common(around) if shape in workspaces]
        members[shared[-1]].append(node)
    levels = []
    for shape, inside in members.items():
        if not inside:
            continue
        outer = [s for s in _line(shape)[:-1] if members.get(s)]
        depth = len(_line(shape)) - 1
        levels.append(BatchLevel(shape, depth, outer[-1] if outer else None, tuple(workspaces[shape]), tuple(inside)))
    return tuple(sorted(levels, key=lambda level: -level.depth))


def _line(shape: StreamShape) -> tuple[StreamShape, ...]:
    """Return the shapes around a shape, the outermost first, and the shape itself."""
    line = [shape]
    while line[-1].parent is not None:
        line.append(line[-1].parent)
    return tuple(reversed(line))


def _common(lines: Iterable[tuple[StreamShape, ...]]) -> tuple[StreamShape, ...]:
    """Return the outer shapes that all lines share."""
    shared = []
    for shapes in zip(*lines, strict=False):
        if any(shape is not shapes[0] for shape in shapes):
            break
        shared.append(shapes[0])
    return tuple(shared)


def batch_nest(nest: FiberNest | None, depth: int) -> FiberNest | None:
    """Return the outer `depth` levels of `nest`, whose elements are the batches. None at depth 0, or without a nest."""
    return nest.chain[depth - 1] if nest is not None and depth else None


def batch_flow(memo: CountMemo, stream: CountedStream, depth: int) -> Flow:
    """Return the flow of a stream inside of each batch at `depth`. Its numbers are arrays: one number for each distinct batch, or
    one number that holds for all."""
    nest, labels = stream.nest, stream.labels

    def absent_sums() -> Number:
        absent = None if labels is None else absent_elements(labels)
        return as_number(np.zeros(1, dtype=np.int64) if absent is None else ElementCounts(nest, absent).summed_alike(depth))

    lists, filled, elements = memo.once(("batches", depth), (nest,), lambda: list_sums(nest, depth))
    return Flow(lists, filled, elements, memo.once(("absent", depth), (nest, labels), absent_sums))


def list_sums(nest: FiberNest | None, depth: int) -> tuple[tuple[Number, ...], tuple[Number, ...], Number]:
    """Return how many lists and filled lists there are at each level inside of a batch, and how many elements, in the form of
    `Flow`: one number for each distinct batch, or one that holds for all."""
    elements, filled = [np.ones(1, dtype=np.int64)], list[Ints]()
    for inner in nest.chain[depth:] if nest is not None else ():
        has_elements: Ints = (inner.level.lengths > 0).astype(np.int64)
        elements.append(ElementCounts(inner.above, inner.list_lengths).summed_alike(depth))
        filled.append(ElementCounts(inner.above, below_links(has_elements, inner.links)).summed_alike(depth))
    *lists, innermost = map(as_number, elements)
    return tuple(lists), tuple(map(as_number, filled)), innermost


def mapped_flow(flow: Flow, map: ElementMap) -> Flow:
    """Return the flow inside of finer batches; `map` leads from each of them to its batch in `flow`, and None leaves `flow` as it
    is."""
    if map is None:
        return flow

    def moved(numbers: Number) -> Number:
        return numbers if np.size(numbers) == 1 else as_number(apply_map(np.asarray(numbers), map))

    return flow.mapped(moved)


@dataclass(frozen=True, slots=True, eq=False)
class LevelStages:
    """The stages of one level of batches: the cycles of each in every distinct batch, which is an element of `nest`, or one number for all.

    A stage that is nowhere larger than another is left out. `entries` is the largest number of entries that a workspace of the level
    holds in a batch, on average. It is infinite if stages are never ahead by more than one batch.
    """

    level: BatchLevel
    nest: FiberNest | None
    cycles: tuple[Ints, ...]
    entries: float


@dataclass(frozen=True, slots=True, eq=False)
class BatchCycles:
    """The cycles of each distinct batch of a level, which is an element of `nest`, or one number that holds for all."""

    nest: FiberNest | None
    cycles: Ints


def total_cycles(memo: CountMemo, levels: Sequence[LevelStages], fifo_depth: int) -> int:
    """Return the cycles that all batches take together, given the stages of a graph, level by level, the deepest first. A FIFO has
    `fifo_depth` slots.

    A stage may be ahead by the batch that a second buffer holds, and by the batches that the FIFO behind the workspace holds.
    The sums of stages over this many batches in a row count, and the cycles are stored at the first of these batches.
    """
    inside: dict[StreamShape, list[BatchCycles]] = {stages.level.shape: [] for stages in levels}
    depths = {stages.level.shape: stages.level.depth for stages in levels}
    for stages in levels:
        level = stages.level
        parts = [*(BatchCycles(stages.nest, cycles) for cycles in stages.cycles), *inside[level.shape]]
        nest, maps = common_refinement(memo, [part.nest for part in parts])
        batches = distinct_elements(nest)
        columns = [np.broadcast_to(_moved(part.cycles, map), batches) for part, map in zip(parts, maps, strict=True)]
        ahead = 1 + fifo_depth / max(1.0, stages.entries)
        largest = largest_stages(nest, columns, ahead)
        if level.around is not None:
            depth = depths[level.around]
            inside[level.around].append(BatchCycles(batch_nest(nest, depth), ElementCounts(nest, largest).summed(depth)))
    return int(largest[0])  # the last level is the whole run as one batch


def largest_stages(nest: FiberNest | None, stages: Sequence[Ints], ahead: float) -> Ints:
    """Return the cycles of batches if a stage may be `ahead` batches ahead: every `ahead` batches in a row take the cycles of
    their largest stage.

    Between two whole numbers of batches the cycles are interpolated.
    """
    whole = floor(ahead)
    share = ahead - whole
    cycles: Ints = _largest_sums(nest, stages, whole)
    if share:
        cycles = np.rint((1 - share) * cycles + share * _largest_sums(nest, stages, whole + 1)).astype(np.int64)
    return cycles


def _largest_sums(nest: FiberNest | None, stages: Sequence[Ints], batches: int) -> Ints:
    """Return the largest sum of a stage over every `batches` batches of a list, at the first of them, and 0 at the others."""
    if batches == 1 or nest is None:
        largest: Ints = np.maximum.reduce(list(stages))
        return largest
    within = np.arange(nest.level.elements) - nest.level.pos[:-1][nest.level.owner]
    first = within % batches == 0
    window = np.cumsum(first) - 1
    sums = [sum_by_group(window, cycles, int(first.sum())) for cycles in stages]
    result = np.zeros(len(within), dtype=np.int64)
    result[first] = np.maximum.reduce(sums)
    return result


def measure_stages(
    counts: GraphCounts, work: Work, paces: Sequence[Paces], machine: Machine, memo: CountMemo
) -> tuple[LevelStages, ...] | None:
    """Return the stages of a graph, the deepest level first, given its work and the paces of each node, on machines with the
    rules and the lines of `machine`. None if some stream of the graph could not be counted."""
    if len(counts.streams) < len(counts.flows):
        return None
    *inner, whole = batch_levels(counts.graph)
    place = {node.name: at for at, node in enumerate(counts.graph.nodes)}
    levels = []
    for level in inner:
        entries = max(_entries(workspace, counts) for workspace in level.workspaces) if level.workspaces else inf
        parts = [_node_cycles(node, level.depth, counts, paces[place[node.name]], machine, memo) for node in level.nodes]
        levels.append(_level_stages(level, entries, parts, memo))
    occupied = max(work.nodes[place[node.name]].occupied for node in whole.nodes)
    levels.append(LevelStages(whole, None, (np.array([occupied], dtype=np.int64),), inf))
    return tuple(levels)


def _level_stages(level: BatchLevel, entries: float, parts: Sequence[BatchCycles], memo: CountMemo) -> LevelStages:
    nest, maps = common_refinement(memo, [part.nest for part in parts])
    stages: list[Ints] = []
    for part, map in zip(parts, maps, strict=True):
        cycles = _moved(part.cycles, map)
        if not any((cycles <= other).all() for other in stages):
            stages = [*(other for other in stages if not (other <= cycles).all()), cycles]
    return LevelStages(level, nest, tuple(stages), entries)


def _node_cycles(
    node: n.Primitive, depth: int, counts: GraphCounts, paces: Paces, machine: Machine, memo: CountMemo
) -> BatchCycles:
    """Return the cycles of a node in every batch at `depth`."""
    declared = counts.graph.declared
    streams = [counts.streams[port] for port in (*node.inputs, *node.ports)]
    comparisons = counts.comparisons.get(node.name)
    nests = [batch_nest(stream.nest, depth) for stream in streams]
    nest, maps = common_refinement(memo, [*nests, *([batch_nest(comparisons.nest, depth)] if comparisons else [])])
    flows = [mapped_flow(batch_flow(memo, stream, depth), map) for stream, map in zip(streams, maps, strict=False)]
    steps = as_number(_moved(comparisons.summed_alike(depth), maps[-1])) if comparisons else 0
    inputs, outputs = flows[: len(node.inputs)], flows[len(node.inputs) :]
    turn = dict(counts.graph.turns).get(node.name)
    processes = [
        process_cycles(node, (values, closings - 1), pace, machine, turn)  # a batch has no `D`
        for (values, closings), pace in zip(firings(node, declared, inputs, outputs, steps, machine), paces, strict=False)
    ]
    cycles = [np.atleast_1d(np.asarray(c, dtype=np.int64)) for c in processes]
    return BatchCycles(nest, reduce(np.maximum, cycles))


def _moved(cycles: Ints, map: ElementMap) -> Ints:
    return cycles if len(cycles) == 1 else apply_map(cycles, map)


def _entries(workspace: n.Workspace, counts: GraphCounts) -> float:
    """Return how many entries a workspace holds in a batch on average."""
    emitted = counts.flows[workspace.ports[-1]].elements
    return emitted / max(1, counts.flows[workspace.inputs[0]].inner)
