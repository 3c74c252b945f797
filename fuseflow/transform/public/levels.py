"""Levels: every coordinate is the scan of a dense vector, and a dense level below a parent is scanned and joined instead of located."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.samml.auxiliary import dense_dimension
from fuseflow.samml.node_check import ROOT
from fuseflow.samml.nodes import Locate, Port, Range, Repeat
from fuseflow.transform.public.rewriter import GraphRewriter


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
        repeats = [w.maker(port) for port in (crd, *parents)]
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
    repeat = w.maker(parent)
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
