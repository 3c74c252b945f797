"""Operators on all elements of values with slots, and what moves their dimensions."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.chosen_values import Choices, Slice, SlotValue, arguments, instead_of
from fuseflow.frontend.positions.edge_spaces import UNARY
from fuseflow.frontend.positions.selections import described, first_operand
from fuseflow.frontend.trace import fx_origin

_KEEPS_ZERO = UNARY | {
    *("add", "sub", "neg", "relu", "relu6", "leaky_relu", "elu", "tanh", "abs", "sign", "sqrt", "square", "gelu", "silu", "to"),
}
"""Operators whose result is zero where all operands are."""
_COPIES = UNARY | {"to", "expand"}
"""Operators that change no number of the dimensions that an operand has."""
ALONG = frozenset({"layer_norm", "chunk", "split", "split_with_sizes", "slice", "softmax", "log_softmax", "rms_norm"})
"""Operators along other dimensions than the one of the slots."""
_KEEPS_SHAPE = frozenset({"layer_norm", "rms_norm", "softmax", "log_softmax"})


def pointwise(choices: Choices, node: Node) -> SlotValue | None:
    name = fx_origin.short_name(node.target).rstrip("_")
    is_pointwise = isinstance(node.target, torch._ops.OpOverload) and torch.Tag.pointwise in node.target.tags
    operands, result = node.all_input_nodes, node.meta["val"]
    lead = choices.lead(operands)
    if lead is None or not (is_pointwise or name in _COPIES) or not isinstance(result, Tensor):
        counts_converted(choices, node)
        return None
    leader = next(operand for operand in operands if choices.values.get(operand) is lead)
    more = result.dim() - described(leader).dim()
    lead = replace(lead, dims=tuple(dim + more for dim in lead.dims), made=[])
    for operand in operands:
        value, offset = choices.values.get(operand), result.dim() - described(operand).dim()
        if value is not None and tuple(dim + offset for dim in value.dims) != lead.dims:
            return None
        if value is not None and (value.meaning in ("slot", "one_hot") and name not in _COPIES):
            return None
        if value is None and not is_equal_in_slots(choices, described(operand), lead, offset):
            return None
    if name in _COPIES:
        value = choices.values[leader]
        return lead.derived(
            lambda: converted(choices, node, leader, choices.matrix(leader)),
            masked=value.masked,
            meaning=value.meaning,
            sliced=lambda part, dim: converted(choices, node, leader, choices.part_of(leader, dim - more, part)),
        )
    masked = [operand in choices.values and choices.values[operand].masked for operand in operands]
    keeps = name in _KEEPS_ZERO and not any(isinstance(arg, int | float) for arg in node.args[1:] if name in ("add", "sub"))
    keeps = keeps or (name == "clamp" and _clamps_zero_to_zero(node))
    is_masked = any(masked) if name == "mul" or keeps else name == "div" and masked[0]
    masks_rest = is_masked and keeps and not all(masked)

    def computed(taken: Callable[[Node], Node]) -> Node:
        matrices = {operand: operand_matrix(choices, node, operand, lead, masks_rest, taken) for operand in operands}
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), matrices.__getitem__)
        return choices.call(node, _not_in_place(node.target), *args, **kwargs)

    def sliced(part: Slice, dim: int) -> Node:
        def taken(operand: Node) -> Node:
            own = dim - result.dim() + described(operand).dim()
            is_whole = own < 0 or described(operand).shape[own] == 1
            return choices.matrix_or_number(operand) if is_whole else choices.part_of(operand, own, part)

        return computed(taken)

    return lead.derived(lambda: computed(choices.matrix_or_number), masked=is_masked, sliced=sliced)


def counts_converted(choices: Choices, node: Node) -> None:
    """Note that a conversion of the numbers of chosen places has these numbers."""
    if fx_origin.short_name(node.target) in UNARY | {"to"}:
        operand = first_operand(node)
        for known in (choices.counted, choices.ends):
            if operand in known:
                known[node] = known[operand]


def converted(choices: Choices, node: Node, operand: Node, matrix: Node) -> Node:
    more = described(node).dim() - described(operand).dim()
    if more:
        matrix = choices.reshaped(node, matrix, [1] * more + list(described(matrix).shape))
    return choices.typed(node, matrix)


def is_equal_in_slots(choices: Choices, operand: Tensor, value: SlotValue, offset: int) -> bool:
    """Return whether an operand without slots has one number for all slots of a row, or of all rows if the slots are one dimension."""
    dim = value.slot_dim - offset
    return dim < 0 or operand.shape[dim] == 1 or value.is_one_a_row


def operand_matrix(
    choices: Choices, node: Node, operand: Node, lead: SlotValue, masks: bool, taken: Callable[[Node], Node]
) -> Node:
    """Return the matrix of an operand of `node`, or of the part that `taken` takes, for the slots of `lead`."""
    offset = described(node).dim() - described(operand).dim()
    value, dim, matrix = choices.values.get(operand), lead.slot_dim - offset, taken(operand)
    if value is None and lead.is_flat and dim >= 0:
        matrix = choices.unsqueezed(node, matrix, dim + 1)
    is_masked = not masks or (value is not None and value.masked)
    return matrix if is_masked else choices.at_places(node, lead, matrix)


def reshaped_slots(choices: Choices, node: Node) -> SlotValue | None:
    operand = first_operand(node)
    value, shape, result = choices.values.get(operand), tuple(described(operand).shape), tuple(described(node).shape)
    moved = None if value is None else value.moved(shape, result)
    if value is None or moved is None or value.meaning == "one_hot":
        return None
    if value.meaning == "slot":
        return choices.numbered(node, moved, value.meaning) if moved.is_flat else None

    def make() -> Node:
        matrix, old, new = choices.matrix(operand), value.shape(shape), list(moved.shape(result))
        extents = described(matrix).shape
        inner = {value.matrix_dim(dim) for dim in value.dims} | ({value.slot_dim} if value.is_flat else set())
        if any(extents[d] != old[d] for d in range(len(old)) if d not in inner):
            whole = [-1 if d in inner else n for d, n in enumerate(old)]
            matrix = choices.call(node, torch.ops.aten.expand.default, matrix, whole)
        if extents[value.matrix_dim(value.slot_dim)] == 1:
            new[moved.matrix_dim(moved.slot_dim)] = 1
        if prod(extents[d] for d in inner) == extents[value.matrix_dim(value.slot_dim)]:  # one number for all rows
            for dim in (moved.slot_dim,) if moved.is_flat else moved.dims[:-1]:
                new[dim] = 1
        return choices.reshaped(node, matrix, new)

    def sliced(part: Slice, dim: int) -> Node:
        places = {(prod(shape[:d]), extent): d for d, extent in enumerate(shape)}
        own = places.get((prod(result[:dim]), result[dim]))
        simple = sum(n != 1 for n in shape) == sum(n != 1 for n in result)
        if own is None or not simple or value.is_flat != moved.is_flat:
            return part(choices.matrix(node), moved.matrix_dim(dim))
        matrix = choices.part_of(operand, own, part)
        inner = iter([n for d, n in enumerate(described(matrix).shape) if value.shape(shape)[d] != 1])
        return choices.reshaped(node, matrix, [1 if n == 1 else next(inner) for n in moved.shape(result)])

    return moved.derived(make, masked=value.masked, meaning=value.meaning, sliced=sliced)


def permuted(choices: Choices, node: Node) -> SlotValue | None:
    operand = first_operand(node)
    value, rank = choices.values.get(operand), described(node).dim()
    numbers = torch.empty([2] * rank, device="meta").stride()
    order = [numbers.index(stride) for stride in _moved(node, torch.empty([2] * rank, device="meta")).stride()]
    if value is None or value.meaning not in ("", "column", "row"):
        return None
    moved = replace(value, dims=tuple(order.index(dim) for dim in value.dims), made=[])
    inner = [
        m for dim in order for m in ((dim, dim + 1) if value.is_flat and dim == value.slot_dim else (value.matrix_dim(dim),))
    ]
    make = lambda: choices.call(node, torch.ops.aten.permute.default, choices.matrix(operand), inner)  # noqa: E731
    return moved.derived(make, masked=value.masked, meaning=value.meaning)


def along(choices: Choices, node: Node) -> SlotValue | None:
    """Return an operator along other dimensions than the one of the slots, or a softmax over them."""
    operand, name, given = first_operand(node), fx_origin.short_name(node.target), arguments(node)
    value, rank = choices.values.get(operand), described(first_operand(node)).dim()
    shape = given.get("normalized_shape", [0])
    dims = range(rank - len(shape), rank) if "dim" not in given else [given["dim"] % rank]
    if value is None or value.meaning or any(other in choices.values for other in node.all_input_nodes[1:]):
        return None
    if not set(value.dims).isdisjoint(dims):
        return softmax(choices, node, value) if name == "softmax" and not value.is_flat and value.slot_dim in dims else None

    is_part = name not in _KEEPS_SHAPE
    if is_part and name != "slice":
        return value.derived(
            lambda: choices.matrix(operand), masked=value.masked, sliced=lambda part, _: choices.part_of(operand, dims[0], part)
        )

    def part(x: Node, dim: int) -> Node:
        return choices.call(node, node.target, x, dim, *node.args[2:])

    def make() -> Node:
        if is_part:
            return choices.part_of(operand, dims[0], part)
        inner = [value.matrix_dim(dim) for dim in dims]
        matrix = choices.widened(operand, choices.matrix(operand), inner)
        args = [value.matrix_dim(dims[0])] if "dim" in given else [shape]
        return choices.call(node, node.target, matrix, *args, *node.args[2:], **node.kwargs)

    return value.derived(make, masked=value.masked and is_part)


def softmax(choices: Choices, node: Node, value: SlotValue) -> SlotValue:
    operand = first_operand(node)

    def make() -> Node:
        scores = choices.call(node, instead_of, choices.marks_at(node, value), choices.matrix(operand), float("-inf"))
        return choices.call(node, node.target, scores, *node.args[1:], **node.kwargs)

    return value.derived(make, masked=True)


def _moved(node: Node, tensor: Tensor) -> Tensor:
    """Return a tensor whose dimensions an operator moves as it moves the ones of its operand."""
    target: Any = node.target
    result: Tensor = target(tensor, *node.args[1:], **node.kwargs)
    return result


def _clamps_zero_to_zero(node: Node) -> bool:
    _, low, high = (*node.args, None, None)[:3]
    return (low is None or (isinstance(low, int | float) and low <= 0)) and (
        high is None or (isinstance(high, int | float) and high >= 0)
    )


def _not_in_place(target: Any) -> Any:
    """Return the operator that computes what one that writes to its operand computes."""
    name = fx_origin.short_name(target)
    packet = getattr(torch.ops.aten, name.rstrip("_"), None) if name.endswith("_") else None
    return target if packet is None else getattr(packet, target._overloadname)


def product(choices: Choices, node: Node) -> SlotValue | Node | None:
    equation, operands = _equation(node)
    result = multiplied(choices, node, operands, equation) if equation else None
    bias = arguments(node).get("bias")
    if not isinstance(bias, Node) or result is None:
        return result
    if isinstance(result, Node):
        return choices.call(node, torch.ops.aten.add.Tensor, result, bias)

    def make() -> Node:
        added = choices.at_places(node, result, bias) if result.masked else bias
        return choices.call(node, torch.ops.aten.add.Tensor, result.make(), added)

    return result.derived(make, masked=result.masked)


def multiplied(choices: Choices, node: Node, operands: tuple[Any, Any], equation: str) -> SlotValue | Node | None:
    """Return a product, whose result has slots, or is a sum over slots."""
    lead = choices.lead(operands)
    labels, result = equation.split("->")[0].split(","), equation.split("->")[1]
    values = [choices.values.get(operand) for operand in operands]
    pairs = list(zip(operands, values, labels, strict=True))
    if lead is None or any(value is not None and value.meaning for value in values):
        return None
    names = next([names[d] for d in value.dims] for _, value, names in pairs if value is not None)
    slot = names[-1]
    for operand, value, own in pairs:
        if len(set(own)) != len(own) or (value is not None and [own[d] for d in value.dims] != names):
            return None
        if value is None and slot in own and not lead.is_one_a_row and described(operand).shape[own.index(slot)] != 1:
            return None
    column = next(letter for letter in string.ascii_letters if letter not in equation)

    def wide(text: str) -> str:
        return text.replace(slot, slot + column) if lead.is_flat else text

    leaves = slot not in result
    if leaves and lead.space.choice is None:
        return None

    def make(masks: bool, name: str = "", part: Slice | None = None) -> Node:
        tensors, texts = [], []
        chosen = next((n for n, value in enumerate(values) if value is not None and value.masked), None)
        if chosen is None and masks:
            sizes = [
                described(operand).numel() if value is not None else math.inf
                for operand, value in zip(operands, values, strict=True)
            ]
            chosen = sizes.index(min(sizes))
        for n, (operand, value, own) in enumerate(pairs):
            if part is not None and name in own:
                matrix = choices.part_of(operand, own.index(name), part)
            else:
                matrix = operand if value is None else choices.masked(operand) if n == chosen else choices.matrix(operand)
            if value is None and lead.is_flat and slot in own:
                matrix = choices.unsqueezed(node, matrix, own.index(slot) + 1)
            tensors.append(matrix)
            texts.append(wide(own))
        text = ",".join(texts) + "->" + wide(result)
        return choices.call(node, labelled_product, *tensors, text)

    if leaves:
        return make(True)
    dims = tuple(result.index(name) for name in names)
    if any(name not in result for name in names):
        return None
    moved = replace(lead, dims=dims, made=[])
    is_masked = any(value is not None and value.masked for value in values)
    return moved.derived(lambda: make(False), masked=is_masked, sliced=lambda part, dim: make(False, result[dim], part))


def grouped(choices: Choices, node: Node) -> SlotValue | None:
    """Return the products of groups of slots with the matrices of their columns."""
    args: tuple[Any, ...] = (*node.args, None)
    rows, weights, ends = args[:3]
    value, space = choices.values.get(rows), choices.ends.get(ends)
    if value is None or space is None or value.meaning or described(weights).dim() != 3 or described(rows).dim() != 2:
        return None
    if not value.is_flat or value.sorting is None or value.space is not space or value.dims != (0,):
        return None

    def product(weights: Node) -> Node:
        product = choices.call(node, labelled_product, choices.matrix(rows), weights, "tei,eij->tej")
        return product if value.masked else choices.at_places(node, value, product)

    return value.derived(lambda: product(weights), masked=True, sliced=lambda part, _: product(part(weights, 2)))


def labelled_product(left: Tensor, right: Tensor, equation: str) -> Tensor:
    """Return `torch.einsum(equation, left, right)`. An operand that is the same for all coordinates of an index of both the other
    operand and the result is expanded, so that the index counts a batch of products."""
    operands, result = equation.split("->")
    labels = operands.split(",")
    extents: dict[str, int] = {}
    for tensor, names in zip((left, right), labels, strict=True):
        extents |= {name: size for name, size in zip(names, tensor.shape, strict=True) if extents.get(name, 1) == 1}
    shared = [name for name in labels[0] if name in labels[1] and name in result]
    tensors = [left, right]
    smaller = min((0, 1), key=lambda n: tensors[n].numel())
    shape = [
        extents[name] if name in shared else size for name, size in zip(labels[smaller], tensors[smaller].shape, strict=True)
    ]
    tensors[smaller] = tensors[smaller].expand(shape)
    return torch.einsum(equation, *tensors)


def _equation(node: Node) -> tuple[str, tuple[Node, Node]]:
    """Return the equation of a product of two tensors, as `torch.einsum` takes it, and the tensors. It is '' where there is none."""
    args: tuple[Any, ...] = node.args
    name = fx_origin.short_name(node.target)
    if name == "einsum":
        equation, operands = args[0].replace(" ", ""), tuple(args[1])
        return equation if len(operands) == 2 and "->" in equation and "." not in equation else "", operands
    left, right = described(args[0]).dim(), described(args[1]).dim()
    batch = string.ascii_letters[: max(left, right) - 2]
    if name == "linear":
        batch = string.ascii_letters[: left - 1]
        return f"{batch}y,zy->{batch}z", args[:2]
    first, second = batch[len(batch) - left + 2 :], batch[len(batch) - right + 2 :]
    return f"{first}xy,{second}yz->{batch}xz" if min(left, right) > 1 else "", args[:2]
