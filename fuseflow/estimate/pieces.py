"""Counts a graph in pieces, where the whole would take too many elements at once.

A piece is a range of the coordinates of the outermost loops. Every scan and range at the root emits the coordinates of the piece
only, and the streams inside have what is below these. Below the outermost level, the pieces of every stream add up to the stream.
They do not where a node sees more of the outermost level than an element: a workspace around it, a fork, or levels that are
merged or split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import EMPTY, FiberLevel, FiberNest
from fuseflow.estimate.counted.scan_fibers import Piece
from fuseflow.estimate.flows import Flow
from fuseflow.estimate.stream_walk import GraphStreams, ResultLevel, StreamWalk
from fuseflow.samml import nodes as n


def count_pieces(graph: n.Graph, walk_of: Callable[[Piece], StreamWalk], memo: CountMemo) -> GraphStreams | None:
    """Count a graph in pieces. `walk_of` makes the walk that counts a piece. A piece that has too many elements for `memo` is
    halved.

    None if the pieces would not add up, or are more than `memo` allows. The pattern of a result with more elements than one count
    may take is not put together.
    """
    size = _outer_size(graph)
    if size is None:
        return None
    pieces, waiting = list[GraphStreams](), [(0, size)]
    while waiting:
        first, end = waiting.pop()
        if len(pieces) + len(waiting) >= memo.pieces:
            return None
        walk = walk_of((first, end))
        streams = walk.run()
        if walk.exceeded and end - first > 1:
            middle = (first + end) // 2
            waiting += [(middle, end), (first, middle)]
        elif walk.exceeded or len(streams.streams) < len(streams.flows):
            return None
        else:
            pieces.append(replace(streams, streams={}, comparisons={}))
    return _together(pieces, memo.budget)


def _outer_size(graph: n.Graph) -> int | None:
    """Return the largest size of an outermost level. None if there is none, or if the pieces of the streams would not add up."""
    types, declared = graph.types(), graph.declared
    sizes = []
    for node in graph.nodes:
        depth = types[node.inputs[0]].depth if node.inputs else 0
        outermost = depth == 1 and isinstance(node, n.Workspace | n.Flatten | n.SplitLevel)
        if outermost or isinstance(node, n.Fork | n.Merge):
            return None
        if isinstance(node, n.Scan | n.Range) and depth == 0:
            sizes.append(node.size if isinstance(node, n.Range) else declared[node.tensor].size(node.level))
    return max(sizes, default=None)


def _together(pieces: Sequence[GraphStreams], budget: int) -> GraphStreams:
    """Return the whole streams, given their pieces in order."""
    first = pieces[0]
    return GraphStreams(
        {port: reduce(_added, (piece.flows[port] for piece in pieces)) for port in first.flows},
        {name: sum(piece.steps[name] for piece in pieces) for name in first.steps},
        frozenset.intersection(*(piece.counted for piece in pieces)),
        {name: tuple(_joined_levels([piece.results[name] for piece in pieces], budget)) for name in first.results},
        {},
        {},
    )


def _added(a: Flow, b: Flow) -> Flow:
    """Return the flow of two pieces of a stream together. Both have the one outermost list. A stream without lists is the same in
    each piece."""
    if not a.lists:
        return a
    return Flow(
        (a.lists[0], *(x + y for x, y in zip(a.lists[1:], b.lists[1:], strict=True))),
        (max(a.filled[0], b.filled[0]), *(x + y for x, y in zip(a.filled[1:], b.filled[1:], strict=True))),
        a.elements + b.elements,
        a.absent + b.absent,
        a.read + b.read,
    )


def _joined_levels(pieces: Sequence[Sequence[ResultLevel]], budget: int) -> list[ResultLevel]:
    """Return the levels of a result, given its levels in each piece. A nest of more than `budget` elements is left out."""
    levels = []
    for parts in zip(*pieces, strict=True):
        counts = tuple(map(sum, zip(*(part.shape.counts for part in parts), strict=True)))
        nests = [part.nest for part in parts if part.nest is not None]
        affordable = sum(nest.level.elements for nest in nests) <= budget
        nest = _joined_nest([nest.chain for nest in nests]) if nests and affordable else None
        levels.append(ResultLevel(parts[0].shape._replace(counts=counts), nest))
    return levels


def _joined_nest(chains: Sequence[Sequence[FiberNest]]) -> FiberNest:
    """Return the whole nest, given its pieces in the order of their outermost coordinates."""
    tops = [chain[0].level.expanded(chain[0].link)[1] for chain in chains]
    crds = np.concatenate([chain[0].level.crd[at] for chain, at in zip(chains, tops, strict=True)])
    nest = FiberNest(None, np.zeros(1, dtype=np.int64), FiberLevel(np.array([0, len(crds)]), crds, chains[0][0].level.size))
    for depth in range(1, len(chains[0])):
        parts = [chain[depth] for chain in chains]
        offsets = np.cumsum([0, *(part.level.fibers for part in parts)])
        links = [part.link[at] if depth == 1 else part.link for part, at in zip(parts, tops, strict=True)]
        link = np.concatenate([np.where(k >= 0, k + offset, EMPTY) for k, offset in zip(links, offsets, strict=False)])
        lengths = np.concatenate([part.level.lengths for part in parts])
        pos = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
        nest = FiberNest(nest, link, FiberLevel(pos, np.concatenate([part.level.crd for part in parts]), parts[0].level.size))
    return nest
