"""Gathers of data: at known positions they are products with selections, and at positions that are data, comparisons with all places.

The positions that `topk` and `argmax` choose are known only when the model runs. So x[i] is a sum over all places k of x[k] where
i equals k, in which one term is not zero. This takes as many comparisons as there are pairs of a position and a place. Known
positions that differ from row to row, as in relative attention, take the same way.

Repetition by counts and padding with elements of the tensor itself are gathers at known positions.

A bag of embeddings adds up, averages, or takes the largest of, the rows of a table that its items name. Where the items are known, a sum or
a mean of rows is a product of the table with a matrix that has a row for each bag and an entry for each of its items.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selection_operators import product_along
from fuseflow.frontend.positions.selections import Call, Handler, Selections, described, same_beside
from fuseflow.frontend.trace.refusals import refusal

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def taken_along(x: Tensor, index: Tensor, places: Tensor, dim: int) -> Tensor:
    """Return `gather(x, dim, index)`. `places` counts the coordinates of x along `dim` from 0."""
    return taken_at(x, index.movedim(dim, -1), places, dim)


def taken_at(x: Tensor, index: Tensor, places: Tensor, dim: int) -> Tensor:
    """Return `index_select(x, dim, index)`, or with an index for each row, whose last dimension has the positions."""
    x = x.movedim(dim, -1)
    chosen = index.unsqueeze(-1) == places
    return torch.where(chosen, x.unsqueeze(-2), nothing_of(x)).sum(-1, dtype=x.dtype).movedim(-1, dim)


def nothing_of(x: Tensor) -> float | int:
    """Return the zero to multiply or add that does not change the type of x: 0.0 for floats, 0 for integers."""
    return 0.0 if x.is_floating_point() else 0


def linear_positions(extents: tuple[int, ...], *columns: Tensor) -> Tensor:
    """Return positions in several dimensions as positions in one, in row-major order. A negative one counts from the end."""
    linear: Tensor | int = 0
    for extent, column in zip(extents, columns, strict=True):
        linear = linear * extent + torch.where(column < 0, column + extent, column)
    assert isinstance(linear, Tensor)
    return linear.reshape(-1)


def is_comparable(x: Node, index: object) -> bool:
    """Return whether an operator on x at computed positions has a form: sums of x are defined, and the positions are integers."""
    dtype = described(x).dtype
    return isinstance(index, Node) and described(index).dtype in INTEGERS and dtype != torch.bool and not dtype.is_complex


def vector_along(positions: Tensor, dim: int, shape: torch.Size) -> Tensor | None:
    """Return the positions along `dim` if they are the same for all other coordinates, as in `index.expand_as(x)`."""
    dim %= positions.dim()
    if positions.shape[:dim] != shape[:dim] or positions.shape[dim + 1 :] != shape[dim + 1 :]:
        return None
    for other, (size, stride) in enumerate(zip(positions.shape, positions.stride(), strict=True)):
        if other != dim and stride == 0 and size > 1:  # an `expand`, which takes no memory
            positions = positions.narrow(other, 0, 1)
    moved = positions.movedim(dim, 0).reshape(positions.shape[dim], -1)
    return moved[:, 0] if moved.shape[1] and bool((moved == moved[:, :1]).all()) else None


@dataclass(frozen=True, slots=True)
class Places:
    """Known index arrays of several adjacent dimensions, as one array, `positions`. It indexes dimension `dim` of the tensor
    after a reshape to `merged`, in which these dimensions are one. `shape` is the shape that the index arrays had."""

    dim: int
    positions: Tensor
    shape: tuple[int, ...]
    merged: tuple[int, ...]


def known_places(selections: Selections, x: Node, indices: Sequence[object]) -> Places | None:
    """Return the positions that a list of indices names, or None if they are data or in dimensions that are not adjacent."""
    dims: list[int] = []
    columns: list[Tensor] = []
    dim = 0
    for index in indices:
        if index is None:
            dim += 1
            continue
        positions = selections.known(index)
        if positions is None:
            return None
        is_mask = positions.dtype == torch.bool
        added = positions.nonzero().t() if is_mask else [positions.to(torch.int64)]
        dims += range(dim, dim + len(added))
        columns += added
        dim += positions.dim() if is_mask else 1
    if not dims or dims != list(range(dims[0], dims[0] + len(dims))):
        return None
    extents, merged = _merged(x, dims)
    shape = np.broadcast_shapes(*(tuple(column.shape) for column in columns))
    return Places(dims[0], linear_positions(extents, *columns), shape, merged)


def computed_places(call: Call, x: Node, indices: Sequence[Any]) -> tuple[int, tuple[int, ...], Node] | None:
    """Return the dimension, the shape and the positions in it, as `Places` has them, that a list of indices of integers names. None for
    other indices, and for dimensions that are not adjacent."""
    dims = [d for d, index in enumerate(indices) if index is not None]
    columns = [index for index in indices if index is not None]
    if not all(is_comparable(x, index) for index in columns) or dims != list(range(dims[0], dims[0] + len(dims))):
        return None
    extents, merged = _merged(x, dims)
    return dims[0], merged, call.computed(linear_positions, extents, *columns)


def _merged(x: Node, dims: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the extents of adjacent dimensions of x, and the shape of x in which they are one dimension."""
    shape, first, behind = tuple(described(x).shape), dims[0], dims[-1] + 1
    return shape[first:behind], (*shape[:first], prod(shape[first:behind]), *shape[behind:])


