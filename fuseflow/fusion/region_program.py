"""A fused region as an Einsum program again: one statement for each reduction, each selection, and each operator used
more than once.

This is how a region is printed, and its reference meaning: the program evaluates to the same results as the Einsums of the region.

    T[i, j] = sum(k) X[i, k] * W[k, j];  Y[i, j] = sum(k) A[i, k] * T[k, j]
    ->  T[k, j] = sum(l) X[k, l] * W[l, j];  Y[i, j] = sum(k) A[i, k] * T[k, j]     in the region's own indices

A permuted copy is a statement too, with its format declared: `A.copy_1_0[i, j] = A[i, j]`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from fuseflow.einsum import nodes as ein
from fuseflow.einsum import text as einsum_text
from fuseflow.einsum.index_names import unused_name
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, TensorType
from fuseflow.einsum.rounding import expression_precision, round_to
from fuseflow.fusion.order_graph import graph_edges
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Constant, Operation, Producer, Reduction, Selection, Tree, View, free_indices, nodes
from fuseflow.ops import Precision
from fuseflow.tensors import DTYPES


def as_program(region: FusedRegion) -> Program:
    """Return the region's trees as statements, producers first. Intermediates are named after their Einsum, or their operator. A
    result of a narrow type is a statement that rounds, as its writer does."""
    taken = {*region.stored, *(r.name for r in region.results)}
    names = _statement_names(region, taken)
    free = free_indices(*region.trees)
    expressions: dict[Tree, Expr] = {}
    stored = region.declared
    roots = {view.tensor: stored[view.tensor] for view in region.views if view.places}
    places = {places_name(name): replace(root, name=places_name(name), dtype="i32", like=name) for name, root in roots.items()}
    stored = {**stored, **places}
    statements = _Statements(region.sizes, {name: DTYPES[type.dtype].precision for name, type in stored.items()})
    for copy in region.copies:
        statements.state(copy.name, copy.indices, Access(copy.source, copy.indices))
    for node in nodes(*region.trees):
        if isinstance(node, Reduction | Selection) and not set(node.over) <= set(free[node.body]):
            wide = tuple(dict.fromkeys((*free[node.body], *node.over)))
            spread = statements.state(_fresh(f"{node.label}.spread", taken), wide, expressions[node.body])
            body = _body(node, {node.body: spread})
        else:
            body = _body(node, expressions)
        expressions[node] = statements.state(names[node], free[node], body) if node in names else body
    for result in region.results:
        if names.get(result.tree) != result.name:
            statements.state(result.name, result.indices, round_to(expressions[result.tree], result.tensor.dtype))
    tensors = (*(stored[n] for n in sorted(stored)), *statements.declared)
    return Program(tensors, tuple(statements.einsums), tuple(r.name for r in region.results), region.name)


_TYPES: Mapping[Precision, str] = {"integer": "i64", "f32": "f32", "f64": "f64"}


@dataclass(slots=True)
class _Statements:
    """The statements so far, with the `precisions` of their operands and results. A result is declared if it has an index that
    its body lacks, since nothing else tells the extent of that index."""

    sizes: Mapping[str, int]
    precisions: dict[str, Precision]
    einsums: list[Einsum] = field(default_factory=list)
    declared: list[TensorType] = field(default_factory=list)

    def state(self, name: str, indices: tuple[str, ...], body: Expr) -> Expr:
        """Add a statement, and return the access that reads its result."""
        self.einsums.append(Einsum(name, indices, body))
        if not set(indices) <= set(ein.free_indices(body)):
            dtype = _TYPES[expression_precision(body, self.precisions)]
            self.declared.append(TensorType(name, tuple(self.sizes[v] for v in indices), dtype=dtype))
        self.precisions[name] = expression_precision(body, self.precisions)
        return Access(name, indices)


def _statement_names(region: FusedRegion, taken: set[str]) -> dict[Tree, str]:
    """Return the nodes that become statements, with their names: reductions, and operators with several uses."""
    results = {
        r.tree: r.name
        for r in reversed(region.results)
        if isinstance(r.tree, Producer) and r.tree.free == r.indices and not DTYPES[r.tensor.dtype].narrow
    }
    uses = Counter(c for n in nodes(*region.trees) for c in n.operands)
    names: dict[Tree, str] = {}
    plain = ".".join(re.sub(r"\W", "_", word) or "_" for word in region.name.split("."))
    for node in nodes(*region.trees):
        if isinstance(node, Producer):
            names[node] = results.get(node) or _fresh(node.label, taken)
        elif isinstance(node, Operation) and uses[node] > 1:
            names[node] = _fresh(f"{plain}.{node.name}", taken)
    return names


def places_name(tensor: str) -> str:
    """Return the name of a tensor that is 1 at the places of another one."""
    return f"{tensor}.places"


def _fresh(base: str, taken: set[str]) -> str:
    name = unused_name(base, taken)
    taken.add(name)
    return name


def _body(node: Tree, expressions: Mapping[Tree, Expr]) -> Expr:
    match node:
        case View():
            return Access(places_name(node.tensor) if node.places else node.tensor, node.indices)
        case Constant():
            return Const(node.value)
        case Operation():
            return Apply(node.name, tuple(expressions[a] for a in node.args))
        case Reduction():
            return Reduce(node.op, node.over, expressions[node.body])
        case Selection():
            return Keep(node.rule, node.over, expressions[node.body])
        case unknown:
            assert_never(unknown)


def show(region: FusedRegion) -> str:
    """Return the region as Einsums in its own indices, with its order and the reductions merged with an index of their consumer."""
    lines = [f"# region {region.name}: {', '.join(region.einsums)}"]
    lines += [f"# order {', '.join(region.order)}"] if region.order else []
    lines += [f"# {reduction} is complete before loop {index}" for reduction, index in region.merges]
    return "\n".join(lines) + "\n" + einsum_text.show(as_program(region))


def show_order(region: FusedRegion) -> str:
    """Return the partial-order graph: the meaning of every index, every edge with its reason, and the chosen order."""
    lines = [f"region {region.name}", f"order {','.join(region.order)}" if region.order else "order not chosen"]
    for v in region.indices:
        uses = ", ".join(str(view) for view in region.views if v in view.indices)
        blocks = f" in blocks of {region.blocks[v]}" if v in region.blocks else ""
        lines.append(f"  {v} = 0..{region.sizes[v] - 1}{blocks}  in {uses or 'no stored tensor'}")
    lines += [f"  {u} before {v}: {why}" for u, v, why in order_edges(region)] or ["  any order"]
    return "\n".join(lines) + "\n"


def order_edges(region: FusedRegion) -> list[tuple[str, str, str]]:
    """Return the partial-order graph as (above, below, why), in the order of the region's indices."""
    position = {v: p for p, v in enumerate(region.indices)}
    edges = [(above, below, edge.why) for above, below, edge in graph_edges(region.constraints)]
    return sorted(edges, key=lambda e: (position[e[0]], position[e[1]]))
