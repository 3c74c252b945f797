"""A fused region as an Einsum program again: one statement for each reduction and each operator used more than once.

This is how a region is printed, and its reference meaning: the program evaluates to the same results as the Einsums it was made of.

    T[i, j] = sum(k) X[i, k] * W[k, j];  Y[i, j] = sum(k) A[i, k] * T[k, j]
    ->  T[k, j] = sum(l) X[k, l] * W[l, j];  Y[i, j] = sum(k) A[i, k] * T[k, j]     in the region's own indices
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Program, Reduce
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Number, Op, Reduction, Tree, View, children, free_indices, nodes


def as_program(region: FusedRegion) -> Program:
    """The region's trees as statements, producers first. Intermediates are named after their Einsum, or their operator."""
    trees = region.trees
    names = _statement_names(region)
    free = free_indices(*trees)
    built: dict[Tree, Expr] = {}
    einsums: list[Einsum] = []
    for node in nodes(*trees):
        body = _body(node, built)
        if node in names:
            einsums.append(Einsum(names[node], free[node], body))
            built[node] = Access(names[node], free[node])
        else:
            built[node] = body
    for result in region.results:
        if names.get(result.tree) != result.name or free[result.tree] != result.indices:
            einsums.append(Einsum(result.name, result.indices, built[result.tree]))
    stored = (region.stored[n] for n in sorted(region.stored))
    spread = (
        r.tensor for r in region.results if not set(r.indices) <= set(free[r.tree])
    )  # along an index that nothing else sizes
    return Program((*stored, *spread), tuple(einsums), tuple(r.name for r in region.results), region.name)


def _statement_names(region: FusedRegion) -> dict[Tree, str]:
    """Which nodes become statements, and their names: reductions, operators with several uses."""
    trees = region.trees
    results = {r.tree: r.name for r in region.results}
    uses = Counter(c for n in nodes(*trees) for c in children(n))
    taken = {*region.stored, *(r.name for r in region.results)}
    names: dict[Tree, str] = {}
    for node in nodes(*trees):
        statement = isinstance(node, Reduction) or (isinstance(node, Op) and uses[node] > 1)
        if not statement:
            continue
        if node in results and isinstance(node, Reduction) and node.free == _indices(region, node):
            names[node] = results[node]
            continue
        base = node.label if isinstance(node, Reduction) else f"{region.name}.{node.name}" if isinstance(node, Op) else ""
        names[node] = _fresh(base, taken)
    return names


def _indices(region: FusedRegion, node: Tree) -> tuple[str, ...]:
    return next(r.indices for r in region.results if r.tree is node)


def _fresh(base: str, taken: set[str]) -> str:
    name, count = base, 1
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name)
    return name


def _body(node: Tree, built: Mapping[Tree, Expr]) -> Expr:
    match node:
        case View():
            return Access(node.tensor, node.indices)
        case Number():
            return Const(node.value)
        case Op():
            return Apply(node.name, tuple(built[a] for a in node.args))
        case Reduction():
            return Reduce(node.op, node.over, built[node.body])
