"""Bags of embeddings: a bag adds up, averages, or takes the largest of, the rows of a table that its items name.

Where the items are known, a sum or a mean of rows is a product of the table with a matrix that has a row for each bag and an entry for each
of its items.
"""

from __future__ import annotations

import operator

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.gathers import taken_at
from fuseflow.frontend.positions.selection_operators import product_along
from fuseflow.frontend.positions.selections import Call, Handler, described
from fuseflow.frontend.trace.refusals import refusal

_SUM, _MEAN, _LARGEST = range(3)
"""The modes of PyTorch's operator."""


def _embedding_bag(
    call: Call,
    table: Node,
    items: Node,
    offsets: Node,
    _scale_grad: bool = False,
    mode: int = _SUM,
    _sparse: bool = False,
    weights: Node | None = None,
    has_end: bool = False,
    padding: int | None = None,
) -> None:
    """Replace the bags, which are the first result, where the lengths of the bags are known and no other result is read. `offsets` are the
    first items of the bags, and with `has_end` also the end of the last one. Items that are `padding` do not count."""
    starts, positions = call.selections.known(offsets), call.selections.known(items)
    results = [user for user in call.node.users if user.users]
    if starts is None or any(user.target is not operator.getitem or user.args[1] != 0 for user in results):
        return
    if positions is None and padding is not None:
        return
    count, rows = described(items).shape[0], described(table).shape[0]
    bag = _bags(call.node, starts, count, has_end)
    bags = len(starts) - has_end
    if positions is not None and padding is not None:
        counts = positions != padding % rows
        bag, positions = bag[counts], positions[counts]
        weights = None if weights is None else call.gathered(weights, 0, counts.nonzero().squeeze(1))
    if positions is not None and weights is None and (mode != _LARGEST or not len(positions)):
        lengths = torch.bincount(bag, minlength=bags) if mode == _MEAN else torch.ones(bags)
        shares = (1 / lengths[bag]).to(described(table).dtype)
        result = call.computed(product_along, call.matrix(bag, positions, shares, (bags, rows), "bags"), table, 0)
    else:
        chosen = (
            call.computed(taken_at, table, items, call.counted(rows, described(items).dtype), 0)
            if positions is None
            else call.gathered(table, 0, positions)
        )
        if weights is not None:
            column = call.computed(torch.ops.aten.unsqueeze.default, weights, 1)
            chosen = call.computed(torch.ops.aten.mul.Tensor, column, chosen)
        if mode == _LARGEST:
            result = call.reduced((0, bag, bags), chosen, "max", 0.0)
        else:
            result = call.scattered(chosen, 0, bag, bags, mode == _MEAN)
    for user in results:
        user.replace_all_uses_with(result)


def _bags(node: Node, starts: Tensor, count: int, has_end: bool) -> Tensor:
    """Return the bag of each of `count` items. Raise `FrontendError` for offsets that fall or leave items out."""
    ends = torch.cat((starts, starts.new_tensor([count])))
    if bool((ends.diff() < 0).any()) or (has_end and starts[-1] != count):
        what = f"offsets of bags that fall, or leave out some of the {count} items (`{starts.tolist()}`)"
        raise refusal(node, what, "let each bag begin where the one before it ends, and the last one end with the items")
    return torch.arange(len(starts)).repeat_interleave(ends.diff())


EMBEDDING_BAGS: dict[str, Handler] = {"embedding_bag": _embedding_bag}
"""The replacement of the operator, by its name."""
