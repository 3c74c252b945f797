"""Values that follow from tensors without elements: a graph without edges, an empty batch, a product with no terms.

Such a value depends on no number, so PyTorch computes it while the model is imported, on empty tensors. The sum over no edge is 0, the mean
over nothing is NaN, and a write of no row leaves its target as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.constant_folding import node_values
from fuseflow.frontend.trace.dependence import ancestors_of, described_tensor, is_repeatable, written_by
from fuseflow.frontend.trace.tracing import Trace

_WRITES = {
    **dict.fromkeys(("index_add", "index_copy", "index_fill", "index_reduce"), 2),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), 2),
    **dict.fromkeys(("index_put", "put", "slice_scatter"), 1),
}
"""Operators that may write no element into a tensor, their first argument, with the position of the then empty operand."""
_FILLED = {"zeros_like": 0, "ones_like": 1}
"""Operators that read a tensor for its shape, with the number that fills it."""
_SPARSE = ("sparse", "coalesce")
"""Parts of the names of operators that may return a sparse tensor."""


def settle_empty(traced: Trace) -> None:
    """Replace, in place, every value that follows from tensors without elements: by `full`, or by an argument where it is an output."""
    tensors = {node: argument.tensor for node, argument in traced.arguments.items()}
    integers = {
        node: tensor for node, tensor in tensors.items() if tensor.dtype in (torch.int32, torch.int64) and not tensor.is_meta
    }
    written = {target for node in traced.graph_module.graph.nodes for target in written_by(node)}
    settled: dict[Node, Any] = {node: tensor for node, tensor in integers.items() if node not in written}  # they are structure
    targets = set[Node]()
    for node in [node for node in traced.graph_module.graph.nodes if node.op == "call_function"]:
        if fx_origin.short_name(node.target) in ("cat", "concat") and not is_empty(node):
            parts = node.args[0]
            assert isinstance(parts, list | tuple)
            node.args = ([part for part in parts if not is_empty(part)], *node.args[1:])
        target = _target_of_empty_write(node)
        if target is not None:
            targets.add(target)
        else:
            _settle(node, settled)
    _outputs_to_arguments(traced, settled, targets)


def is_empty(node: object) -> bool:
    """Return whether a value is a tensor without elements, or a list with one."""
    if isinstance(node, list | tuple):
        return any(map(is_empty, node))
    tensor = described_tensor(node) if isinstance(node, Node) else None
    return tensor is not None and tensor.numel() == 0


def _target_of_empty_write(node: Node) -> Node | None:
    """Return the node that replaces a write of no elements: its target or a copy of that. None for any other node."""
    name = fx_origin.short_name(node.target).rstrip("_")
    if name == "scaled_dot_product_attention" and is_empty(node.args[1]) and not is_empty(node):  # attention without keys is 0
        _fill(node, 0)
        return node
    position = _WRITES.get(name, len(node.args))
    if position >= len(node.args) or not is_empty(node.args[position]) or is_empty(node):
        return None
    target = node.args[0]
    assert isinstance(target, Node)
    filler = _FILLED.get(fx_origin.short_name(target.target))
    if filler is not None:
        _fill(target, filler)
    if any(written_by(node)):
        node.replace_all_uses_with(target)
        node.graph.erase_node(node)
        return target
    node.target, node.args, node.kwargs = torch.ops.aten.clone.default, (target,), {}
    return node


def _settle(node: Node, settled: dict[Node, Any]) -> None:
    """Compute a value whose operands are empty or `settled`, add it there, and replace it if it is a tensor of one number."""
    operands = node.all_input_nodes
    empty = is_empty(node)
    known = all(n in settled or is_empty(n) for n in operands) and any(n.op != "placeholder" or is_empty(n) for n in operands)
    if not (empty or known) or any(word in fx_origin.short_name(node.target) for word in _SPARSE):
        return
    described = described_tensor(node)
    target: Callable[..., Any] = node.target  # type: ignore[assignment]
    if empty and described is not None:
        value: Any = _value(node, {})
    elif isinstance(target, torch._ops.OpOverload) and not is_repeatable(target):
        return
    else:
        args, kwargs = map_arg((node.args, node.kwargs), lambda operand: _value(operand, settled))
        value = target(*args, **kwargs)
    settled[node] = value
    number = _only_number(value) if isinstance(value, Tensor) and value.layout == torch.strided else None
    if number is not None:
        _fill(node, number)


def _fill(node: Node, number: float | int | bool | complex) -> None:
    """Make a node a call of `full` with this number, in the shape and the type that the node has."""
    described = described_tensor(node)
    assert described is not None
    node.target, node.args = torch.ops.aten.full.default, (list(described.shape), number)
    node.kwargs = {"dtype": described.dtype}


def _value(node: Node, settled: dict[Node, Any]) -> Any:
    described = described_tensor(node)
    if node in settled or described is None:
        return settled[node]
    return torch.empty(tuple(described.shape), dtype=described.dtype)


def _only_number(value: Tensor) -> float | int | bool | complex | None:
    """Return the number that all elements of a tensor are, 0 if there are none, or None if they differ."""
    if not value.numel():
        return 0
    first = value.reshape(-1)[0]
    number: float | int | bool | complex = first.item()
    return number if bool(((value == first) | ((value != value) & (first != first))).all()) else None


def _outputs_to_arguments(traced: Trace, settled: Mapping[Node, Any], targets: set[Node]) -> None:
    """Make arguments of outputs that follow from empty tensors alone (`settled`, or `targets`): an output has to depend on one."""
    names, output = traced.names(), traced.graph_module.graph.output_node()
    for node in output.all_input_nodes:
        ancestors = ancestors_of(node)
        unwritten = not traced.arguments.keys() & ancestors and not ancestors.isdisjoint(targets | settled.keys())
        if node.op == "call_function" and (node in settled or unwritten):
            value = settled[node] if node in settled else node_values(traced, [node])[node]
            output.replace_input_with(node, traced.add(names.unique(node.name), value))
