"""A region restricted to some coordinates of one of its indices.

    Y[i, j] = sum(k) A[i, k] * X[k, j], rows 1 and 3     the same graph, with two rows of A, all of X, and two rows of Y

Every access with that index reads these coordinates only; every other access reads the whole tensor, even if it is the same
tensor. So the extents of the graph shrink, and nothing else changes unless an extent becomes 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from fuseflow.einsum.index_names import underscored_name
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import View
from fuseflow.lower.lanes import with_lanes
from fuseflow.lower.region_tile import RestrictedRegion, RestrictedTensor
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.nodes import Edge, Graph, Port
from fuseflow.samml.verify import verify as verify_graph
from fuseflow.schedule import Schedule
from fuseflow.table import build_table, emit
from fuseflow.transform import mark_fiber_fifos


def restricted(fused: FusedRegion, index: str, size: int) -> RestrictedRegion:
    """Return a region whose `index` has `size` coordinates."""
    modes = {view: tuple(d for d, v in enumerate(view.indices) if v == index) for view in fused.views}
    uses: dict[str, set[tuple[int, ...]]] = {}
    for view in fused.views:
        uses.setdefault(view.tensor, set()).add(modes[view])
    taken = {*fused.declared, *(result.name for result in fused.results)}
    stored, tensors, renamed = dict(fused.declared), dict[str, RestrictedTensor](), dict[View, str]()
    outer = dict[str, tuple[str, int]]()
    for view in (v for v in fused.views if modes[v]):
        alone = len(uses[view.tensor]) == 1
        of_modes = "".join(f"_{mode}" for mode in modes[view])
        name = view.tensor if alone else underscored_name(f"{view.tensor}.restricted{of_modes}", taken)
        declared = fused.declared[view.tensor]
        shape = tuple(size if d in modes[view] else extent for d, extent in enumerate(declared.shape))
        stored[name] = replace(declared, name=name, shape=shape)
        tensors[name] = RestrictedTensor(view.tensor, modes[view])
        if not alone:
            renamed[view] = name
            assert declared.format is not None
            levels, order = declared.format.levels, declared.format.order
            # the outermost levels, which stay when it is restricted along these modes (`tensors.restriction`)
            above = min(map(order.index, modes[view])) if all(level.appended for level in levels) else 0
            outer |= {name: (view.tensor, above)} if above else {}
    smaller, sizes = fused.reading(renamed), {**fused.sizes, index: size}
    shapes = (tuple(sizes[v] for v in result.indices) for result in smaller.results)
    results = tuple(replace(r, tensor=replace(r.tensor, shape=shape)) for r, shape in zip(smaller.results, shapes, strict=True))
    resident = fused.resident | {name for name, tensor in tensors.items() if tensor.source in fused.resident}
    region = replace(smaller, results=results, sizes=sizes, stored=stored, copies=(), outer_levels=outer, resident=resident)
    return RestrictedRegion(region, tensors)


def graph_of(region: CompiledRegion, restricted: RestrictedRegion, schedule: Schedule) -> Graph:
    """Return the graph of a restricted region, with the lanes of the schedule, and the depths of the FIFOs of the region where both
    graphs have the same nodes."""
    table = build_table(restricted.fused)
    graph = emit(table)
    if region.einsums and schedule.parallel:
        graph = with_lanes(graph, table, restricted.fused, schedule).graph
    if schedule.primitives == "public":
        from fuseflow.transform.public import public_form  # takes long to load

        graph = public_form(graph).graph
    graph = mark_fiber_fifos(graph)
    verify_graph(graph)
    if structure(graph) != structure(region.graph):
        return graph
    names = {node.name: whole.name for node, whole in zip(graph.nodes, region.graph.nodes, strict=True)}
    return replace(_renamed(graph, names), depths=region.graph.depths)


def _renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return a graph whose nodes have other `names`, by the names that they have."""
    nodes = (
        replace(node, name=names[node.name], inputs=tuple(Port(names[port.node], port.output) for port in node.inputs))
        for node in graph.nodes
    )
    fifos = tuple(Edge(names[edge.node], edge.input) for edge in graph.fiber_fifos)
    return replace(graph, nodes=tuple(nodes), fiber_fifos=fifos)


def structure(graph: Graph) -> object:
    """Return a value that is equal for graphs of the same region, which may have other extents and names of tensors."""
    place = {node.name: n for n, node in enumerate(graph.nodes)}
    nodes = [
        (
            type(node),
            [(place[port.node], port.output) for port in node.inputs],
            [getattr(node, f.name) for f in fields(node) if f.name not in ("name", "inputs", "tensor", "size")],
        )
        for node in graph.nodes
    ]
    fifos = [(place[edge.node], edge.input) for edge in graph.fiber_fifos]
    return nodes, fifos, len(graph.outputs)
