"""Sorting, and the first elements along a dimension in order, by comparing all pairs.

The rank of an element is the number of elements before it in order: the larger ones, and equal ones that stand before it. The
element of rank r is then a sum with one term that is not zero, and so is its position. This is the order of a stable sort.
PyTorch promises no order of equal elements for `topk`, and its choice may be another one there.

NaN is larger than any number. Numbers that are compared are finite, so that NaN can be infinite there.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.gathers import nothing_of
from fuseflow.frontend.positions.selections import Call, described, first_operand
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.constant_folding import node_values
from fuseflow.frontend.trace.tracing import Trace

RESULTS = ("values", "positions")
"""The results of an operator with two results, in order."""


def ranked_along(
    x: Tensor, before: Tensor, places: Tensor, positions: Tensor | None, dim: int, count: int, largest: bool
) -> Tensor:
    """Return the first `count` elements along `dim` in order, the `largest` or smallest first, or their `positions`, which are
    integers. `before[i, j]` is 1 where j < i, and `places` counts from 0."""
    x = x.movedim(dim, -1)
    key = _comparable(x)
    mine, other = key.unsqueeze(-1), key.unsqueeze(-2)
    ahead = other > mine if largest else other < mine
    earlier = torch.where(other == mine, before, 0.0)
    rank = (torch.where(ahead, 1.0, 0.0) + earlier).sum(-1)
    chosen = rank.unsqueeze(-2) == places[:count].unsqueeze(-1)
    ranked = x.unsqueeze(-2) if positions is None else positions
    return torch.where(chosen, ranked, nothing_of(ranked)).sum(-1, dtype=ranked.dtype).movedim(-1, dim)


def _comparable(x: Tensor) -> Tensor:
    """Return finite floats in the same order as those of x, where NaN is infinite, the greatest. Integers stay."""
    if not x.is_floating_point():
        return x
    return torch.where(x != x, torch.inf, torch.clamp(x, max=torch.finfo(x.dtype).max))


def ranking(call: Call, x: Node, dim: int, count: int, largest: bool, wanted: tuple[str, ...]) -> dict[str, Node]:
    """Return the nodes of the `wanted` results: the values, the positions or both."""
    shaped = described(x)
    extent = shaped.shape[dim]
    counts = shaped.dtype if shaped.is_floating_point() else torch.float32
    before = call.argument("before", torch.ones(extent, extent, dtype=counts).tril(-1))
    places = call.counted(extent, counts)
    shape = (*shaped.shape[:dim], count, *shaped.shape[dim + 1 :])
    nodes: dict[str, Node] = {}
    for what in wanted:
        positions = call.counted(extent, name="positions") if what == "positions" else None
        value = torch.empty(shape, dtype=shaped.dtype if positions is None else torch.int64, device="meta")
        nodes[what] = call.valued(value, ranked_along, x, before, places, positions, dim, count, largest)
    return nodes


def wanted_results(node: Node) -> tuple[str, ...]:
    """Return which of the two results of an operator are read."""
    read = {user.args[1] for user in node.users if user.target is operator.getitem and user.users}
    return tuple(what for n, what in enumerate(RESULTS) if n in read)


def ties(traced: Trace) -> dict[Node, tuple[int, int]]:
    """Return, for each `topk` whose positions the model reads, in how many places the program chooses other positions than PyTorch on the
    sample inputs, of equal elements: in order, and as a set."""
    calls = [node for node in traced.graph_module.graph.nodes if node.op == "call_function"]
    wanted = [node for node in calls if fx_origin.short_name(node.target) == "topk" and "positions" in wanted_results(node)]
    operands = [first_operand(node) for node in wanted]
    values = node_values(traced, [*wanted, *operands]) if wanted else {}
    return {node: _differing(values[x], values[node][1], *node.args[2:4]) for node, x in zip(wanted, operands, strict=True)}


def tie_notices(traced: Trace, tied: Mapping[Node, tuple[int, int]]) -> list[str]:
    """Return a notice if there are ties. Where the graph has no `topk` any more, its places are a set."""
    remaining = set(traced.graph_module.graph.nodes)
    different = sum(places[0 if node in remaining else 1] for node, places in tied.items())
    if not different:
        return []
    places = "1 place" if different == 1 else f"{different:,} places"
    return [
        f"of equal elements, `topk` takes the first ones, and PyTorch, which states no order, takes others: in {places} of this sample "
        "positions differ, and values do not"
    ]


def _differing(x: Tensor, positions: Tensor, dim: Any = -1, largest: Any = True) -> tuple[int, int]:
    """Return the number of places where the stable order of `x` takes another position than PyTorch did in `positions`, and that of
    positions that are not in its set."""
    stable = torch.sort(x, dim=dim, descending=largest, stable=True).indices.narrow(dim, 0, positions.shape[dim])
    return int((stable != positions).sum()), int((stable.sort(dim).values != positions.sort(dim).values).sum())
