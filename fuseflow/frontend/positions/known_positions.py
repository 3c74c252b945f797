"""Gathers and scatters of data by known positions: each operator as products with selections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selections import Selections, combined, described, gathered, reshaped, same_beside, scaled

Handler: TypeAlias = Callable[..., Node | None]
"""Returns the replacement of a call of an operator, from the selections, the call, and its arguments as the operator takes them.
None where the call is left as it is, to be refused with its reason."""


def _index_select(selections: Selections, node: Node, x: Node, dim: int, index: Node) -> Node | None:
    positions = selections.known(index)
    return None if positions is None else gathered(selections, node, x, dim % max(1, described(x).dim()), positions.reshape(-1))


def _index(selections: Selections, node: Node, x: Node, indices: Sequence[Any]) -> Node | None:
    """Return the replacement of `x[:, index]`, or `x[i, j]`, with integers or truth values. None for data, or if dimensions are
    not adjacent."""
    places = _places(selections, x, indices)
    if places is None:
        return None
    merged = reshaped(selections, node, x, places.merged)
    return reshaped(selections, node, gathered(selections, node, merged, places.dim, places.positions), described(node).shape)


def _index_put(
    selections: Selections, node: Node, x: Node, indices: Sequence[Any], values: Node, accumulate: bool = False
) -> Node | None:
    """Return the replacement of `x[i, j] = values`, or of `+=` with `accumulate`. None where there is none."""
    places = _places(selections, x, indices)
    if places is None:
        return None
    outer, rest = places.merged[: places.dim], places.merged[places.dim + 1 :]
    whole = selections.computed(node, torch.ops.aten.expand.default, (values, [*outer, *places.shape, *rest]))
    source = reshaped(selections, node, whole, (*outer, len(places.positions), *rest))
    merged = reshaped(selections, node, x, places.merged)
    reduce = "sum" if accumulate else "overwrite"
    result = combined(selections, node, merged, places.dim, places.positions, source, reduce, True)
    return None if result is None else reshaped(selections, node, result, described(node).shape)


@dataclass(frozen=True, slots=True)
class _Places:
    """Constant index arrays of several adjacent dimensions, as one array, `positions`. It indexes dimension `dim` of the tensor
    after a reshape to `merged`, in which these dimensions are one. `shape` is the shape that the index arrays had."""

    dim: int
    positions: Tensor
    shape: tuple[int, ...]
    merged: tuple[int, ...]


def _places(selections: Selections, x: Node, indices: Sequence[object]) -> _Places | None:
    """Return the positions that a list of indices names, or None if they are data or in dimensions that are not adjacent."""
    columns: list[tuple[int, Tensor]] = []
    dim = 0
    for index in indices:
        positions = None if index is None else selections.known(index)
        if index is not None and positions is None:
            return None
        if positions is None:
            dim += 1
        elif positions.dtype == torch.bool:
            columns += [(dim + n, column) for n, column in enumerate(positions.nonzero().t())]
            dim += positions.dim()
        else:
            columns.append((dim, positions.to(torch.int64)))
            dim += 1
    dims, shape = [d for d, _ in columns], tuple(described(x).shape)
    if not dims or dims != list(range(dims[0], dims[0] + len(dims))):
        return None
    first, behind = dims[0], dims[-1] + 1
    linear = torch.zeros((), dtype=torch.int64)
    for d, column in columns:
        linear = linear * shape[d] + torch.where(column < 0, column + shape[d], column)
    merged = (*shape[:first], prod(shape[first:behind]), *shape[behind:])
    return _Places(first, linear.reshape(-1), tuple(linear.shape), merged)


def _embedding(selections: Selections, node: Node, weight: Node, indices: Node, *_: Any) -> Node | None:
    positions = selections.known(indices)
    if positions is None:
        return None
    return reshaped(selections, node, gathered(selections, node, weight, 0, positions.reshape(-1)), described(node).shape)


def _gather(selections: Selections, node: Node, x: Node, dim: int, index: Node, **_: Any) -> Node | None:
    positions, shaped = selections.known(index), described(x)
    if positions is None:
        return None
    along = _vector_along(positions, dim, shaped.shape)
    return None if along is None else gathered(selections, node, x, dim % shaped.dim(), along)


def _scatter_add(selections: Selections, node: Node, base: Node, dim: int, index: Node, source: Node) -> Node | None:
    return _scatter(selections, node, base, dim, index, source, "sum")


def _index_add(
    selections: Selections, node: Node, base: Node, dim: int, index: Node, source: Node, *, alpha: float = 1
) -> Node | None:
    return _scatter(selections, node, base, dim, index, scaled(selections, node, source, alpha), "sum")


def _index_copy(selections: Selections, node: Node, base: Node, dim: int, index: Node, source: Node) -> Node | None:
    return _scatter(selections, node, base, dim, index, source, "overwrite")


def _scatter_source(selections: Selections, node: Node, base: Node, dim: int, index: Node, source: Any, **_: Any) -> Node | None:
    if node.target not in (torch.ops.aten.scatter.src, torch.ops.aten.scatter_.src):
        return None
    return _scatter(selections, node, base, dim, index, source, "overwrite")


def _scatter(
    selections: Selections,
    node: Node,
    base: Node,
    dim: int,
    index: Node,
    source: Any,
    reduce: str,
    include_self: bool = True,
) -> Node | None:
    positions = selections.known(index)
    if positions is None or not isinstance(source, Node):
        return None
    shaped = described(base)
    dim %= shaped.dim()
    along = _vector_along(positions, dim, described(source).shape) if positions.dim() > 1 else positions
    if along is None or not same_beside(dim, source, base):
        return None
    return combined(selections, node, base, dim, along, source, reduce, include_self)


def _vector_along(positions: Tensor, dim: int, shape: torch.Size) -> Tensor | None:
    """Return the positions along `dim` if they are the same for all other coordinates, as in `index.expand_as(x)`."""
    dim %= positions.dim()
    if positions.shape[:dim] != shape[:dim] or positions.shape[dim + 1 :] != shape[dim + 1 :]:
        return None
    moved = _without_copies(positions, dim).movedim(dim, 0).reshape(positions.shape[dim], -1)
    if not moved.shape[1]:
        return None
    return moved[:, 0] if bool((moved == moved[:, :1]).all()) else None


def _without_copies(positions: Tensor, dim: int) -> Tensor:
    """Return positions with one coordinate for each dimension but `dim` that an `expand` repeats them in. It takes no memory."""
    for other, (size, stride) in enumerate(zip(positions.shape, positions.stride(), strict=True)):
        if other != dim and stride == 0 and size > 1:
            positions = positions.narrow(other, 0, 1)
    return positions


GATHERS: dict[str, Handler] = {
    "index_select": _index_select,
    "index": _index,
    "embedding": _embedding,
    "gather": _gather,
    "scatter_add": _scatter_add,
    "scatter_reduce": _scatter,
    "index_add": _index_add,
    "index_put": _index_put,
    "index_copy": _index_copy,
    "scatter": _scatter_source,
}
"""The replacement of each operator, by its name."""
