"""Sorting, and the largest elements along a dimension, by comparing all pairs.

The rank of an element is the number of elements before it in order: the larger ones, and equal ones that stand before it. The
element of rank r is then a sum with one term that is not zero, and so is its position. This is the order of a stable sort.
PyTorch promises no order of equal elements for `topk`, and its choice may be another one there.

NaN is larger than any number, and it is the median and the extreme of elements with a NaN. Numbers that are compared are finite,
so that NaN can be infinite there.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.gathers import nothing_of
from fuseflow.frontend.positions.selections import Call, Handler, described, first_operand
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.constant_folding import node_values
from fuseflow.frontend.trace.tracing import Trace

Nan: TypeAlias = Literal["greatest", "least", "any"]
"""The order of NaN among numbers: the greatest or the least one, or, with `any`, the greatest, and the result of any ranking with a NaN."""


def ranked_along(
    x: Tensor, before: Tensor, places: Tensor, positions: Tensor | None, dim: int, count: int, largest: bool, nan: Nan
) -> Tensor:
    """Return the first `count` elements along `dim` in order, the `largest` or smallest first, or their `positions`, which are
    integers. `before[i, j]` is 1 where j < i, and `places` counts from 0."""
    x = x.movedim(dim, -1)
    key = _comparable(x, nan != "least")
    mine, other = key.unsqueeze(-1), key.unsqueeze(-2)
    ahead = other > mine if largest else other < mine
    earlier = torch.where(other == mine, before, 0.0)
    rank = (torch.where(ahead, 1.0, 0.0) + earlier).sum(-1)
    wanted = places[:count]
    if nan == "any":  # the first one has the rank of how many numbers there are
        numbers = torch.where(x != x, 0.0, 1.0).sum(-1, keepdim=True)
        wanted = torch.where(numbers < x.shape[-1], numbers, wanted)
    chosen = rank.unsqueeze(-2) == wanted.unsqueeze(-1)
    ranked = x.unsqueeze(-2) if positions is None else positions
    return torch.where(chosen, ranked, nothing_of(ranked)).sum(-1, dtype=ranked.dtype).movedim(-1, dim)


def _comparable(x: Tensor, is_greatest: bool) -> Tensor:
    """Return finite floats in the same order as those of x, where NaN is infinite: the greatest or the least. Integers stay."""
    if not x.is_floating_point():
        return x
    largest = torch.finfo(x.dtype).max
    if is_greatest:
        return torch.where(x != x, math.inf, torch.clamp(x, max=largest))
    return torch.where(x != x, -math.inf, torch.clamp(x, min=-largest))


def _ranking(
    call: Call, x: Node, dim: int, count: int, largest: bool, wanted: tuple[str, ...], keep: bool = True, nan: Nan = "greatest"
) -> dict[str, Node]:
    """Return the nodes of the `wanted` results: the values, the positions or both. There are none if no ranking has an Einsum form. With
    `keep` False the dimension, which has one element left, vanishes."""
    shaped = described(x)
    if shaped.dtype == torch.bool or shaped.dim() == 0:
        return {}
    dim %= shaped.dim()
    extent = shaped.shape[dim]
    counts = shaped.dtype if shaped.is_floating_point() else torch.float32
    before = call.argument("before", torch.ones(extent, extent, dtype=counts).tril(-1))
    places = call.counted(extent, counts)
    shape = (*shaped.shape[:dim], count, *shaped.shape[dim + 1 :])
    nodes: dict[str, Node] = {}
    for what in wanted:
        positions = call.counted(extent, name="positions") if what == "positions" else None
        value = torch.empty(shape, dtype=shaped.dtype if positions is None else torch.int64, device="meta")
        ranked = call.valued(value, ranked_along, x, before, places, positions, dim, count, largest, nan)
        nodes[what] = ranked if keep else call.computed(torch.ops.aten.squeeze.dim, ranked, dim)
    return nodes


_RESULTS = ("values", "positions")
"""The results of an operator with two results, in order."""


def _wanted(node: Node) -> tuple[str, ...]:
    """Return which of the two results of an operator are read."""
    read = {user.args[1] for user in node.users if user.target is operator.getitem and user.users}
    return tuple(what for n, what in enumerate(_RESULTS) if n in read)


def _put(node: Node, ranking: dict[str, Node]) -> None:
    """Replace the two results of an operator, wherever they are read, by the nodes of a ranking."""
    for user in list(node.users) if ranking else []:
        if user.target is operator.getitem and user.users and isinstance(position := user.args[1], int):
            user.replace_all_uses_with(ranking[_RESULTS[position]])


def _topk(call: Call, x: Node, k: int, dim: int = -1, largest: bool = True, *_: Any) -> Node | None:
    _put(call.node, _ranking(call, x, dim, k, largest, _wanted(call.node)))
    return None


def _sort(call: Call, x: Node, dim: int = -1, descending: bool = False, **_: Any) -> Node | None:
    extent = described(x).shape[dim]
    if "argsort" in str(call.node.target):
        return _ranking(call, x, dim, extent, descending, ("positions",)).get("positions")
    _put(call.node, _ranking(call, x, dim, extent, descending, _wanted(call.node)))
    return None


def _extreme(call: Call, x: Node, dim: object = None, keep: bool = False) -> Node | None:
    """Return the replacement of `max(x, dim)` with its positions, or of `argmax(x, dim)`; with `keep`, the dimension stays."""
    name = fx_origin.short_name(call.node.target)
    largest = "max" in name
    nan: Nan = "greatest" if largest else "least"
    if dim is None and name.startswith("arg") and not keep:
        flat = call.computed(torch.ops.aten.reshape.default, x, [-1])
        return _ranking(call, flat, 0, 1, largest, ("positions",), False, nan).get("positions")
    if not isinstance(dim, int):
        return None
    if name.startswith("arg"):
        return _ranking(call, x, dim, 1, largest, ("positions",), keep, nan).get("positions")
    if "positions" in _wanted(call.node):  # a maximum alone has an Einsum form
        _put(call.node, _ranking(call, x, dim, 1, largest, _wanted(call.node), keep, nan))
    return None


def _median(call: Call, x: Node, dim: int | None = None, keep: bool = False) -> Node | None:
    """Return the replacement of `median(x, dim)`, which is the lower one of two middle elements."""
    if dim is None or not described(x).dim():
        return None
    return _kth_value(call, x, (described(x).shape[dim] + 1) // 2, dim, keep, "any")


def _kth_value(call: Call, x: Node, k: int, dim: int = -1, keep: bool = False, nan: Nan = "greatest") -> Node | None:
    if described(x).dim():
        ranking = _ranking(call, x, dim, k, False, _wanted(call.node), nan=nan)
        for what, ranked in ranking.items():
            last = call.computed(torch.ops.aten.slice.Tensor, ranked, dim, k - 1, k)
            ranking[what] = last if keep else call.computed(torch.ops.aten.squeeze.dim, last, dim)
        _put(call.node, ranking)
    return None


def _sorted_rows(call: Call, x: Node) -> Node | None:
    extent = described(x).shape[0] if described(x).dim() else 0
    return _ranking(call, x, 0, extent, False, ("values",)).get("values") if extent else None


def tie_notices(traced: Trace) -> list[str]:
    """Return a notice if the model reads positions of `topk` that differ from those of PyTorch: on the sample inputs, it chooses
    other ones of equal elements."""
    calls = [node for node in traced.graph_module.graph.nodes if node.op == "call_function"]
    wanted = [node for node in calls if fx_origin.short_name(node.target) == "topk" and "positions" in _wanted(node)]
    operands = [first_operand(node) for node in wanted]
    values = node_values(traced, [*wanted, *operands]) if wanted else {}
    different = sum(_differing(values[x], values[node][1], *node.args[2:4]) for node, x in zip(wanted, operands, strict=True))
    if not different:
        return []
    places = "1 place" if different == 1 else f"{different:,} places"
    return [
        f"of equal elements, `topk` takes the first ones, and PyTorch, which states no order, takes others: in {places} of this sample "
        "positions differ, and values do not"
    ]


def _differing(x: Tensor, positions: Tensor, dim: Any = -1, largest: Any = True) -> int:
    """Return the number of places where the stable order of `x` takes another position than PyTorch did in `positions`."""
    stable = torch.sort(x, dim=dim, descending=largest, stable=True).indices.narrow(dim, 0, positions.shape[dim])
    return int((stable != positions).sum())


RANKINGS: dict[str, Handler] = {
    "median": _median,
    "kthvalue": _kth_value,
    "msort": _sorted_rows,
    "topk": _topk,
    **dict.fromkeys(("sort", "argsort"), _sort),
    **dict.fromkeys(("argmax", "argmin", "max", "min"), _extreme),
}
"""The replacement of each operator, by its name."""
