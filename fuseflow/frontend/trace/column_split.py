"""Rewriting of a linear layer whose result is cut into groups of columns: each group becomes a layer with its part of the weights.

For example, queries, keys and values that a model computes in one product become three products, and no slice is left.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from fuseflow.frontend.trace.dependence import schema_arguments
from fuseflow.frontend.trace.fx_origin import added_call

aten = torch.ops.aten
_POSITIONS: dict[Any, tuple[int, int, int | None]] = {
    aten.linear.default: (1, 0, 2),
    aten.addmm.default: (2, 1, 0),
    aten.mm.default: (1, 1, None),
}
"""For each linear operator, the position of its weight, the dimension of the weight along the columns, and the position of its bias."""
_KEEP_COLUMNS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.contiguous.default)
_CUTS = (aten.split.Tensor, aten.split.sizes, aten.split_with_sizes.default, aten.chunk.default)


def split_linear_columns(graph_module: GraphModule) -> None:
    """Replace, in place, every linear layer of a traced model whose result is cut into columns."""
    graph = graph_module.graph
    cuts = [
        (part, start, layer) for node in graph.nodes for part, start in _parts(node) if (layer := _linear_layer(node.args[0]))
    ]
    for part, start, layer in cuts:
        part.replace_all_uses_with(_partial_layer(graph, layer, part, start))
    if cuts:
        graph.eliminate_dead_code()
        graph_module.recompile()


def _parts(node: Node) -> Iterator[tuple[Node, int]]:
    """Return the results of a cut along the last dimension, each with the column where it begins."""
    args: tuple[Any, ...] = node.args
    if node.op != "call_function" or not args or not isinstance(args[0], Node):
        return
    whole = args[0].meta.get("val")
    if not isinstance(whole, Tensor) or not whole.dim():
        return
    columns = whole.shape[-1]
    if node.target == aten.slice.Tensor:
        _, dim, start, end, step = _values(node)
        if dim % whole.dim() == whole.dim() - 1 and step == 1 and node.meta["val"].shape[-1] < columns:
            yield node, slice(start, end).indices(columns)[0]
    elif node.target in _CUTS:
        _, _, dim = _values(node)
        if dim % whole.dim() == whole.dim() - 1:
            starts = [0]
            for piece in node.meta["val"]:
                starts.append(starts[-1] + piece.shape[-1])
            results: list[Any] = [user for user in node.users if user.target is operator.getitem]
            yield from ((result, starts[result.args[1]]) for result in results)


def _values(node: Node) -> list[Any]:
    return [value for _, value in schema_arguments(node)]


def _linear_layer(node: object) -> Node | None:
    """Return the linear layer with constant weights whose result a value is, possibly reshaped in its leading dimensions. None if
    there is none."""
    while isinstance(node, Node) and node.target in _KEEP_COLUMNS:
        source = node.args[0]
        if not isinstance(source, Node) or source.meta["val"].shape[-1:] != node.meta["val"].shape[-1:]:
            return None
        node = source
    if not isinstance(node, Node) or node.target not in _POSITIONS or node.kwargs:
        return None
    weight, _, bias = _POSITIONS[node.target]
    operands = [node.args[weight]] + ([node.args[bias]] if bias is not None and len(node.args) > bias else [])
    constant = all(operand is None or (isinstance(operand, Node) and operand.op == "placeholder") for operand in operands)
    return node if constant else None


def _partial_layer(graph: Graph, layer: Node, part: Node, start: int) -> Node:
    """Add a layer that computes the columns of `layer` from `start` on, in the shape of `part`."""
    end = start + part.meta["val"].shape[-1]
    target: Any = layer.target
    weight, dimension, bias = _POSITIONS[target]
    args: list[Any] = list(layer.args)
    with graph.inserting_before(part):
        for position, dim in ((weight, dimension), (bias, -1)):
            operand = args[position] if position is not None and position < len(args) else None
            if position is not None and isinstance(operand, Node):
                args[position] = added_call(layer, aten.slice.Tensor, operand, dim % operand.meta["val"].dim(), start, end)
        result = added_call(layer, target, *args)
        return added_call(part, aten.reshape.default, result, list(part.meta["val"].shape))
