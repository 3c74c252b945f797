"""The end of lowering: a fused region in its order becomes a fusion table, the table a SAMML graph, and the graph gets an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fuseflow.estimate import Estimate, TensorStatistics, estimate
from fuseflow.fusion import Copy, FusedRegion
from fuseflow.lower.state import LoweringState
from fuseflow.samml.nodes import Graph
from fuseflow.table import FusionTable, build_table, emit


@dataclass(frozen=True, slots=True)
class RegionGraph:
    """The table and the graph of a region, what it is expected to cost, and the statistics of what it writes."""

    table: FusionTable
    graph: Graph
    cost: Estimate
    written_statistics: Mapping[str, TensorStatistics]


def region_graph(state: LoweringState, fused: FusedRegion) -> RegionGraph:
    """The graph of a region in its order. Raises `FusionError` if no table can be made in this order."""
    table = build_table(fused)
    graph = emit(table)
    cost, written = estimate(graph, readable_statistics(state, fused))
    return RegionGraph(table, graph, cost, written)


def readable_statistics(state: LoweringState, fused: FusedRegion) -> dict[str, TensorStatistics]:
    """The statistics of what a region may read, its copies included."""
    copies = {copy.name: state.statistics.get(copy.name) or _permuted(state, copy, fused) for copy in fused.copies}
    return {**state.statistics, **copies}


def _permuted(state: LoweringState, copy: Copy, fused: FusedRegion) -> TensorStatistics:
    """The statistics of a copy, from those of its source."""
    format = state.stored[copy.source].format
    assert format is not None
    return state.statistics[copy.source].permuted(tuple(format.order.index(d) for d in copy.order(fused.order)))
