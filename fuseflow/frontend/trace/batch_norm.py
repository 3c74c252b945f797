"""Batch norms with known statistics: one factor and one summand for each channel, as PyTorch computes them on a CPU.

`(x - mean) / sqrt(var + eps) * weight + bias` is `x * scale + shift`, and both follow from weights and buffers alone, so that they are
folded. See `batch_norm_cpu_collect_linear_and_constant_terms` in PyTorch's `native/cpu/batch_norm_kernel.cpp`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch.fx import Node

from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import weight_sources
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.frontend.trace.weight_folding import TENSOR_NAME

aten = torch.ops.aten


def write_batch_norms(traced: Trace, patterns: Collection[str]) -> None:
    """Write the batch norms of a traced model as a product and a sum, if their statistics and weights are known before import.
    Batch norms that read a tensor with a pattern, or compute with several types, stay as they are."""
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
        path = fx_origin.module_path(node)
        named = {TENSOR_NAME: f"{path}.{name}" if path else name} if name else {}
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
