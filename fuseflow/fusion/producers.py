"""Where the values of an Einsum stand in the trees of its region, and in which indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from fuseflow.einsum import nodes as ein
from fuseflow.einsum.nodes import Program
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Constant, Operation, Reduction, Tree, View, nodes

Indices: TypeAlias = tuple[str, ...]
UNUSED = "_"
"""An index of an Einsum along which its value does not vary: no stream of the region has it."""


def producer_views(region: FusedRegion, program: Program) -> dict[str, dict[Tree, Indices]]:
    """By Einsum of the region, the nodes of its trees that hold its value, each with the region's index of every dimension.

    Found by structure, so that it holds whatever was renamed, merged or read from a copy. Einsums that compute the same share their
    nodes. An Einsum is left out if the trees do not have its value: nothing reads it, or a global iteration has taken it apart.
    """
    sources = {copy.name: copy.source for copy in region.copies}
    found: dict[str, dict[Tree, Indices]] = {}
    trees = nodes(*region.trees)
    for node in trees:
        if isinstance(node, View):
            found.setdefault(sources.get(node.tensor, node.tensor), {})[node] = node.indices
    for einsum in (e for e in program.einsums if e.name in region.einsums):
        local = ein.index_names(einsum.indices)
        for node in trees:
            names = _match(einsum.body, node, found, {})
            if names is not None:
                found.setdefault(einsum.name, {})[node] = tuple(names.get(v, UNUSED) for v in local)
    return {e.name: found[e.name] for e in program.einsums if e.name in region.einsums and e.name in found}


def _match(
    expr: ein.Expr, node: Tree, found: Mapping[str, Mapping[Tree, Indices]], names: Mapping[str, str]
) -> dict[str, str] | None:
    """What the indices of `expr` are called if `node` is its value, given what some are called; None if it is not."""
    match expr, node:
        case ein.Access(), _ if node in found.get(expr.tensor, {}):
            return _bound(expr.names, found[expr.tensor][node], names)
        case ein.Const(), Constant() if expr.value == node.value:
            return dict(names)
        case ein.Apply(), Operation() if expr.op == node.name and len(expr.args) == len(node.args):
            now: dict[str, str] | None = dict(names)
            for arg, below in zip(expr.args, node.args, strict=True):
                now = None if now is None else _match(arg, below, found, now)
            return now
        case ein.Reduce(), Reduction() if expr.op == node.op and len(expr.over) == len(node.over):
            outside = {v: w for v, w in names.items() if v not in expr.over}
            inside = _match(expr.body, node.body, found, outside)
            if inside is None or not {inside[v] for v in expr.over if v in inside} <= set(node.over):
                return None
            return {v: w for v, w in inside.items() if v not in expr.over} | {v: names[v] for v in expr.over if v in names}
    return None


def _bound(local: Indices, region: Indices, names: Mapping[str, str]) -> dict[str, str] | None:
    """`names` with the indices of an access, or None where they contradict it."""
    now = dict(names)
    for v, w in zip(local, region, strict=True):
        if w != UNUSED and now.setdefault(v, w) != w:
            return None
    return now
