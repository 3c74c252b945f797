"""Comparisons of tensors with numbers of another kind. torch-mlir folds some of them to wrong truth values, or crashes on them.

`full_like(x, 1.0) == 1` becomes false there. So floats are compared with floats here, and integers with integers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.fx import Graph, Node

from fuseflow.frontend.trace import fx_origin

_NAMES = ("eq", "ne", "lt", "le", "gt", "ge")
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def compare_alike(graph: Graph) -> None:
    """Replace, in place, numbers with which tensors are compared by numbers of the type of the tensor: integers or floats."""
    for node in graph.nodes:
        name = fx_origin.short_name(node.target) if node.op == "call_function" else ""
        if name not in _NAMES or len(node.args) != 2 or not isinstance(node.args[0], Node):
            continue
        tensor, number = node.args
        value = tensor.meta.get("val")
        if not isinstance(value, Tensor) or not isinstance(number, int | float) or isinstance(number, bool):
            continue
        if value.dtype.is_floating_point:
            node.args = (tensor, float(number))
        elif value.dtype in _INTEGERS and isinstance(number, float):
            name, whole = _whole_comparison(name, number, torch.iinfo(value.dtype).min)
            node.target, node.args = getattr(torch.ops.aten, name).Scalar, (tensor, whole)


def _whole_comparison(name: str, number: float, least: int) -> tuple[str, int]:
    """Return the comparison of integers that is true where their comparison with a float is. `least` is the least integer.

    >>> _whole_comparison("lt", 1.5, -128), _whole_comparison("eq", 1.5, -128), _whole_comparison("ge", float("inf"), -128)
    (('lt', 2), ('lt', -128), ('lt', -128))
    """
    if math.isfinite(number) and number == math.floor(number):
        return name, int(number)
    always, never = ("ge", least), ("lt", least)
    if math.isnan(number) or name in ("eq", "ne"):
        return always if name == "ne" else never
    if math.isinf(number):
        return always if (name in ("lt", "le")) == (number > 0) else never
    return name, math.ceil(number) if name in ("lt", "ge") else math.floor(number)