def _rows(call: Call, x: Node, dim: int, index: Node) -> Node | None:
    """Return the elements of x along `dim` at positions, in the shape that the node has."""
    positions, rank = call.selections.known(index), described(x).dim()
    dim %= max(1, rank)
    if positions is not None:
        taken = call.gathered(x, dim, positions.reshape(-1))
    elif rank and is_comparable(x, index):
        taken = _taken_by_data(call, x, dim, index)
    else:
        return None
    return call.reshaped(taken, described(call.node).shape)


def _taken_by_data(call: Call, x: Node, dim: int, index: Node) -> Node:
    index = call.reshaped(index, (described(index).numel(),))
    return call.computed(taken_at, x, index, call.counted(described(x).shape[dim]), dim)


def as_table(weight: Tensor, padding: int | None, counts: bool) -> Tensor:
    """Return the weight of an embedding as it is, as a value of its own. Its derivative differs: a row for `padding` has none, and with
    `counts`, that of a row is divided by how often it is taken."""
    return torch.ops.aten.alias.default(weight)  # type: ignore[no-any-return]


def _embedding(
    call: Call, weight: Node, indices: Node, padding_idx: int = -1, scale_grad_by_freq: bool = False, *_: Any
) -> Node | None:
    if padding_idx >= 0 or scale_grad_by_freq:
        weight = call.computed(as_table, weight, padding_idx if padding_idx >= 0 else None, scale_grad_by_freq)
    return _rows(call, weight, 0, indices)


def _index(call: Call, x: Node, indices: Sequence[Any]) -> Node | None:
    """Return the replacement of `x[:, index]`, or `x[i, j]`, with integers or known truth values in adjacent dimensions."""
    apart = _each_along_its_own(call, x, indices)
    if apart is not None:
        return apart
    places = known_places(call.selections, x, indices)
    if places is not None:
        dim, merged = places.dim, places.merged
        taken = call.gathered(call.reshaped(x, merged), dim, places.positions)
        return call.reshaped(taken, described(call.node).shape)
    computed = computed_places(call, x, indices)
    if computed is None:
        return None
    dim, merged, linear = computed
    taken = _taken_by_data(call, call.reshaped(x, merged), dim, linear)
    return call.reshaped(taken, described(call.node).shape)


