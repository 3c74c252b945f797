"""The public form of a graph, made by one rule for each primitive that the public schema lacks.

Precondition: a verified graph without FIFO depths. Effect: a verified graph that writes the same tensors, in other cycles, and that readers
of the public schema execute; or the graph as it was, with the reasons why there is no such form. The writer of the protobuf form knows what
these readers lack: a graph is public if it has no warning.

    range_j = range(rep_i) 5                         ->  range_j = scan(rep_i) dimension@5.0
    left_j = join(range_j; A_j.crd, A_j.ref) left    ->  left_j = join(range_j.crd, range_j.ref; A_j.crd, A_j.ref) union
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseflow.samml.auxiliary_tensors import dense_dimension
from fuseflow.samml.node_check import ROOT
from fuseflow.samml.nodes import Align, Alu, Drop, Graph, Join, Locate, Port, Primitive, Range, Repeat, TensorWriter
from fuseflow.samml.protobuf import compatibility
from fuseflow.transform.public.arithmetic import public_alu
from fuseflow.transform.public.public_graph import PublicForm
from fuseflow.transform.public.rewriter import GraphRewriter, Rule, Side


def range_as_scan(w: GraphRewriter, node: Range) -> Sequence[Port] | None:
    """Return `range n` as the scan of a dense vector of n coordinates. None unless it is below references of the root, which are
    the only ones of that vector."""
    (ref,) = node.inputs
    if w.facts(ref).position != ROOT or w.facts(ref).nullable:
        return None
    return w.scan(ref, dense_dimension(node.size).name, 0, node.name)[:1]


def locate_as_join(w: GraphRewriter, node: Locate) -> Sequence[Port] | None:
    """Return a locate of coordinates and references that a loop repeats as the repeat of their locate. Below a parent, the level
    is scanned and intersected with the coordinates: as it is full, none of them is lost. None if there is no such form."""
    crd, *parents = node.inputs
    signals: list[Port] = []
    while w.facts(crd).type.kind != "crd":
        repeats = [w.nodes[port.node] for port in (crd, *parents)]
        shapes = {w.facts(repeat.inputs[1]).shape for repeat in repeats if isinstance(repeat, Repeat)}
        if len(shapes) != 1 or not all(isinstance(repeat, Repeat) for repeat in repeats):
            return None
        signals.append(repeats[0].inputs[1])
        crd, *parents = (repeat.inputs[0] for repeat in repeats)
    ref = _located(w, node, crd, parents)
    if ref is None:
        return None
    for signal in reversed(signals):
        (ref,) = repeat_by_payload(w, Repeat(f"{node.name}.rep", (ref, signal)))
    return (ref,)


def _located(w: GraphRewriter, node: Locate, crd: Port, parents: Sequence[Port]) -> Port | None:
    if node.keeps(w.graph.declared):
        return None  # public primitives keep no level
    if node.level == 0:
        return w.put(Locate(node.name, (crd, *parents), node.tensor, 0))[0]
    (parent,) = parents
    repeat = w.nodes[parent.node]
    if not isinstance(repeat, Repeat) or w.facts(repeat.inputs[1]).shape is not w.facts(crd).shape:
        return None
    above = repeat.inputs[0]
    if w.facts(above).nullable or not w.graph.declared[node.tensor].format.levels[node.level].full:
        return None
    every, ref = w.scan(above, node.tensor, node.level, f"{node.name}.scan")
    if w.facts(every).shape is w.facts(crd).shape:
        return ref
    return w.join(node.name, "intersect", [(crd, ()), (every, (ref,))])[1]


def repeat_by_payload(w: GraphRewriter, node: Repeat) -> Sequence[Port]:
    """Return a repeat by coordinates as a repeat by references or values that are beside them."""
    stream, signal = node.inputs
    if w.facts(signal).type.kind == "crd":
        beside = w.payload(signal)
        signal = signal if beside is None or beside.node == signal.node else beside
    return w.put(Repeat(node.name, (stream, signal)))


def public_join(w: GraphRewriter, node: Join) -> Sequence[Port]:
    """Return a join whose sides all have a payload. A left join is a union if its first side has all coordinates of the others,
    and an intersection if the others have all of it. Else the union of all sides, intersected with the first, has the coordinates
    of the first side and `N` where another side lacks one."""
    sides: list[Side] = [(node.inputs[crd], tuple(node.inputs[p] for p in payloads)) for crd, payloads in node.sides()]
    if node.kind != "left":
        return w.join(node.name, node.kind, sides)
    first, *others = sides
    if all(w.holds(first[0], crd) for crd, _ in others):
        return w.join(node.name, "union", sides)
    if all(w.holds(crd, first[0]) for crd, _ in others):
        return w.join(node.name, "intersect", sides)
    partial = [side for side in others if not w.holds(side[0], first[0])]
    full = [side for side in others if w.holds(side[0], first[0])]
    crd, *carried = w.join(f"{node.name}.union", "union", [(first[0], ()), *partial])
    crd, *outputs = w.join(node.name, "intersect", [first, *full, (crd, tuple(carried))])
    return (crd, *_in_order(outputs, [first, *full, *partial], sides))


def _in_order(streams: Sequence[Port], sides: Sequence[Side], wanted: Sequence[Side]) -> list[Port]:
    """Return the streams of some sides, one for each payload, in the order of the sides in `wanted`."""
    rest, of_side = list(streams), list[tuple[Side, list[Port]]]()
    for side in sides:
        of_side.append((side, rest[: len(side[1])]))
        del rest[: len(side[1])]
    return [port for side in wanted for other, ports in of_side if other is side for port in ports]


def align_as_identity(w: GraphRewriter, node: Align) -> Sequence[Port] | None:
    """Return the stream of an align unchanged if its coordinates are equal, else None."""
    old, new, below = node.inputs
    return (below,) if w.facts(old).shape is w.facts(new).shape else None


def drop_by_coordinates(w: GraphRewriter, node: Drop) -> Sequence[Port] | None:
    """Return a drop of empty lists by pairs of levels, the innermost first, with unchanged values: writers ignore a stop after a
    stop. None if the values have other readers, which would see these stops."""
    *crds, last = node.inputs
    read_by = [e.node for k in range(len(node.inputs)) for e in w.readers.get(Port(node.name, k), ())]
    before = w.graph.by_name
    if node.value is not None or len(crds) < 2 or w.facts(last).nullable:
        return None
    if not all(isinstance(before[reader], TensorWriter) for reader in read_by):
        return None
    inner, kept = crds[-1], list[Port]()
    for outer in reversed(crds[:-1]):
        above, below, _ = w.put(Drop(node.name, (outer, inner, inner)))
        kept.insert(0, below)
        inner = above
    return (inner, *kept, last)


RULES: Mapping[type[Primitive], Rule] = {
    Range: range_as_scan,
    Locate: locate_as_join,
    Join: public_join,
    Align: align_as_identity,
    Repeat: repeat_by_payload,
    Alu: public_alu,
    Drop: drop_by_coordinates,
}


def public_form(graph: Graph) -> PublicForm:
    """Return the public form of a graph, or the graph with the reasons why there is none."""
    rewriter = GraphRewriter(graph)
    public = rewriter.run(RULES)
    warnings = compatibility(public, rewriter.prover.facts)
    return PublicForm(graph, warnings) if warnings else PublicForm(public, sources=rewriter.sources)
