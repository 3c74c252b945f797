"""Operators that choose elements of a tensor, take others by their numbers, or bring their slots into another order."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from fuseflow.frontend.positions.chosen_operators import pointwise
from fuseflow.frontend.positions.chosen_values import (
    Choices,
    Meaning,
    Slice,
    SlotSpace,
    SlotValue,
    arguments,
    opened,
    repeated_rows,
)
from fuseflow.frontend.positions.selections import described, first_operand
from fuseflow.frontend.trace import fx_origin


def chosen_slots(choices: Choices, node: Node) -> SlotValue | None:
    """Return the slots of `topk`, `max(x, dim)` or `argmax(x, dim)`."""
    given = arguments(node)
    x, dim, name = given["self"], given.get("dim"), fx_origin.short_name(node.target)
    if not isinstance(x, Node) or not isinstance(dim, int) or not given.get("largest", True):
        return None
    shape = described(x).shape
    if not described(x).is_floating_point() or not shape or not 0 < given.get("k", 1) <= shape[dim]:
        return None
    value = opened(node, x, dim, given.get("k", 1))
    if name != "topk" and not given["keepdim"]:
        if len(value.dims) != 2:
            return None
        row = value.dims[0]
        value = replace(value, dims=(row - (dim % len(shape) < row),), is_flat=True)
    return choices.numbered(node, value, "column") if name == "argmax" else value


def result_part(choices: Choices, node: Node) -> SlotValue | None:
    """Return a result of an operator with several ones."""
    source, number = node.args
    assert isinstance(source, Node)
    value, name = choices.values.get(source), fx_origin.short_name(source.target)
    if value is None:
        return None
    if name in ("topk", "max"):
        return choices.numbered(node, value, "column") if number == 1 else chosen_elements(choices, node, value)
    if name == "sort":
        meaning: Meaning = "slot" if number == 1 else "column"
        return None if meaning == "slot" and not value.is_flat else choices.numbered(node, value, meaning)

    def part(x: Node, dim: int) -> Node:
        args = list(source.args[1:2])
        options = {key: given for key, given in source.kwargs.items() if key != "dim"}
        tensors = source.target(torch.empty_like(described(x)), *args, dim=dim, **options)  # type: ignore[operator]
        parts = choices.selections.valued(node, tensors, source.target, (x, *args), dim=dim, **options)
        return choices.selections.valued(node, tensors[number], operator.getitem, (parts, number))

    sliced = value.sliced
    return None if sliced is None else value.derived(lambda: sliced(part, -1), masked=value.masked)


def chosen_elements(choices: Choices, node: Node, value: SlotValue) -> SlotValue:
    choice = value.space.choice
    assert choice is not None
    x, dim = first_operand(choice), arguments(choice)["dim"]

    def make() -> Node:
        rank = described(x).dim()
        matrix = choices.call(node, torch.ops.aten.movedim.int, x, dim % rank, value.matrix_dim(value.slot_dim))
        return choices.at_places(node, value, matrix)

    return value.derived(make, masked=True)


def sorted_slots(choices: Choices, node: Node) -> SlotValue | None:
    """Return the slots after a sort of the numbers of columns. Other sorts change the order in a way that is not known here."""
    value = choices.values.get(first_operand(node))
    is_argsort = "argsort" in str(node.target)
    if value is None:
        return None
    if value.meaning == "slot" and is_argsort and value.sorting is not None:
        choices.inverses[node] = value
        return None
    if value.meaning != "column" or arguments(node)["dim"] % described(first_operand(node)).dim() != value.slot_dim:
        return None
    if not value.is_flat:
        return None if is_argsort else replace(value, order=node)
    if value.sorting is not None:
        return None
    return choices.numbered(node, replace(value, sorting=node), "slot") if is_argsort else replace(value, sorting=node)


def divided(choices: Choices, node: Node) -> SlotValue | None:
    """Return the rows of slots, which are the numbers of the slots divided by how many a row has; or else an operator on elements."""
    value, (_, divisor) = choices.values.get(first_operand(node)), node.args[:2]
    rounds = fx_origin.short_name(node.target).startswith("floor_divide") or node.kwargs.get("rounding_mode") is not None
    if value is not None and value.meaning == "slot":
        return choices.numbered(node, value, "row") if rounds and divisor == value.space.count else None
    return pointwise(choices, node)


def repeated(choices: Choices, node: Node) -> SlotValue | None:
    """Return rows that are repeated once for each slot of a row."""
    given = arguments(node)
    x, count, dim = given["self"], given.get("repeats"), given.get("dim")
    if not isinstance(count, int) or not isinstance(dim, int) or x in choices.values:
        return None
    return rows_of(choices, node, x, dim % described(x).dim(), count)


def rows_of(choices: Choices, node: Node, x: Node, dim: int, count: int, value: SlotValue | None = None) -> SlotValue:
    """Return rows of x along a dimension, each as often as it has slots."""
    space = SlotSpace(None, (described(x).shape[dim],), 1, count)
    value = SlotValue(space, (dim,), True, lambda: x) if value is None else replace(value, dims=(dim,), is_flat=True)
    return value.derived(lambda: choices.unsqueezed(node, x, dim + 1))


def taken(choices: Choices, node: Node) -> SlotValue | None:
    """Return `x[index]`, `index_select(x, dim, index)`, `embedding(x, index)` or `gather(x, dim, index)`."""
    name = fx_origin.short_name(node.target)
    x, dim, index = _taken(node)
    if index is None or not described(x).dim():
        return None
    shape, value = described(x).shape, choices.values.get(index)
    dim %= len(shape)
    if index in choices.inverses and x in choices.values and dim == 0 and name != "gather":
        return unsorted(choices, node, x, choices.inverses[index])
    if value is None:
        known = None if name == "gather" or x in choices.values else choices.selections.known(index)
        count = 0 if known is None else repeated_rows(known, shape[dim])
        return rows_of(choices, node, x, dim, count) if count else None
    at = dim if name == "gather" else 0
    if name == "gather":
        others = zip(shape, described(index).shape, strict=True)
        if any(a != b for d, (a, b) in enumerate(others) if d not in (dim, value.slot_dim)):
            return None
        if value.meaning == "column" and not value.is_flat and dim == value.slot_dim and x not in choices.values:
            rows = all(shape[d] == described(index).shape[d] for d in range(len(shape)) if d != dim)
            if not rows or shape[dim] != value.space.columns:
                return None
            return value.derived(lambda: choices.at_places(node, value, x), masked=True)
        is_row = value.is_one_a_row and described(index).shape[dim] == 1
        if (
            value.meaning == "column"
            and is_row
            and (value.slot_dim, dim, len(shape)) == (0, 1, 2)
            and shape[1] == value.space.columns
        ):
            return value.derived(lambda: choices.unsqueezed(node, x, 2))
    elif described(index).dim() != len(value.dims):
        return None
    if at != (value.slot_dim if value.is_flat else value.dims[0]):
        return None
    return taken_at(choices, node, x, dim, index, value)


def taken_at(choices: Choices, node: Node, x: Node, dim: int, index: Node, value: SlotValue) -> SlotValue | None:
    shape, source = list(described(x).shape), choices.values.get(x)
    dims = tuple(d - value.dims[0] + dim for d in value.dims)
    if value.meaning == "column" and source is None and shape[dim] == value.space.columns:
        rows = [1] if value.is_flat else [1] * (len(value.dims) - 1)
        if dims != tuple(range(dim, dim + len(dims))):
            return None
        wide = [*shape[:dim], *rows, *shape[dim:]]

        def sliced(part: Slice, place: int) -> Node:
            own = place if place < dim else place - len(dims) + 1
            taken = part(x, own)
            extents = described(taken).shape
            return choices.reshaped(node, taken, [*extents[:dim], *rows, *extents[dim:]])

        return value.derived(lambda: choices.reshaped(node, x, wide), dims=dims, sliced=sliced)
    if not value.is_flat:
        return None
    if value.meaning == "row" and source is None and shape[dim] == value.space.row_count:
        return value.derived(lambda: choices.unsqueezed(node, x, dim + 1), dims=dims)
    if source is None or not source.is_flat or source.slot_dim != dim or source.meaning == "slot":
        return None
    if value.meaning != "slot" or source.sorting is not None or not replace(value, sorting=None).is_beside(source):
        return None
    return value.derived(lambda: choices.matrix(x), masked=source.masked, meaning=source.meaning, dims=dims)


def unsorted(choices: Choices, node: Node, source: Node, inverse: SlotValue) -> SlotValue | None:
    """Return a value whose slots were sorted in the order before."""
    value = choices.values[source]
    if not value.is_flat or value.slot_dim != 0 or not value.is_beside(inverse) or value.meaning in ("slot", "one_hot"):
        return None
    return value.derived(lambda: choices.matrix(source), masked=value.masked, meaning=value.meaning, sorting=None)


def put(choices: Choices, node: Node, base: Node, index: Any, source: Any) -> SlotValue | None:
    """Return what `base[index] = source` writes, if the numbers of all slots are the index: the slots in the order before a sort."""
    value = choices.values.get(index)
    if value is None or value.meaning != "slot" or value.sorting is None or not isinstance(source, Node):
        return None
    slots = value.space.row_count * value.space.count
    if described(base).shape[0] != slots:
        return None
    known = choices.selections.known(source)
    if known is not None and known.shape == (slots,) and torch.equal(known, torch.arange(slots, dtype=known.dtype)):
        choices.inverses[node] = value
    return unsorted(choices, node, source, value) if source in choices.values else None


def _taken(node: Node) -> tuple[Node, int, Node | None]:
    """Return the tensor, the dimension and the positions of an operator that takes elements. Positions are None for those in several
    dimensions."""
    args: tuple[Any, ...] = node.args
    name = fx_origin.short_name(node.target)
    if name == "index":
        indices = {dim: index for dim, index in enumerate(args[1]) if index is not None}
        return args[0], min(indices), indices[min(indices)] if len(indices) == 1 else None
    return (args[0], 0, args[1]) if name == "embedding" else args[:3]
