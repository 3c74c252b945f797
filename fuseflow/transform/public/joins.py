"""Joins: `left` by union and intersection, an `align` between equal coordinates, and `drop` of empty lists, two levels at a time."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.samml.nodes import Align, Drop, Join, Port, TensorWriter
from fuseflow.transform.public.rewriter import GraphRewriter, Side


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
