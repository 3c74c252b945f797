"""The end of lowering: a fused region in its order becomes a fusion table, the table becomes a SAMML graph, and the graph gets an
estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fuseflow.costs import Estimate, TensorStatistics, estimate_graph
from fuseflow.costs.statistics import assume_statistics
from fuseflow.fusion import Copy, FusedRegion
from fuseflow.fusion.tree import Producer, nodes
from fuseflow.lower.state import LoweringState, Precedent, PricedTable
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.samml.verify import verify
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.table.renaming import TableNames, renamed_graph
from fuseflow.transform import mark_fiber_fifos
from fuseflow.transform.public.public_graph import PublicForm


@dataclass(frozen=True, slots=True)
class RegionGraph:
    """The graph of a region, its expected cost, and the statistics of the tensors that it writes. `renamed` says that it is the
    graph of another region under the names of this one. `table` is None if it was not made.

    `own` is the graph in fuseflow's own primitives. `form` is its public form if the schedule asks for public primitives, else
    that graph.
    """

    renamed: bool
    table: FusionTable | None
    own: Graph
    form: PublicForm
    cost: Estimate
    written_statistics: Mapping[str, TensorStatistics]


def region_graph(state: LoweringState, fused: FusedRegion, precedent: Precedent | None = None) -> RegionGraph:
    """Return the graph of a region in its order. `precedent` is the outcome of the search for it, or for an earlier region that
    differs in names alone: its graph is taken, renamed where names differ. Raises `FusionError` if no table can be made in this
    order."""
    table, priced, renamed = None, None, None
    if precedent is not None and precedent.candidate.region is fused:
        own, priced = precedent.graph, precedent.priced
        table = precedent.nodes if isinstance(precedent.nodes, FusionTable) else None
    elif precedent is not None and (renamed := _renamed(precedent, fused)) is not None:
        own = renamed
    else:
        table = build_table(fused)
        own = emit(table)
    form = scheduled_form(state, own)
    cost, written = estimated(state, form.graph, fused, priced)
    return RegionGraph(renamed is not None, table, own, form, cost, written)


def _renamed(precedent: Precedent, fused: FusedRegion) -> Graph | None:
    """Return the graph of the precedent under the names of a region, None if the nodes cannot be named without a table."""
    region = precedent.candidate.region
    pairs = list(zip(nodes(*region.trees), nodes(*fused.trees), strict=True))
    labels = {old.label: new.label for old, new in pairs if isinstance(old, Producer) and isinstance(new, Producer)}
    results = {old.name: new.name for old, new in zip(region.results, fused.results, strict=True)}
    read = dict(zip(region.stored, fused.stored, strict=True))
    return renamed_graph(precedent.nodes, precedent.graph, TableNames(fused.name, read | results, labels | results))


def estimated(
    state: LoweringState, graph: Graph, fused: FusedRegion, priced: PricedTable | None = None
) -> tuple[Estimate, Mapping[str, TensorStatistics]]:
    """Return the expected cost of the graph of a region, and the statistics of the tensors that it writes. Graphs that are equal
    up to names, and read tensors of equal statistics, are estimated once, and not at all if their table was `priced` already."""
    statistics, structure, known = readable_statistics(state, fused), graph.structure, state.memo.estimates
    place = {name: n for n, name in enumerate(structure.tensors)}
    declared = tuple([place[name] for name in graph.declared])  # bytes are added in this order
    key = structure.key, declared, tuple([statistics.get(name) for name in structure.tensors if name not in graph.outputs])
    if key not in known:
        cost, written = (priced.cost, priced.written_statistics) if priced else estimate_graph(graph, statistics)
        known[key] = cost, tuple([written[name] for name in graph.outputs])
    cost, results = known[key]
    shared = {name: state.statistics[graph.declared[name].like] for name in graph.outputs if graph.declared[name].flat}
    return cost, {**dict(zip(graph.outputs, results, strict=True)), **shared}


def verified(state: LoweringState, graph: Graph) -> Graph:
    """Return a graph with its fiber FIFOs marked. Graphs that are equal up to names are verified once. Raises `GraphError`."""
    key, known = graph.structure.key, state.memo.fiber_fifos
    if key not in known:
        marked = mark_fiber_fifos(graph)
        verify(marked)
        place = {node.name: n for n, node in enumerate(marked.nodes)}
        known[key] = tuple([(place[edge.node], edge.input) for edge in marked.fiber_fifos])
        return marked
    if not known[key]:
        return graph
    return replace(graph, fiber_fifos=tuple([Edge(graph.nodes[n].name, k) for n, k in known[key]]))


def scheduled_form(state: LoweringState, own: Graph) -> PublicForm:
    """Return a graph (in fuseflow's own primitives) in the primitives that the schedule asks for."""
    if state.partitioned.schedule.primitives != "public":
        return PublicForm(own)
    from fuseflow.transform.public import public_form  # takes long to load

    return public_form(own)


def readable_statistics(state: LoweringState, fused: FusedRegion) -> dict[str, TensorStatistics]:
    """Return the statistics of the tensors that a region may read, with those of its copies."""
    copies = {copy.name: state.statistics.get(copy.name) or _permuted(state, copy, fused) for copy in fused.copies}
    vectors = {name: assume_statistics(fused.stored[name]) for name in fused.shared if name in fused.stored}
    return {**state.statistics, **copies, **vectors}


def _permuted(state: LoweringState, copy: Copy, fused: FusedRegion) -> TensorStatistics:
    """Return the statistics of a copy, which follow from the statistics of its source."""
    format = state.stored[copy.source].format
    assert format is not None
    return state.statistics[copy.source].permuted(tuple(format.order.index(d) for d in copy.order(fused.order)))
