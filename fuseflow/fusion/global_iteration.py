"""Global iteration: reductions move out of the products that they are factors of, as in compilers without factored iteration.

    T[i, j] = sum(k) A[i, k] * B[k, j];  Y[i, l] = sum(j) T[i, j] * C[j, l]
    ->  Y[i, l] = sum(j, k) A[i, k] * B[k, j] * C[j, l]

This is the baseline that factored iteration is measured against: every operand is joined in one nest, and the product is computed at every
point of it. An operator that does not distribute (a relu of a sum, the sum in a softmax) ends an iteration space. Products are
reassociated, so that rounding differs, and infinities and NaN may differ too.
"""

from __future__ import annotations

from collections.abc import Mapping

from fuseflow.fusion.region_trees import RegionTrees
from fuseflow.fusion.tree import Operation, Reduction, Tree, TreeTable, all_indices, free_indices

LINEAR_OPERANDS: dict[str, tuple[int, ...]] = {"mul": (0, 1), "div": (0,), "neg": (0,), "copy": (0,)}
"""The operators that a sum moves out of, with the positions of the operands from which it does."""


def hoist_sums(fused: RegionTrees, trees: TreeTable) -> RegionTrees:
    """Return the trees of a region with their sums moved as far out as possible, so that there is one iteration space."""
    memo: dict[Tree, Tree] = {}
    for node in fused.nodes:
        memo[node] = _moved(node, trees, memo)
    return fused.renewed(memo)


def _moved(node: Tree, trees: TreeTable, memo: Mapping[Tree, Tree]) -> Tree:
    new = trees.rebuilt(node, memo)
    if isinstance(new, Reduction):
        body = new.body
        if isinstance(body, Reduction) and body.op == new.op and not set(body.over) & set(new.over):
            return trees.reduction(new.op, (*new.over, *body.over), new.free, body.body, new.label)
    return _out_of(new, trees)


def _out_of(node: Tree, trees: TreeTable) -> Tree:
    """Return the sum of the products in place of a product of sums; any other node as it is."""
    if not isinstance(node, Operation):
        return node
    for position in LINEAR_OPERANDS.get(node.name, ()):
        inner = node.args[position]
        others = node.args[:position] + node.args[position + 1 :]
        if isinstance(inner, Reduction) and inner.op == "sum" and not set(inner.over) & all_indices(*others):
            args = (*node.args[:position], inner.body, *node.args[position + 1 :])
            body = _out_of(trees.op(node.name, args), trees)
            over = inner.over
            if isinstance(body, Reduction) and body.op == "sum" and not set(body.over) & set(over):
                over, body = (*over, *body.over), body.body
            free = tuple(v for v in free_indices(body)[body] if v not in over)
            return trees.reduction("sum", over, free, body, inner.label)
    return node