def _each_along_its_own(call: Call, x: Node, indices: Sequence[Any]) -> Node | None:
    """Return `x[i, j]` for known integers of which each pair varies along other dimensions, as in `x[rows[:, None], columns]`: a gather
    along one dimension after the other. Return None for any other index."""
    known = [call.selections.known(index) for index in indices]
    columns = [column for column in known if column is not None and column.dtype != torch.bool]
    if len(columns) < max(2, len(known)):
        return None
    rank = max(column.dim() for column in columns)
    along = [[rank - column.dim() + d for d, extent in enumerate(column.shape) if extent != 1] for column in columns]
    varied = [d for dims in along for d in dims]
    if any(len(dims) > 1 for dims in along) or len(set(varied)) < len(varied):
        return None
    for dim, column in enumerate(columns):
        if not torch.equal(column.reshape(-1), torch.arange(described(x).shape[dim])):
            x = call.gathered(x, dim, column.reshape(-1))
    order = sorted(range(len(columns)), key=lambda n: along[n])
    if order != sorted(order):
        x = call.computed(torch.ops.aten.permute.default, x, [*order, *range(len(columns), described(x).dim())])
    return call.reshaped(x, described(call.node).shape)


def _gather(call: Call, x: Node, dim: int, index: Node, **_: Any) -> Node | None:
    positions, shape = call.selections.known(index), described(x).shape
    along = None if positions is None else vector_along(positions, dim, shape)
    if along is not None:
        return call.gathered(x, dim % len(shape), along)
    if not shape or not is_comparable(x, index):
        return None
    dim %= len(shape)
    for d, extent in enumerate(described(index).shape):
        if d != dim and extent != shape[d]:
            x = call.computed(torch.ops.aten.slice.Tensor, x, d, 0, extent)
    return call.computed(taken_along, x, index, call.counted(shape[dim]), dim)


def _take(call: Call, x: Node, index: Node) -> Node | None:
    if not is_comparable(x, index):
        return None
    flat = call.computed(torch.ops.aten.reshape.default, x, [-1])
    taken = _taken_by_data(call, flat, 0, index)
    return call.reshaped(taken, described(call.node).shape)


def _take_along(call: Call, x: Node, index: Node, dim: int | None = None) -> Node | None:
    if not isinstance(dim, int) or not is_comparable(x, index):
        return None
    dim %= described(x).dim()
    if not same_beside(dim, x, index):
        return None
    return call.computed(taken_along, x, index, call.counted(described(x).shape[dim]), dim)


def _repeat_interleave(call: Call, x: Node, repeats: Node | int, dim: int | None = None, **_: Any) -> Node | None:
    counts = torch.tensor(repeats) if isinstance(repeats, int) else call.selections.known(repeats)
    if not isinstance(dim, int) or counts is None:
        return None
    return _each(call, x, {dim: torch.arange(described(x).shape[dim]).repeat_interleave(counts)})


def _pad(call: Call, x: Node, pad: Sequence[int], mode: str = "constant", *_: Any) -> Node | None:
    """Return the replacement of padding with elements of the tensor itself, by reflection for example. `pad` has two numbers for
    each dimension, the last dimension first. Padding with a number is an index with an offset."""
    if mode == "constant":
        return None
    positions: dict[int, Tensor] = {}
    for n in range(len(pad) // 2):
        dim = described(x).dim() - 1 - n
        numbers = torch.arange(described(x).shape[dim], dtype=torch.float64).reshape(1, 1, -1)
        positions[dim] = torch.nn.functional.pad(numbers, (pad[2 * n], pad[2 * n + 1]), mode=mode).reshape(-1).to(torch.int64)
    return _each(call, x, positions)


def _each(call: Call, x: Node, positions: dict[int, Tensor]) -> Node | None:
    """Return the rows at known positions along several dimensions, one after the other."""
    if described(x).dtype == torch.bool:
        return None
    for dim, at in positions.items():
        x = call.gathered(x, dim % described(x).dim(), at)
    return call.reshaped(x, described(call.node).shape)


GATHERS: dict[str, Handler] = {
    "index_select": _rows,
    "embedding": _embedding,
    "index": _index,
    "gather": _gather,
    "take": _take,
    "take_along_dim": _take_along,
    "repeat_interleave": _repeat_interleave,
    "pad": _pad,
}
"""The replacement of each operator, by its name."""


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
