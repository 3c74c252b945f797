"""Products of values with slots."""

from __future__ import annotations

import math
import string
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.chosen_spaces import Slice, SlotValue
from fuseflow.frontend.positions.chosen_values import Choices, arguments
from fuseflow.frontend.positions.selections import described
from fuseflow.frontend.trace import fx_origin


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
