"""Slices, concatenations and other movements of data, as products with selections."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend import fx_origin
from fuseflow.frontend.known_positions import Handler
from fuseflow.frontend.selection_products import product_along
from fuseflow.frontend.selections import Selections, call_arguments, described, gathered, named, reshaped


def _moved(selections: Selections, node: Node, x: Node, dim: int, positions: Tensor) -> Node | None:
    """Return the rows of `x` at known positions along `dim`, in the shape of `node`."""
    if not _is_number(x):
        return None
    taken = gathered(selections, node, x, dim % described(x).dim(), positions)
    return reshaped(selections, node, taken, described(node).shape)


def _select(selections: Selections, node: Node) -> Node | None:
    x, dim, index = call_arguments(node, "self", "dim", "index")
    return _moved(selections, node, x, dim, torch.tensor([index]))


def _slice(selections: Selections, node: Node) -> Node | None:
    if fx_origin.is_whole_slice(node):
        return None
    arguments: list[Any] = [*node.args[1:], *(0, None, None, 1)[len(node.args) - 1 :]]
    dim, start, end, step = arguments
    x = call_arguments(node, "self")[0]
    return _moved(selections, node, x, dim, torch.arange(described(x).shape[dim])[start:end:step])


def _narrow(selections: Selections, node: Node) -> Node | None:
    x, dim, start, length = call_arguments(node, "self", "dim", "start", "length")
    return _moved(selections, node, x, dim, torch.arange(start, start + length)) if isinstance(start, int) else None


def _part(selections: Selections, node: Node) -> Node | None:
    """One of the results of a `split`, a `chunk` or an `unbind`."""
    source, number = node.args
    if not isinstance(source, Node) or not isinstance(number, int):
        return None
    name = fx_origin.short_name(source.target)
    if name not in ("split", "split_with_sizes", "chunk", "tensor_split", "unbind"):
        return None
    x = call_arguments(source, "self")[0]
    dim = source.kwargs.get("dim", source.args[-1] if len(source.args) > (1 if name == "unbind" else 2) else 0)
    assert isinstance(dim, int)
    if name == "unbind":
        return _moved(selections, node, x, dim, torch.tensor([number]))
    extents = [part.shape[dim] for part in source.meta["val"]]
    start = sum(extents[:number])
    return _moved(selections, node, x, dim, torch.arange(start, start + extents[number]))


def _roll(selections: Selections, node: Node) -> Node | None:
    x, shifts = call_arguments(node, "self", "shifts")
    dims: Any = node.args[2] if len(node.args) > 2 else node.kwargs.get("dims", [])
    if not dims:
        return None
    return _each(
        selections, node, x, {d: (torch.arange(_extent(x, d)) - s) % _extent(x, d) for d, s in zip(dims, shifts, strict=True)}
    )


def _flip(selections: Selections, node: Node) -> Node | None:
    x, dims = call_arguments(node, "self", "dims")
    return _each(selections, node, x, {d: torch.arange(_extent(x, d)).flip(0) for d in dims})


def _repeat(selections: Selections, node: Node) -> Node | None:
    x, repeats = call_arguments(node, "self", "repeats" if fx_origin.short_name(node.target) == "repeat" else "dims")
    rank = described(x).dim()
    new = len(repeats) - rank
    if new < 0:  # `tile` counts from the last dimension
        repeats, new = [*[1] * -new, *repeats], 0
    if new:
        x = reshaped(selections, node, x, (*[1] * new, *described(x).shape))
    positions = {d: torch.arange(_extent(x, d)).repeat(count) for d, count in enumerate(repeats) if count != 1}
    return _each(selections, node, x, positions)


def _repeat_interleave(selections: Selections, node: Node) -> Node | None:
    x, repeats = call_arguments(node, "self", "repeats")
    dim = node.args[2] if len(node.args) > 2 else node.kwargs.get("dim")
    counts = torch.tensor(repeats) if isinstance(repeats, int) else selections.known(repeats)
    if not isinstance(dim, int) or counts is None:
        return None
    return _each(selections, node, x, {dim: torch.arange(_extent(x, dim)).repeat_interleave(counts)})


def _pad(selections: Selections, node: Node) -> Node | None:
    """Padding with zeros, or with elements of the tensor itself. `pad` has two numbers for each dimension, the last dimension first."""
    x: Node
    x, pad = call_arguments(node, "self", "pad")
    mode, value = "constant", node.args[2] if len(node.args) > 2 else node.kwargs.get("value", 0)
    if fx_origin.short_name(node.target) == "pad":
        mode = str(node.args[2] if len(node.args) > 2 else node.kwargs.get("mode", "constant"))
        value = node.args[3] if len(node.args) > 3 else node.kwargs.get("value", 0)
    if mode == "constant" and value not in (0, None):
        return None
    rank = described(x).dim()
    for n in range(len(pad) // 2):
        before, after, dim = pad[2 * n], pad[2 * n + 1], rank - 1 - n
        extent = _extent(x, dim)
        if (before, after) != (0, 0):
            numbers = torch.arange(extent, dtype=torch.float32).reshape(1, 1, extent)
            if mode == "constant":
                padded = torch.nn.functional.pad(numbers, (before, after), value=-1.0)
            else:
                padded = torch.nn.functional.pad(numbers, (before, after), mode=mode)
            x = _taken(selections, node, x, dim, padded.reshape(-1).to(torch.int64))
    return x


def _concatenated(selections: Selections, node: Node) -> Node | None:
    tensors, dim = call_arguments(node, "tensors")[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    assert isinstance(dim, int)
    tensors = [t for t in tensors if tuple(described(t).shape) != (0,)]
    return _joined(selections, node, tensors, dim % described(node).dim())


def _stacked(selections: Selections, node: Node) -> Node | None:
    tensors, dim = call_arguments(node, "tensors")[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    assert isinstance(dim, int)
    dim %= described(node).dim()
    shapes = [tuple(described(t).shape) for t in tensors]
    rows = [reshaped(selections, node, t, (*s[:dim], 1, *s[dim:])) for t, s in zip(tensors, shapes, strict=True)]
    return _joined(selections, node, rows, dim)


def _joined(selections: Selections, node: Node, tensors: Sequence[Node], dim: int) -> Node | None:
    """Return tensors one after another along `dim`: the sum of all, each with zeros where the others are."""
    if len({described(t).dtype for t in tensors}) > 1 or not all(map(_is_number, tensors)):
        return None
    total, start, result = described(node).shape[dim], 0, None
    for tensor in tensors:
        extent = described(tensor).shape[dim]
        positions = torch.full((total,), -1)
        positions[start : start + extent] = torch.arange(extent)
        part = _taken(selections, node, tensor, dim, positions)
        result = (
            part if result is None else selections.call(node, torch.ops.aten.add.Tensor, (result, part), described(node).shape)
        )
        start += extent
    return result


def _each(selections: Selections, node: Node, x: Node, positions: dict[int, Tensor]) -> Node | None:
    """Return the rows at known positions along several dimensions, one after the other."""
    if not _is_number(x):
        return None
    for dim, at in positions.items():
        x = gathered(selections, node, x, dim % described(x).dim(), at)
    return reshaped(selections, node, x, described(node).shape)


def _taken(selections: Selections, node: Node, x: Node, dim: int, positions: Tensor) -> Node:
    """Return the rows of `x` at known positions along `dim`, and zeros where a position is negative."""
    rows = (positions >= 0).nonzero().reshape(-1)
    ones = torch.ones(len(rows), dtype=described(x).dtype)
    shape = list(described(x).shape)
    matrix = selections.matrix(rows, positions[rows], ones, (len(positions), shape[dim]), named(node, "place"))
    shape[dim] = len(positions)
    return selections.call(node, product_along, (matrix, x, dim), shape)


def _extent(x: Node, dim: int) -> int:
    return int(described(x).shape[dim])


def _is_number(x: Node) -> bool:
    return described(x).dtype != torch.bool


MOVEMENTS: dict[str, Handler] = {
    "select": _select,
    "slice": _slice,
    "narrow": _narrow,
    operator.getitem.__name__: _part,
    "roll": _roll,
    "flip": _flip,
    "repeat": _repeat,
    "tile": _repeat,
    "repeat_interleave": _repeat_interleave,
    "pad": _pad,
    "constant_pad_nd": _pad,
    "cat": _concatenated,
    "concat": _concatenated,
    "concatenate": _concatenated,
    "stack": _stacked,
}
"""For each operator that moves data, by name, what replaces it."""
