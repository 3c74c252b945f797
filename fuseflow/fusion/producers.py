"""The nodes in the trees of a region that hold the value of an Einsum, and the indices of that value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from fuseflow.einsum import nodes as ein
from fuseflow.einsum.nodes import Program
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Constant, Operation, Reduction, Selection, Tree, View, nodes

Indices: TypeAlias = tuple[str, ...]
"""Names of indices, one for each dimension."""
UNUSED = "_"
"""The name of an index of an Einsum along which its value does not vary: no stream of the region has it."""


def producer_views(region: FusedRegion, program: Program) -> dict[str, dict[Tree, Indices]]:
    """Return, by Einsum of the region, the nodes of its trees that hold its value, each with the region's index of every
    dimension.

    The nodes are matched by structure, so that the answer is right whatever was renamed, merged or read from a copy. Einsums that
    compute the same share their nodes. An Einsum is left out if the trees do not have its value: nothing reads it, or a global
    iteration has taken it apart.
    """
    sources = {copy.name: copy.source for copy in region.copies}
    indices_by_node: dict[str, dict[Tree, Indices]] = {}
    trees = nodes(*region.trees)
    for node in trees:
        if isinstance(node, View):
            indices_by_node.setdefault(sources.get(node.tensor, node.tensor), {})[node] = node.indices
    for einsum in (e for e in program.einsums if e.name in region.einsums):
        local = ein.index_names(einsum.indices)
        for node in trees:
            names = _match(einsum.body, node, indices_by_node, {})
            if names is not None:
                indices_by_node.setdefault(einsum.name, {})[node] = tuple(names.get(v, UNUSED) for v in local)
    return {e.name: indices_by_node[e.name] for e in program.einsums if e.name in region.einsums and e.name in indices_by_node}


def _match(
    expr: ein.Expr, node: Tree, indices_by_node: Mapping[str, Mapping[Tree, Indices]], names: Mapping[str, str]
) -> dict[str, str] | None:
    """Return the region's names of the indices of `expr` if `node` is its value, given the `names` of some; None if it is not.
    `indices_by_node` has the nodes found so far, by tensor."""
    match expr, node:
        case ein.Access(), _ if node in indices_by_node.get(expr.tensor, {}):
            return _bound(expr.names, indices_by_node[expr.tensor][node], names)
        case ein.Const(), Constant() if expr.value == node.value:
            return dict(names)
        case ein.Apply(), Operation() if expr.op == node.name and len(expr.args) == len(node.args):
            bindings: dict[str, str] | None = dict(names)
            for arg, operand in zip(expr.args, node.args, strict=True):
                bindings = None if bindings is None else _match(arg, operand, indices_by_node, bindings)
            return bindings
        case ein.Reduce(), Reduction() if expr.op == node.op and len(expr.over) == len(node.over):
            outer = {v: w for v, w in names.items() if v not in expr.over}
            inner = _match(expr.body, node.body, indices_by_node, outer)
            if inner is None or not {inner[v] for v in expr.over if v in inner} <= set(node.over):
                return None
            return {v: w for v, w in inner.items() if v not in expr.over} | {v: names[v] for v in expr.over if v in names}
        case ein.Keep(), Selection() if expr.rule == node.rule and len(expr.over) == len(node.over):
            bindings = _match(expr.body, node.body, indices_by_node, names)
            return bindings if bindings and [bindings.get(v) for v in expr.over] == list(node.over) else None
    return None


def _bound(local: Indices, region: Indices, names: Mapping[str, str]) -> dict[str, str] | None:
    """Return `names` with `local` index names bound to the `region` ones of an access; None if that contradicts them."""
    if len(local) != len(region):
        return None  # the region reads the tensor as a vector
    bindings = dict(names)
    for v, w in zip(local, region, strict=True):
        if w != UNUSED and bindings.setdefault(v, w) != w:
            return None
    return bindings
