"""The cycles of the stages of a graph, batch by batch: how long a batch takes is decided by its largest stage.

Example: the rows of one product are the batches between two matrix products that are fused. Row i takes a_i cycles in the first product
and b_i in the second one. Neither product can be more than a row ahead of the other, so all rows take the sum of max(a_i, b_i), which is
more than the larger of the two sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import floor, inf

import numpy as np

from fuseflow.estimate.batches import BatchFlows, BatchLevel, as_number, batch_levels, batch_nest, mapped_flow
from fuseflow.estimate.counted.joint_nests import ElementMap, apply_map, common_refinement
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import ElementCounts, FiberNest, Ints, distinct_elements, sum_by_group
from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.estimate.graph_work import Intervals, Work, process_cycles
from fuseflow.estimate.node_work import firings
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n
from fuseflow.samml.stream_shapes import StreamShape


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


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """The stages of a graph, level by level, the deepest first."""

    levels: tuple[LevelStages, ...]
    memo: CountMemo

    def total(self, fifo_depth: int) -> int:
        """Return the cycles that all batches take together, where a FIFO has `fifo_depth` slots."""
        return int(self.by_level(fifo_depth)[self.levels[-1].level.shape].cycles[0])

    def by_level(self, fifo_depth: int) -> dict[StreamShape, BatchCycles]:
        """Return the cycles of the batches of every level, by the shape of the level.

        A stage may be ahead by the batch that a second buffer holds, and by the batches that the FIFO behind the workspace holds.
        The sums of stages over this many batches in a row count, and the cycles are stored at the first of these batches.
        """
        inside: dict[StreamShape, list[BatchCycles]] = {stages.level.shape: [] for stages in self.levels}
        depths = {stages.level.shape: stages.level.depth for stages in self.levels}
        results = {}
        for stages in self.levels:
            level = stages.level
            parts = [*(BatchCycles(stages.nest, cycles) for cycles in stages.cycles), *inside[level.shape]]
            nest, maps = common_refinement(self.memo, [part.nest for part in parts])
            batches = distinct_elements(nest)
            columns = [np.broadcast_to(_moved(part.cycles, map), batches) for part, map in zip(parts, maps, strict=True)]
            ahead = 1 + fifo_depth / max(1.0, stages.entries)
            results[level.shape] = largest = BatchCycles(nest, largest_stages(nest, columns, ahead))
            if level.around is not None:
                depth = depths[level.around]
                summed = ElementCounts(nest, largest.cycles).summed(depth)
                inside[level.around].append(BatchCycles(batch_nest(nest, depth), summed))
        return results


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
    counts: GraphCounts, work: Work, intervals: Sequence[Intervals], machine: Machine, memo: CountMemo
) -> Stages | None:
    """Return the stages of a graph, given its work and the intervals of each node, on machines with the rules and the lines of `machine`.

    None if some stream of the graph could not be counted.
    """
    if len(counts.streams) < len(counts.flows):
        return None
    *inner, whole = batch_levels(counts.graph)
    place, declared = {node.name: at for at, node in enumerate(counts.graph.nodes)}, counts.graph.declared
    levels, flows = [], BatchFlows(memo)
    for level in inner:
        entries = max(_entries(workspace, counts) for workspace in level.workspaces) if level.workspaces else inf
        parts = [
            _node_cycles(node, level.depth, counts, declared, intervals[place[node.name]], machine, flows) for node in level.nodes
        ]
        levels.append(_level_stages(level, entries, parts, memo))
    occupied = max(work.nodes[place[node.name]].occupied for node in whole.nodes)
    levels.append(LevelStages(whole, None, (np.array([occupied], dtype=np.int64),), inf))
    return Stages(tuple(levels), memo)


def _level_stages(level: BatchLevel, entries: float, parts: Sequence[BatchCycles], memo: CountMemo) -> LevelStages:
    nest, maps = common_refinement(memo, [part.nest for part in parts])
    stages: list[Ints] = []
    for part, map in zip(parts, maps, strict=True):
        cycles = _moved(part.cycles, map)
        if not any((cycles <= other).all() for other in stages):
            stages = [*(other for other in stages if not (other <= cycles).all()), cycles]
    return LevelStages(level, nest, tuple(stages), entries)


def _node_cycles(
    node: n.Primitive,
    depth: int,
    counts: GraphCounts,
    declared: Mapping[str, n.TensorDecl],
    intervals: Intervals,
    machine: Machine,
    batches: BatchFlows,
) -> BatchCycles:
    """Return the cycles of a node in every batch at `depth`."""
    streams = [counts.streams[port] for port in (*node.inputs, *(n.Port(node.name, k) for k in range(len(node.port_names()))))]
    comparisons = counts.comparisons.get(node.name)
    nests = [batch_nest(stream.nest, depth) for stream in streams]
    nest, maps = common_refinement(batches.memo, [*nests, *([batch_nest(comparisons.nest, depth)] if comparisons else [])])
    flows = [mapped_flow(batches.of(stream, depth), map) for stream, map in zip(streams, maps, strict=False)]
    steps = as_number(_moved(comparisons.summed_alike(depth), maps[-1])) if comparisons else 0
    inputs, outputs = flows[: len(node.inputs)], flows[len(node.inputs) :]
    processes = [
        process_cycles(node, (values, closings - 1), interval, machine)  # a batch has no `D`
        for (values, closings), interval in zip(firings(node, declared, inputs, outputs, steps, machine), intervals, strict=False)
    ]
    cycles = [np.atleast_1d(np.asarray(c, dtype=np.int64)) for c in processes]
    return BatchCycles(nest, reduce(np.maximum, cycles))


def _moved(cycles: Ints, map: ElementMap) -> Ints:
    return cycles if len(cycles) == 1 else apply_map(cycles, map)


def _entries(workspace: n.Workspace, counts: GraphCounts) -> float:
    """Return how many entries a workspace holds in a batch on average."""
    emitted = counts.flows[n.Port(workspace.name, len(workspace.port_names()) - 1)].elements
    return emitted / max(1, counts.flows[workspace.inputs[0]].inner)
