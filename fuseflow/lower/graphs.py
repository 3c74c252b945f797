"""The end of lowering: a fused region in its order becomes a fusion table, the table becomes a SAMML graph, and the graph gets an
estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fuseflow.estimate import Estimate, TensorStatistics, estimate_graph
from fuseflow.fusion import Copy, FusedRegion
from fuseflow.lower.state import LoweringState
from fuseflow.samml.nodes import Graph
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.transform.public import PublicForm, public_form


@dataclass(frozen=True, slots=True)
class RegionGraph:
    """The table and the graph of a region, its expected cost, and the statistics of the tensors that it writes.

    `own` is the graph in our own primitives. `form` is its public form if the schedule asks for public primitives, else the graph itself.
    """

    table: FusionTable
    own: Graph
    form: PublicForm
    cost: Estimate
    written_statistics: Mapping[str, TensorStatistics]


def region_graph(state: LoweringState, fused: FusedRegion) -> RegionGraph:
    """Return the graph of a region in its order. Raises `FusionError` if no table can be made in this order."""
    table = build_table(fused)
    own = emit(table)
    form = scheduled_form(state, own)
    cost, written = estimate_graph(form.graph, readable_statistics(state, fused))
    return RegionGraph(table, own, form, cost, written)


def scheduled_form(state: LoweringState, own: Graph) -> PublicForm:
    """Return a graph in the primitives that the schedule asks for."""
    return public_form(own) if state.partitioned.schedule.primitives == "public" else PublicForm(own)


def readable_statistics(state: LoweringState, fused: FusedRegion) -> dict[str, TensorStatistics]:
    """Return the statistics of the tensors that a region may read, its copies included."""
    copies = {copy.name: state.statistics.get(copy.name) or _permuted(state, copy, fused) for copy in fused.copies}
    return {**state.statistics, **copies}


def _permuted(state: LoweringState, copy: Copy, fused: FusedRegion) -> TensorStatistics:
    """Return the statistics of a copy, which follow from those of its source."""
    format = state.stored[copy.source].format
    assert format is not None
    return state.statistics[copy.source].permuted(tuple(format.order.index(d) for d in copy.order(fused.order)))
