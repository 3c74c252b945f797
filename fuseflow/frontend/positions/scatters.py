"""Scatters of data: to known positions they are products with selections, and to positions that are data, comparisons with all places.

`torch.segment_reduce(x, "sum", offsets=[0, 2, 5])` adds up the first two entries, and the three behind them. It is a scatter to known
positions, `[0, 0, 1, 1, 1]`. Graph networks write it where the edges come from a sparse matrix, whose rows are segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.gathers import computed_places, is_comparable, known_places, nothing_of, vector_along
from fuseflow.frontend.positions.order_statistics import kept_in_place
from fuseflow.frontend.positions.selections import EXTREMES, Call, Handler, described, first_operand, is_zero, same_beside
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.operator_support import VIEWS


def added_along(base: Tensor | None, index: Tensor, source: Tensor, places: Tensor, dim: int) -> Tensor:
    """Return `scatter_add(base, dim, index, source)`, with zeros for a missing base. `places` counts the coordinates of the
    result along `dim`."""
    source, index = source.movedim(dim, -1).unsqueeze(-2), index.movedim(dim, -1).unsqueeze(-2)
    hit = index == places.unsqueeze(-1)
    total = torch.where(hit, source, nothing_of(source)).sum(-1, dtype=source.dtype).movedim(-1, dim)
    return total if base is None else base + total


def written_along(base: Tensor | None, index: Tensor, source: Tensor, places: Tensor, positions: Tensor, dim: int) -> Tensor:
    """Return `scatter(base, dim, index, source)`. Of the elements that go to one place the last one is written, as on a CPU. `positions`
    counts them from 0."""
    if not len(positions):
        shape = (*source.shape[:dim], len(places), *source.shape[dim + 1 :])
        return source.new_zeros(shape) if base is None else base.clone()
    source, index = source.movedim(dim, -1).unsqueeze(-2), index.movedim(dim, -1).unsqueeze(-2)
    hit = index == places.unsqueeze(-1)
    last = torch.where(hit, positions, -1.0).amax(-1, keepdim=True)
    written = torch.where(positions == last, source, nothing_of(source)).sum(-1, dtype=source.dtype).movedim(-1, dim)
    return written if base is None else torch.where(last.squeeze(-1).movedim(-1, dim) >= 0, written, base)


def filled_along(base: Tensor, index: Tensor, value: float, places: Tensor, dim: int) -> Tensor:
    """Return `scatter(base, dim, index, value)`. `places` counts the coordinates of `base` along `dim` from 0."""
    hit = index.movedim(dim, -1).unsqueeze(-2) == places.unsqueeze(-1)
    reached = torch.where(hit, 1.0, 0.0).sum(-1).movedim(-1, dim) > 0
    return torch.where(reached, value, base)


def counted_along(index: Tensor, places: Tensor) -> Tensor:
    """Return `one_hot(index)`. `places` counts the classes from 0."""
    return torch.where(index.unsqueeze(-1) == places, 1, 0)


def multiplied_in_groups(x: Tensor, weights: Tensor, ends: Tensor, places: Tensor, earlier: Tensor) -> Tensor:
    """Return the product of each group with its own matrix: of rows of x, of columns of the weights where only x has a matrix for each
    group, or of columns of x with rows of the weights. Group g has the places before `ends[g]` that no group before it has. `places`
    counts them, and `earlier[g, h]` is 1 where h is the group before g."""
    before = torch.where(places < ends.unsqueeze(-1), 1.0, 0.0).to(x.dtype)
    member = before - earlier @ before
    match x.dim(), weights.dim():
        case 2, 3:
            return (member.unsqueeze(-1) * x).matmul(weights).sum(0)
        case 3, 2:
            return (x.matmul(weights) * member.unsqueeze(1)).sum(0)
    return (member.unsqueeze(1) * x).matmul(weights)


def counted_in_bins(x: Tensor, places: Tensor, low: float, high: float) -> Tensor:
    """Return how many elements of x are in each bin, which `places` counts from 0. The bins have equal width between `low` and
    `high`, which is in the last one."""
    bins = places.shape[0]
    scaled = (x.reshape(-1) - low) * (bins / (high - low))
    inside = (scaled >= 0) & (scaled <= bins)
    place = torch.where(scaled >= bins, bins - 1.0, scaled).unsqueeze(-1)
    hit = (place >= places) & (place < places + 1) & inside.unsqueeze(-1)
    return torch.where(hit, 1.0, 0.0).sum(0, dtype=x.dtype)


def _scatter_known(
    call: Call, base: Node, dim: int, index: Node, source: Any, reduce: str, include_self: bool = True
) -> Node | None:
    """Return the replacement of a scatter to known positions, or None for other positions, and where there is none."""
    positions = call.selections.known(index)
    if positions is None or not isinstance(source, Node):
        return None
    dim %= described(base).dim()
    along = vector_along(positions, dim, described(source).shape) if positions.dim() > 1 else positions
    if along is None or not same_beside(dim, source, base):
        return None
    return call.combined(base, dim, along, source, reduce, include_self)


def _scatter_by_data(call: Call, base: Node, dim: int, index: Node, source: Any, adds: bool) -> Node | None:
    """Return the replacement of a scatter that adds, or writes, to positions that are data."""
    shape = described(base).shape
    if (
        not shape
        or not is_comparable(base, index)
        or (isinstance(source, Node) and described(source).shape != described(index).shape)
    ):
        return None
    dim %= len(shape)
    if not same_beside(dim, index, base):
        return None
    places = call.counted(shape[dim])
    if not isinstance(source, Node):
        return call.computed(filled_along, base, index, source, places, dim)
    start = None if is_zero(base) else base
    if adds:
        return call.computed(added_along, start, index, source, places, dim)
    positions = call.counted(described(index).shape[dim], torch.float32)
    return call.computed(written_along, start, index, source, places, positions, dim)


def _scatter(call: Call, base: Node, dim: int, index: Node, source: Any, **options: Any) -> Node | None:
    kept = kept_in_place(call)
    if kept is not None:
        return kept
    has_source = call.node.target in (torch.ops.aten.scatter.src, torch.ops.aten.scatter_.src)
    known = _scatter_known(call, base, dim, index, source, "overwrite") if has_source else None
    if known is not None or options:
        return known
    return _scatter_by_data(call, base, dim, index, source, adds=False)


def _scatter_add(call: Call, base: Node, dim: int, index: Node, source: Node) -> Node | None:
    known = _scatter_known(call, base, dim, index, source, "sum")
    return known or _scatter_by_data(call, base, dim, index, source, adds=True)


def _index_copy(call: Call, base: Node, dim: int, index: Node, source: Node) -> Node | None:
    known = _scatter_known(call, base, dim, index, source, "overwrite")
    return known or _rows_by_data(call, base, dim, index, source, adds=False)


def _index_add(call: Call, base: Node, dim: int, index: Node, source: Node, *, alpha: float = 1) -> Node | None:
    source = source if alpha == 1 else call.computed(torch.ops.aten.mul.Tensor, source, alpha)
    known = _scatter_known(call, base, dim, index, source, "sum")
    return known or _rows_by_data(call, base, dim, index, source, adds=True)


def _rows_by_data(call: Call, base: Node, dim: int, index: Node, source: Node, adds: bool) -> Node | None:
    """Return the replacement of a write, or of an addition, of whole rows along `dim` to the positions in a vector."""
    rank = described(base).dim()
    if rank == 0 or not is_comparable(base, index):
        return None
    spread = call.computed(_spread, index, tuple(described(source).shape), dim % rank)
    return _scatter_by_data(call, base, dim, spread, source, adds)


def _spread(index: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """Return a vector of positions along `dim` as positions of all elements of a tensor of this shape."""
    return index.reshape(-1, *[1] * (len(shape) - 1 - dim)).expand(shape)


def _index_put(call: Call, base: Node, indices: Sequence[Any], values: Node, accumulate: bool = False) -> Node | None:
    """Return the replacement of `x[i, j] = values`, or of `+=` with `accumulate`, at known positions or at data, in adjacent dimensions;
    or of a write of one number where a mask is true. None for other writes."""
    places = known_places(call.selections, base, indices)
    if places is not None:
        merged, source = _merged_write(call, base, values, places.dim, places.shape, places.merged)
        reduce = "sum" if accumulate else "overwrite"
        result = call.combined(merged, places.dim, places.positions, source, reduce, True)
        return None if result is None else call.reshaped(result, described(call.node).shape)
    is_mask = len(indices) == 1 and described(indices[0]).dtype == torch.bool
    if is_mask and described(values).numel() == 1 and not accumulate:
        return call.computed(_written_where, base, indices[0], values)
    computed = computed_places(call, base, indices)
    if computed is None:
        return None
    dim, merged_shape, linear = computed
    columns = (tuple(described(index).shape) for index in indices if index is not None)
    merged, source = _merged_write(call, base, values, dim, np.broadcast_shapes(*columns), merged_shape)
    result = _rows_by_data(call, merged, dim, linear, source, accumulate)
    return None if result is None else call.reshaped(result, described(call.node).shape)


def _merged_write(
    call: Call, base: Node, values: Node, dim: int, places: tuple[int, ...], merged: tuple[int, ...]
) -> tuple[Node, Node]:
    """Return a tensor, and the values that are written to it, where the dimensions with an index are one, `dim`. `places` is the shape of
    the index arrays."""
    outer, rest = merged[:dim], merged[dim + 1 :]
    whole = call.computed(torch.ops.aten.expand.default, values, [*outer, *places, *rest])
    return call.reshaped(base, merged), call.reshaped(whole, (*outer, prod(places), *rest))


def _written_where(base: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """Return `base` with `base[mask] = value`."""
    mask = mask.reshape(*mask.shape, *[1] * (base.dim() - mask.dim()))
    return torch.where(mask, value.reshape(()).to(base.dtype), base)


def _segment_reduce(
    call: Call,
    source: Node,
    reduce: str,
    *,
    lengths: Node | None = None,
    offsets: Node | None = None,
    axis: int = 0,
    initial: float | None = None,
    **_: Any,
) -> Node | None:
    """Return the replacement of a reduction of segments along the first dimension whose lengths are known."""
    ends = call.selections.known(offsets)
    known = call.selections.known(lengths) if ends is None else ends.diff()
    if known is None or known.dim() != 1 or axis != 0 or initial is not None:
        return None
    positions, rows, no_empty = torch.arange(len(known)).repeat_interleave(known), len(known), bool(known.all())
    if len(positions) != described(source).shape[0]:
        return None
    if reduce in EXTREMES or reduce == "prod":
        kind = EXTREMES.get(reduce, reduce)
        start = 0.0 if no_empty else {"max": float("-inf"), "min": float("inf"), "prod": 1.0}[kind]
        return call.reduced((0, positions, rows), source, kind, start)
    if reduce == "sum" or (reduce == "mean" and no_empty):  # the mean of nothing is no number
        return call.scattered(source, 0, positions, rows, reduce == "mean")
    return None


def _one_hot(call: Call, index: Node, *_: Any) -> Node | None:
    return call.computed(counted_along, index, call.counted(described(call.node).shape[-1]))


def _grouped_product(call: Call, x: Node, weights: Node, ends: Any = None, *_: Any) -> Node | None:
    """Return the product of a mixture of experts, or a product in its gradient: rows, sorted by expert, times the matrices of the
    experts. `ends` are the ends of the groups of rows. None if these are not given as a tensor."""
    left, right = described(x), described(weights)
    if ends is None and left.dim() == right.dim() == 3:
        return call.computed(torch.bmm, x, weights)
    if not isinstance(ends, Node):
        return None
    extent = {(2, 3): left.shape[0], (3, 2): right.shape[1]}.get((left.dim(), right.dim()), left.shape[-1])
    places = call.counted(extent, described(ends).dtype)
    earlier = call.argument("earlier", torch.diag(torch.ones(len(described(ends)) - 1), -1).to(left.dtype))
    return call.computed(multiplied_in_groups, x, weights, ends, places, earlier)


def _histogram(call: Call, x: Node, bins: int = 100, low: float = 0, high: float = 0) -> Node | None:
    if low == high:  # the bounds are the bounds of the data
        return None
    places = call.counted(bins, torch.float32)
    return call.computed(counted_in_bins, x, places, float(low), float(high))


def _bin_counts(call: Call, index: Node, weights: Node | None = None, minlength: int = 0) -> Node | None:
    """Return how often each number occurs, or the sums of the weights. None where the numbers may be `minlength` or more, so that the size
    of the result depends on them."""
    bound = _bound(index)
    if bound is None or bound > minlength:
        return None
    places = call.counted(minlength)
    if weights is not None:
        return call.computed(added_along, None, index, weights, places, 0)
    return call.computed(torch.sum, call.computed(counted_along, index, places), 0)


def _bound(index: Node) -> int | None:
    """Return a number that is above all numbers of a tensor by the operator that computes it, or None."""
    while fx_origin.short_name(index.target) in VIEWS and not described(index).is_floating_point():
        index = first_operand(index)
    high = (*index.args, None, None)[2]
    return high + 1 if fx_origin.short_name(index.target) == "clamp" and isinstance(high, int) else None


SCATTERS: dict[str, Handler] = {
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "scatter_reduce": _scatter_known,
    "index_add": _index_add,
    "index_copy": _index_copy,
    "index_put": _index_put,
    "segment_reduce": _segment_reduce,
    "one_hot": _one_hot,
    "_grouped_mm": _grouped_product,
    "histc": _histogram,
    "bincount": _bin_counts,
}
"""The replacement of each operator, by its name."""
