"""Autocast regions: the conversions of operands that PyTorch makes in them are written into the graph.

PyTorch chooses in such a region, operator by operator, the type in which it computes. The trace has the types of all results, but not the
conversions. For example, a product of two float32 matrices with a result of bfloat16 rounded both matrices first.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

ENTER, EXIT = torch.amp.autocast_mode._enter_autocast, torch.amp.autocast_mode._exit_autocast


def write_conversions(graph: Graph) -> None:
    """Convert, in place, the operands of operators in autocast regions whose results have another type than their operands promote to."""
    regions: list[bool] = []
    for node in list(graph.nodes):
        if node.target is ENTER:
            regions.append(bool(node.args[2]))
        elif node.target is EXIT:
            regions.pop()
        elif regions and regions[-1] and node.op == "call_function" and not _says_its_type(node):
            _convert_operands(node)


def _says_its_type(node: Node) -> bool:
    """Return whether an argument of an operator names the type of its result."""
    arguments: list[Any] = [*node.args, *node.kwargs.values()]
    return any(isinstance(argument, torch.dtype) for argument in arguments)


def _convert_operands(node: Node) -> None:
    result = node.meta.get("val")
    if not isinstance(result, Tensor) or not result.dtype.is_floating_point:
        return
    operands = [operand for operand in node.all_input_nodes if _is_floating(operand)]
    types = [operand.meta["val"].dtype for operand in operands]
    if not types or reduce(torch.promote_types, types) == result.dtype:
        return
    for operand in operands:
        value = operand.meta["val"]
        if value.dtype != result.dtype:
            with node.graph.inserting_before(node):
                converted = node.graph.call_function(torch.ops.aten.to.dtype, (operand, result.dtype))
            converted.meta = {**node.meta, "val": torch.empty_like(value, dtype=result.dtype)}
            node.replace_input_with(operand, converted)


def _is_floating(node: Node) -> bool:
    """Return whether a value is a tensor of floats. One without dimensions does not change the type of a result."""
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.dtype.is_floating_point and value.dim() > 0
