"""Global iteration: reductions move out of the products that they are factors of, as in compilers without factored iteration.

    T[i, j] = sum(k) A[i, k] * B[k, j];  Y[i, l] = sum(j) T[i, j] * C[j, l]
    ->  Y[i, l] = sum(j, k) A[i, k] * B[k, j] * C[j, l]

This is the baseline that factored iteration is measured against: every operand is joined in one nest, and the product is computed at every
point of it. An operator that does not distribute (a relu of a sum, the sum in a softmax) ends an iteration space. Products are
reassociated, so that rounding differs, and infinities and NaN may differ too.
"""

from __future__ import annotations

from typing import assert_never

from fuseflow.fusion.tree import (
    Constant,
    Operation,
    Reduction,
    Selection,
    Tree,
    TreeTable,
    View,
    all_indices,
    free_indices,
    nodes,
)

LINEAR_OPERANDS: dict[str, tuple[int, ...]] = {"mul": (0, 1), "div": (0,), "neg": (0,), "copy": (0,)}
"""The operators that a sum moves out of, with the positions of the operands from which it does."""


def hoist_sums(tree: Tree, trees: TreeTable, memo: dict[Tree, Tree]) -> Tree:
    """Return `tree` with its sums moved as far out as possible; `memo` maps old nodes to new ones, and is filled."""
    for node in nodes(tree):
        if node not in memo:
            memo[node] = _moved(node, trees, memo)
    return memo[tree]


def _moved(node: Tree, trees: TreeTable, memo: dict[Tree, Tree]) -> Tree:
    match node:
        case Operation():
            return _out_of(trees.op(node.name, tuple(memo[a] for a in node.args)), trees)
        case Reduction():
            body = memo[node.body]
            if isinstance(body, Reduction) and body.op == node.op and not set(body.over) & set(node.over):
                return trees.reduction(node.op, (*node.over, *body.over), node.free, body.body, node.label)
            return trees.reduction(node.op, node.over, node.free, body, node.label)
        case Selection():
            return trees.selection(node.rule, node.over, node.free, memo[node.body], node.label)
        case View() | Constant():
            return node
        case unknown:
            assert_never(unknown)


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
