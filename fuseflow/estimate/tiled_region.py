"""The estimate of a region that runs tile by tile: one tile in the middle, times the number of tiles.

Nothing is counted for a part of a tensor that is not stored dense: its entries are taken as spread evenly over the coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from fuseflow.costs import TensorStatistics
from fuseflow.estimate.counted.patterns import dense_pattern
from fuseflow.estimate.graph_counts import Work
from fuseflow.estimate.graph_cycles import Bound
from fuseflow.estimate.stream_flow import Number
from fuseflow.samml.nodes import Graph, TensorDecl


@dataclass(frozen=True, slots=True)
class TileGraph:
    """The graph of a tile. `runs` is the number of tiles, where a smaller one counts as a part. `parts` has the tensor of which a tensor
    of the graph is a part, and `whole` the declarations of the whole region."""

    graph: Graph
    runs: float
    parts: Mapping[str, str]
    whole: Mapping[str, TensorDecl]


def part_statistics(whole: TensorStatistics, part: TensorDecl) -> TensorStatistics:
    """Return the statistics of a tensor with fewer coordinates, whose levels are as full as those of the whole one."""
    sizes = part.level_sizes
    shares = (size / max(1, before) for size, before in zip(sizes, whole.sizes, strict=True))
    return TensorStatistics(sizes, tuple(fanout * share for fanout, share in zip(whole.fanouts, shares, strict=True)))


def all_tiles(work: Work, tiled: TileGraph) -> Work:
    """Return the work of all tiles of a region, given that of one, and what is known of the whole results."""
    runs = tiled.runs
    statistics, patterns = dict(work.statistics), {}
    for name in work.statistics:
        whole = tiled.whole[name]
        statistics[name] = part_statistics(work.statistics[name], whole)
        if whole.format.all_dense:
            patterns[name] = dense_pattern(whole.level_sizes)
    names = {own: source for own, source in tiled.parts.items() if source != own}
    return replace(
        work,
        nodes=tuple(
            replace(node, firings=runs * node.firings, occupied=runs * node.occupied, exact=False) for node in work.nodes
        ),
        operators={operator: runs * count for operator, count in work.operators.items()},
        traffic=tuple(
            replace(row, tensor=names.get(row.tensor, row.tensor), bytes=runs * row.bytes, exact=False) for row in work.traffic
        ),
        statistics=statistics,
        patterns=patterns,
    )


SHARES = ("refresh", "node", "fifo", "stands_still", "limit")
"""The fields of `Bound` that are no cycles."""


def all_cycles(bound: Bound, tiled: TileGraph, first: Number) -> Bound:
    """Return the bounds of all tiles, given those of one, and the cycles of the transfers before the first and behind the last."""
    times = {field.name: tiled.runs * getattr(bound, field.name) for field in fields(bound) if field.name not in SHARES}
    return replace(bound, **{**times, "control": times["control"] + first})
