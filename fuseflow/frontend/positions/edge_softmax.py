"""The softmax over the edges of each target, as graph networks write it: recognized from its operators.

    maximum = scatter_max(scores, target)
    exponentials = exp(scores - maximum[target])
    weights = exponentials / (scatter_sum(exponentials, target) + 1e-16)[target]

The small number keeps a sum that is at least 1 as it is, since the largest exponential of each target is 1. It is there for targets without
edges, which have no weights to be divided. Where the edges come from a sparse matrix, the maximum of a target without edges is
minus infinity and is replaced by a zero, `where(isinf(maximum), 0, maximum)`, which no edge reads: scores are finite numbers.
"""

from __future__ import annotations

from torch.fx import Node

from fuseflow.frontend.positions.selection_products import extreme_along, product_along
from fuseflow.frontend.trace import fx_origin

_LARGEST_GUARD = 1e-12
"""The largest number that may be added to a sum. As the sum is at least 1, so small a number is lost in single precision."""


def scores_of_softmax(division: Node) -> tuple[Node, Node] | None:
    """Return the scores whose softmax the node `division` computes, and the selection that adds up the exponentials. None for
    others."""
    exponentials, divisor = _operands(division, "div")
    (shifted,) = _operands(exponentials, "exp")[:1]
    scores, subtracted = _operands(shifted, "sub")
    total, maximum = _without_guard(_gathered(divisor)), _finite(_gathered(subtracted))
    if scores is None or divisor is None or subtracted is None or total is None or maximum is None:
        return None
    if total.target is not product_along or total.args[1] is not exponentials:
        return None
    if maximum.target is not extreme_along or not maximum.args[5] or _plain(maximum.args[2]) is not _plain(scores):
        return None
    selection = total.args[0]
    same_edges = divisor.args[0] is subtracted.args[0] and selection is maximum.args[0]
    return (scores, selection) if same_edges and isinstance(selection, Node) else None


def _operands(node: object, name: str) -> tuple[Node | None, Node | None]:
    """Return the first two operands of an operator of this name that are values. Return None for an operand that is no value, and
    for both operands of any other node."""
    if not isinstance(node, Node) or node.op != "call_function" or fx_origin.short_name(node.target).rstrip("_") != name:
        return None, None
    first, second = (*node.args, None, None)[:2]
    return (first if isinstance(first, Node) else None), (second if isinstance(second, Node) else None)


def _plain(node: object) -> object:
    operand, _ = _operands(node, "detach")
    return node if operand is None else _plain(operand)


def _gathered(node: Node | None) -> Node | None:
    """Return the operand whose rows the gather `node` takes, or None if the node is no gather."""
    if node is not None and node.target is product_along and isinstance(node.args[1], Node):
        return node.args[1]
    return None


def _finite(node: Node | None) -> Node | None:
    """Return the operand of a node that replaces infinities by 0, or the node itself if it does not."""
    condition, *_ = _operands(node, "where")
    tested, _ = _operands(condition, "isinf")
    if node is None or tested is None:
        return node
    return tested if node.args[1] == 0 and node.args[2] is tested else node


def _without_guard(node: Node | None) -> Node | None:
    operand, _ = _operands(node, "add")
    if node is None or operand is None:
        return node
    guard = node.args[1]
    return operand if isinstance(guard, float) and 0 <= guard <= _LARGEST_GUARD else node
