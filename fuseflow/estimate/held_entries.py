"""Counts the most entries that nodes hold at once: the largest fiber that a workspace collects, or the coordinates that a locate
keeps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fuseflow.estimate.counted.nests import CountedStream, ElementCounts, FiberNest
from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.resources import HeldEntries
from fuseflow.samml import nodes as n


def held_entries(counts: GraphCounts) -> Mapping[str, HeldEntries]:
    """Return the most entries that each node holds at once, by node name. Nodes whose streams were not counted are left out."""
    held: dict[str, HeldEntries] = {}
    declared = counts.graph.declared
    for node, numbers in zip(counts.graph.nodes, counts.nodes, strict=True):
        if isinstance(node, n.Locate) and node.keeps(declared):
            if numbers.exact:
                held[node.name] = HeldEntries(round(numbers.outputs[0].read))
        elif isinstance(node, n.Workspace) and (collected := collected_stream(node, counts)) is not None:
            outer = counts.graph.types()[node.inputs[0]].depth - 1
            every = node.every if isinstance(node, n.Select) else 0
            held[node.name] = HeldEntries(_largest(collected.nest, outer, every))
    return held


def collected_stream(node: n.Workspace, counts: GraphCounts) -> CountedStream | None:
    """Return the stream whose entries a workspace collects, None if it was not counted: the output of an accumulator or a
    permute, or the input of a selection."""
    if isinstance(node, n.Select):
        return counts.streams.get(node.inputs[-1])
    return counts.streams.get(n.Port(node.name, len(node.port_names()) - 1))


def _largest(nest: FiberNest | None, depth: int, every: int) -> int:
    """Return the most elements of a nest inside of one element at `depth`, or if `every` is not 0, in a group of `every`
    coordinates."""
    if nest is None:
        return 1
    if every:
        return _largest_group(nest, every)
    around = nest.chain[depth - 1] if depth else None
    sums = ElementCounts(nest.above, nest.list_lengths).summed(depth)
    occurs = around.element_times > 0 if around is not None else np.ones(1, dtype=bool)
    return int(sums[occurs].max(initial=0))


def _largest_group(nest: FiberNest, every: int) -> int:
    """Return the most elements that a fiber that occurs has in one group of `every` neighbouring coordinates."""
    level = nest.level
    groups = -(-level.size // every)
    occurs = nest.times[level.owner] > 0
    sizes = np.bincount((level.owner * groups + level.crd // every)[occurs], minlength=1)
    return int(sizes.max(initial=0))
