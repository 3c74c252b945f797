"""Batches: the parts of a graph's work between which its stages wait for each other.

A workspace has two buffers. While a node behind it works on one batch, such as the row of a product, the nodes before it can be at most
one batch ahead. So the elements of the level around a workspace are batches, and levels of batches are nested like the loops. Streams that
have the same shape have the same lists, so they have the same batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fuseflow.estimate.counted.joint_nests import ElementMap, apply_map
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import (
    CountedStream,
    ElementCounts,
    ElementNumbers,
    FiberNest,
    Ints,
    absent_elements,
    below_links,
)
from fuseflow.estimate.flows import Flow, Number
from fuseflow.samml import nodes as n
from fuseflow.samml.stream_shapes import StreamShape
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
        ports = [*node.inputs, *(n.Port(node.name, k) for k in range(len(node.port_names())))]
        around = [lines[port] for port in ports]
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
    lists, filled, elements = memo.once(("batches", depth), (nest,), lambda: list_sums(nest, depth))
    if labels is None:
        return Flow(lists, filled, elements, NONE)
    return Flow(lists, filled, elements, memo.once(("absent", depth), (nest, labels), lambda: _absent_sums(nest, labels, depth)))


@dataclass(slots=True)
class BatchFlows:
    """The flows of the streams of one graph inside of batches, each computed once: several ports share most streams."""

    memo: CountMemo
    _flows: dict[tuple[int, int], Flow] = field(default_factory=dict)

    def of(self, stream: CountedStream, depth: int) -> Flow:
        """Return the flow of a stream inside of each batch at `depth`. The caller keeps the stream alive."""
        key = id(stream), depth
        if key not in self._flows:
            self._flows[key] = batch_flow(self.memo, stream, depth)
        return self._flows[key]


def _absent_sums(nest: FiberNest | None, labels: ElementNumbers, depth: int) -> Number:
    """Return how many elements are `N` inside of each batch at `depth`, given the labels of the elements."""
    absent = absent_elements(labels)
    return NONE if absent is None else as_number(ElementCounts(nest, absent).summed_alike(depth))


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
        array = cast(Ints, numbers)
        return numbers if len(array) == 1 else as_number(apply_map(array, map))

    return Flow(
        tuple(moved(x) for x in flow.lists), tuple(moved(x) for x in flow.filled), moved(flow.elements), moved(flow.absent)
    )


def as_number(array: npt.NDArray[Any]) -> Number:
    """Return an array with the static type `Number`: arithmetic on it works like arithmetic on one number."""
    return cast(Number, array)


NONE = as_number(np.zeros(1, dtype=np.int64))
"""The number 0 in every batch."""
