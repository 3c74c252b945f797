"""Rewriting of layers whose weights are known: batch norms, and linear layers whose result is cut into groups of columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.constant_folding import TENSOR_NAME
from fuseflow.frontend.trace.dependence import schema_arguments, weight_sources
from fuseflow.frontend.trace.tracing import Trace

aten = torch.ops.aten
_POSITIONS: dict[Any, tuple[int, int, int | None]] = {
    aten.linear.default: (1, 0, 2),
    aten.addmm.default: (2, 1, 0),
    aten.mm.default: (1, 1, None),
}
"""For each linear operator, the position of its weight, the dimension of the weight along the columns, and the position of its bias."""
_KEEP_COLUMNS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.contiguous.default)
_CUTS = (aten.split.Tensor, aten.split.sizes, aten.split_with_sizes.default, aten.chunk.default)


def write_batch_norms(traced: Trace, patterns: Collection[str]) -> None:
    """Write the batch norms of a traced model as a product and a sum, if their statistics and weights are known before import.

    `(x - mean) / sqrt(var + eps) * weight + bias` is `x * scale + shift`, as PyTorch computes it on a CPU, and both follow from weights and
    buffers alone, so that they are folded. See `batch_norm_cpu_collect_linear_and_constant_terms` in PyTorch's
    `native/cpu/batch_norm_kernel.cpp`. Batch norms that read a tensor with a pattern, or compute with several types, stay as they are.
    """
    known = weight_sources(traced, patterns)
    for node in list(traced.graph_module.graph.nodes):
        match node.target:
            case aten.batch_norm.default:
                x, weight, bias, mean, var, training, _, eps, *_ = node.args
                results = [node]
            case aten._native_batch_norm_legit_no_training.default:
                x, weight, bias, mean, var, _, eps = node.args
                results = list(node.users)  # the first is the norm, and the others are empty
                training = any(result.target is not operator.getitem or result.args[1] for result in results)
            case _:
                continue
        given = [tensor for tensor in (weight, bias, mean, var) if tensor is not None]
        if training or mean is None or var is None or not all(tensor in known for tensor in given):
            continue
        if len({tensor.meta["val"].dtype for tensor in (x, *given)}) == 1:
            written = _written(node, x, weight, bias, mean, var, eps)
            for result in results:
                result.replace_all_uses_with(written)
            for old in dict.fromkeys((*results, node)):
                traced.graph_module.graph.erase_node(old)


def _written(node: Node, x: Node, weight: Node | None, bias: Node | None, mean: Node, var: Node, eps: float) -> Node:
    """Add a product and a sum that compute the batch norm `node` of `x` by its stored mean and variance. Return the sum."""

    def call(target: Callable[..., Any], *args: Any, name: str = "") -> Node:
        named = {TENSOR_NAME: fx_origin.named(node, name)} if name else {}
        return fx_origin.added_call(node, target, *args, **named)

    def of_channels(tensor: Node) -> Node:
        rank = x.meta["val"].dim()
        return call(aten.view.default, tensor, [1, -1, *[1] * (rank - 2)])

    with node.graph.inserting_before(node):
        inverse = call(aten.rsqrt.default, call(aten.add.Tensor, var, eps), name="scale")
        scale = inverse if weight is None else call(aten.mul.Tensor, inverse, weight, name="scale")
        offset = call(aten.neg.default, call(aten.mul.Tensor, mean, scale), name="shift")
        shift = offset if bias is None else call(aten.add.Tensor, bias, offset, name="shift")
        return call(aten.add.Tensor, call(aten.mul.Tensor, x, of_channels(scale)), of_channels(shift))


def split_linear_columns(graph_module: GraphModule) -> None:
    """Replace, in place, every linear layer of a traced model whose result is cut into groups of columns: each group becomes a layer with
    its part of the weights. For example, queries, keys and values of one product become three products, and no slice is left."""
    graph = graph_module.graph
    parts = ((node.args[0], part, start) for node in graph.nodes for part, start in _parts(node))
    cuts = [(part, start, layer) for whole, part, start in parts if (layer := _linear_layer(whole))]
    for part, start, layer in cuts:
        part.replace_all_uses_with(_partial_layer(graph, layer, part, start))
    if cuts:
        graph.eliminate_dead_code()
        graph_module.recompile()


def _parts(node: Node) -> Iterator[tuple[Node, int]]:
    """Return the results of a cut along the last dimension, each with the column where it begins."""
    args: tuple[Any, ...] = node.args
    if node.target not in (aten.slice.Tensor, *_CUTS) or not args or not isinstance(args[0], Node):
        return
    whole = args[0].meta.get("val")
    if not isinstance(whole, Tensor) or not whole.dim():
        return
    columns = whole.shape[-1]
    values: list[Any] = [value for _, value in schema_arguments(node)]
    if node.target == aten.slice.Tensor:
        _, dim, start, end, step = values
        if dim % whole.dim() == whole.dim() - 1 and step == 1 and node.meta["val"].shape[-1] < columns:
            yield node, slice(start, end).indices(columns)[0]
    else:
        _, _, dim = values
        if dim % whole.dim() == whole.dim() - 1:
            starts = list(accumulate((piece.shape[-1] for piece in node.meta["val"]), initial=0))
            results: list[Any] = [user for user in node.users if user.target is operator.getitem]
            yield from ((result, starts[result.args[1]]) for result in results)


def _linear_layer(node: object) -> Node | None:
    """Return the linear layer with constant weights whose result a value is, possibly reshaped in leading dimensions, or None."""
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
                args[position] = fx_origin.added_call(
                    layer, aten.slice.Tensor, operand, dim % operand.meta["val"].dim(), start, end
                )
        result = fx_origin.added_call(layer, target, *args)
        return fx_origin.added_call(part, aten.reshape.default, result, list(part.meta["val"].shape))
