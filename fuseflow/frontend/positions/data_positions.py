"""Gathers and scatters by positions that are data, as comparisons of the positions with all places.

The positions that `topk` and `argmax` choose are known only when the model runs. So x[i] is a sum over all places k of x[k] where
i equals k, in which one term is not zero. This takes as many comparisons as there are pairs of a position and a place. Known
positions that differ from row to row, as in relative attention, take the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.known_positions import Handler
from fuseflow.frontend.positions.selections import Selections, described, is_zero, named, reshaped, same_beside, scaled


def nothing_of(x: Tensor) -> float | int:
    """Return the zero to multiply or add that does not change the type of x: 0.0 for floats, 0 for integers."""
    return 0.0 if x.is_floating_point() else 0


def taken_along(x: Tensor, index: Tensor, places: Tensor, dim: int) -> Tensor:
    """Return `gather(x, dim, index)`. `places` counts the coordinates of x along `dim` from 0."""
    return taken_at(x, index.movedim(dim, -1), places, dim)


def taken_at(x: Tensor, index: Tensor, places: Tensor, dim: int) -> Tensor:
    """Return `index_select(x, dim, index)`, or with an index for each row, whose last dimension has the positions."""
    x = x.movedim(dim, -1)
    chosen = index.unsqueeze(-1) == places
    return torch.where(chosen, x.unsqueeze(-2), nothing_of(x)).sum(-1, dtype=x.dtype).movedim(-1, dim)


def counted_along(index: Tensor, places: Tensor) -> Tensor:
    """Return `one_hot(index)`. `places` counts the classes from 0."""
    return torch.where(index.unsqueeze(-1) == places, 1, 0)


def linear_positions(extents: tuple[int, ...], *columns: Tensor) -> Tensor:
    """Return positions in several dimensions as positions in one, in row-major order. A negative one counts from the end."""
    linear: Tensor | int = 0
    for extent, column in zip(extents, columns, strict=True):
        linear = linear * extent + torch.where(column < 0, column + extent, column)
    assert isinstance(linear, Tensor)
    return linear.reshape(-1)


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


def _places(selections: Selections, node: Node, extent: int, dtype: torch.dtype = torch.int64) -> Node:
    return selections.counted(extent, dtype, named(node, "places"))


def _is_integers(node: object) -> bool:
    return isinstance(node, Node) and described(node).dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _is_comparable(x: Node, index: object) -> bool:
    """Return whether an operator on x at computed positions has a form: sums of x are defined, and the positions are integers."""
    dtype = described(x).dtype
    return _is_integers(index) and dtype not in (torch.bool,) and not dtype.is_complex


def _gather(selections: Selections, node: Node, x: Node, dim: int, index: Node, **_: Any) -> Node | None:
    shape = described(x).shape
    if not shape or not _is_comparable(x, index):
        return None
    dim %= len(shape)
    for d, extent in enumerate(described(index).shape):
        if d != dim and extent != shape[d]:
            x = selections.computed(node, torch.ops.aten.slice.Tensor, (x, d, 0, extent))
    return selections.computed(node, taken_along, (x, index, _places(selections, node, shape[dim]), dim))


def _taken(selections: Selections, node: Node, x: Node, dim: int, index: Node) -> Node:
    """Return the elements of x along `dim` at data positions, a vector, in the shape that the node has."""
    extent = described(x).shape[dim]
    taken = selections.computed(node, taken_at, (x, index, _places(selections, node, extent), dim))
    return reshaped(selections, node, taken, described(node).shape)


def _index_select(selections: Selections, node: Node, x: Node, dim: int, index: Node) -> Node | None:
    if not _is_comparable(x, index) or not described(x).dim():
        return None
    return _taken(selections, node, x, dim % described(x).dim(), index)


def _embedding(selections: Selections, node: Node, weight: Node, indices: Node, *_: Any) -> Node | None:
    if not _is_comparable(weight, indices):
        return None
    return _taken(selections, node, weight, 0, _flat(selections, node, indices))


def _flat(selections: Selections, node: Node, index: Node) -> Node:
    return selections.computed(node, torch.ops.aten.reshape.default, (index, [-1]))


def _index(selections: Selections, node: Node, x: Node, indices: Sequence[Any]) -> Node | None:
    """Return the replacement of `x[index]`, `x[:, index]` or `x[i, j]` with integers, or None for other indices."""
    dims = [d for d, index in enumerate(indices) if index is not None]
    columns = [index for index in indices if index is not None]
    if not all(_is_comparable(x, index) for index in columns) or dims != list(range(dims[0], dims[0] + len(dims))):
        return None
    shape, first, behind = tuple(described(x).shape), dims[0], dims[-1] + 1
    linear = selections.computed(node, linear_positions, (shape[first:behind], *columns))
    merged = (*shape[:first], prod(shape[first:behind]), *shape[behind:])
    return _taken(selections, node, reshaped(selections, node, x, merged), first, linear)


def _one_hot(selections: Selections, node: Node, index: Node, *_: Any) -> Node | None:
    extent = described(node).shape[-1]
    return selections.computed(node, counted_along, (index, _places(selections, node, extent)))


def _scatter(selections: Selections, node: Node, base: Node, dim: int, index: Node, source: Any, **options: Any) -> Node | None:
    if options or not described(base).dim() or not _is_comparable(base, index):
        return None
    shape = described(base).shape
    dim %= len(shape)
    if not same_beside(dim, index, base):
        return None
    places = _places(selections, node, shape[dim])
    if not isinstance(source, Node):
        return selections.computed(node, filled_along, (base, index, source, places, dim))
    if described(source).shape != described(index).shape:
        return None
    positions = _places(selections, node, described(index).shape[dim], torch.float32)
    start = None if is_zero(base) else base
    return selections.computed(node, written_along, (start, index, source, places, positions, dim))


def _scatter_add(selections: Selections, node: Node, base: Node, dim: int, index: Node, source: Node) -> Node | None:
    if not described(base).dim() or not _is_comparable(base, index) or described(source).shape != described(index).shape:
        return None
    shape = described(base).shape
    dim %= len(shape)
    if not same_beside(dim, index, base):
        return None
    start = None if is_zero(base) else base
    return selections.computed(node, added_along, (start, index, source, _places(selections, node, shape[dim]), dim))


def _index_add(
    selections: Selections, node: Node, base: Node, dim: int, index: Node, source: Node, *, alpha: float = 1
) -> Node | None:
    if not _is_comparable(base, index):
        return None
    source = scaled(selections, node, source, alpha)
    shape = described(base).shape
    dim %= len(shape)
    arguments = (None if is_zero(base) else base, index, source, _places(selections, node, shape[dim]), dim)
    return selections.computed(node, _added_at, arguments)


def _added_at(base: Tensor | None, index: Tensor, source: Tensor, places: Tensor, dim: int) -> Tensor:
    """Return `index_add(base, dim, index, source)`. `places` counts the coordinates of `base` along `dim` from 0."""
    along = index.reshape(-1, *[1] * (source.dim() - 1 - dim))
    return added_along(base, along.expand(source.shape), source, places, dim)


def _written_at(
    base: Tensor | None, index: Tensor, source: Tensor, places: Tensor, positions: Tensor, shape: tuple[int, ...]
) -> Tensor:
    """Return `base` with `base[index] = source`, where the index is a vector. `places` counts the rows of the result, and
    `positions` the index, from 0."""
    along = index.reshape(-1, *[1] * (len(shape) - 1)).expand(shape)
    return written_along(base, along, source.expand(shape), places, positions, 0)


def _written_where(base: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """Return `base` with `base[mask] = value`."""
    mask = mask.reshape(*mask.shape, *[1] * (base.dim() - mask.dim()))
    return torch.where(mask, value.reshape(()).to(base.dtype), base)


def _index_put(
    selections: Selections, node: Node, base: Node, indices: Sequence[Any], values: Node, accumulate: bool = False
) -> Node | None:
    """Return the replacement of `x[index] = values`, with one index that is a vector of integers or a mask. None for other
    writes."""
    if not accumulate and len(indices) == 1 and described(indices[0]).dtype == torch.bool and described(values).numel() == 1:
        return selections.computed(node, _written_where, (base, indices[0], values))
    if accumulate or len(indices) != 1 or not _is_comparable(base, indices[0]) or described(indices[0]).dim() != 1:
        return None
    extent, count = described(base).shape[0], described(indices[0]).shape[0]
    places, positions = _places(selections, node, extent), _places(selections, node, count, torch.float32)
    shape = (count, *described(base).shape[1:])
    arguments = (None if is_zero(base) else base, indices[0], values, places, positions, shape)
    return selections.computed(node, _written_at, arguments)


def _grouped_product(selections: Selections, node: Node, x: Node, weights: Node, ends: Any = None, *_: Any) -> Node | None:
    """Return the product of a mixture of experts, or a product in its gradient: rows, sorted by expert, times the matrices of the
    experts. `ends` are the ends of the groups of rows. None if these are not given as a tensor."""
    left, right = described(x), described(weights)
    if ends is None and left.dim() == right.dim() == 3:
        return selections.computed(node, torch.bmm, (x, weights))
    if not isinstance(ends, Node):
        return None
    extent = {(2, 3): left.shape[0], (3, 2): right.shape[1]}.get((left.dim(), right.dim()), left.shape[-1])
    places = _places(selections, node, extent, described(ends).dtype)
    earlier = selections.argument(named(node, "earlier"), torch.diag(torch.ones(len(described(ends)) - 1), -1).to(left.dtype))
    return selections.computed(node, multiplied_in_groups, (x, weights, ends, places, earlier))


def _histogram(selections: Selections, node: Node, x: Node, bins: int = 100, low: float = 0, high: float = 0) -> Node | None:
    if low == high:  # the bounds are the bounds of the data
        return None
    places = _places(selections, node, bins, torch.float32)
    return selections.computed(node, counted_in_bins, (x, places, float(low), float(high)))


def _take(selections: Selections, node: Node, x: Node, index: Node) -> Node | None:
    if not _is_comparable(x, index):
        return None
    flat, positions = _flat(selections, node, x), _flat(selections, node, index)
    return _taken(selections, node, flat, 0, positions)


def _take_along(selections: Selections, node: Node, x: Node, index: Node, dim: int | None = None) -> Node | None:
    if not isinstance(dim, int) or not _is_comparable(x, index):
        return None
    dim %= described(x).dim()
    if not same_beside(dim, x, index):
        return None
    places = _places(selections, node, described(x).shape[dim])
    return selections.computed(node, taken_along, (x, index, places, dim))


COMPARISONS: dict[str, Handler] = {
    "take": _take,
    "take_along_dim": _take_along,
    "gather": _gather,
    "index_select": _index_select,
    "embedding": _embedding,
    "index": _index,
    "one_hot": _one_hot,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "index_add": _index_add,
    "index_put": _index_put,
    "_grouped_mm": _grouped_product,
    "histc": _histogram,
}
"""The replacement of each operator, by its name."""
