"""The rules of locate, load and operators, which have aligned inputs and fire once for each token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from fuseflow.memory.layout import ArrayKind
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import N
from fuseflow.sim.reference.functions import alu_function
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.rule_processes import elementwise
from fuseflow.sim.reference.timed_process import Process, Steps
from fuseflow.tensors.levels import Fibers
from fuseflow.tile_ops import constant_tile


def locate(node: n.Locate, context: NodeContext) -> Sequence[Process]:
    size, level = context.size(node.tensor, node.level), context.level(node)
    if level.kept:
        return context.process(_locate_kept, context.fibers(node))
    if level.stored:
        return context.process(_locate, context.fibers(node), [array.kind for array in level.points(size)])
    if len(node.inputs) == 1:  # the outermost level: its only parent is reference 0
        return context.process(elementwise, lambda crd: crd)
    return context.process(elementwise, lambda crd, ref: N if crd is N or ref is N else ref * size + crd)


def load(node: n.Load, context: NodeContext) -> Sequence[Process]:
    return context.process(_load, *loaded_values(node, context), prod(context.declared[node.tensor].tile))


def loaded_values(node: n.Load, context: NodeContext) -> tuple[list[Any], Any]:
    """Return the stored values of a node's tensor, as numbers or tiles, and its implicit value."""
    decl, values = context.declared[node.tensor], context.tensors[node.tensor].values.astype(float)
    values.flags.writeable = False
    return list(values) if decl.tile else values.tolist(), constant_tile(decl.tile, decl.fill)


def alu(node: n.Alu, context: NodeContext) -> Sequence[Process]:
    return context.process(elementwise, alu_function(node, context))


def reference_lookup(p: Process, fibers: Fibers) -> Callable[[int, int], Any]:
    """Return a function from a coordinate and the reference above it to the reference of the coordinate, which is `N` if nothing is
    stored there."""
    parents = fibers.walk().parents

    def reference(crd: int, ref: int) -> Any:
        if ref < 0 or (parents is not None and ref >= parents):
            raise p.outside()
        below = fibers.locate(ref, crd)
        return N if below is None else below

    return reference


def _locate(p: Process, fibers: Fibers, kinds: Sequence[ArrayKind]) -> Steps:
    """Run a locate in a stored level. Each lookup reads one element of each of the arrays `kinds`."""
    lookups, reference = 0, reference_lookup(p, fibers)

    def at(crd: Any, ref: Any = 0) -> Any:
        nonlocal lookups
        if crd is N or ref is N:
            return N
        lookups += 1
        return reference(crd, ref)

    yield from elementwise(p, at)
    p.elements = dict.fromkeys(kinds, lookups)


def kept_references(fibers: Fibers) -> Callable[[Any], Any]:
    """Return a function from a coordinate of an outermost level to its reference, which is `N` if nothing is stored there."""
    kept = dict(zip(*fibers.fiber(0), strict=True))
    return lambda crd: kept.get(crd, N)


def _locate_kept(p: Process, fibers: Fibers) -> Steps:
    """Run a locate that first keeps the coordinates of an outermost level, one in each firing, and then fires once for each
    token."""
    for _ in range(fibers.entries):
        p.fire(0)
    yield from elementwise(p, kept_references(fibers))
    p.elements = {"crd": fibers.entries}


def _load(p: Process, values: list[Any], fill: Any, words: int) -> Steps:
    absent = 0

    def lookup(ref: Any) -> Any:
        nonlocal absent
        if ref is N:
            absent += 1
            return fill
        if not 0 <= ref < len(values):
            raise p.outside()
        return values[ref]

    yield from elementwise(p, lookup)
    p.elements = {"val": (p.values - absent) * words}


RULES: dict[type[n.Node], Rule] = {
    n.Locate: locate,
    n.Load: load,
    n.Alu: alu,
}
