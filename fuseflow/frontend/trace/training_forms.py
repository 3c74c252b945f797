"""Random operators of a model in training mode: what they draw is an input of the step.

y = dropout(x, 0.4)     ->     y = x * draw
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.draws import Draw
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.tracing import STRIDES, Trace

aten = torch.ops.aten
_DROPOUTS = (aten.dropout.default, aten.feature_dropout.default)


def drawn_inputs(traced: Trace) -> tuple[Draw, ...]:
    """Replace, in place, each dropout of a traced model by a product with an input that has what it draws. Return these inputs in the order
    in which PyTorch draws them. They are drawn once, from the generator as it stands."""
    draws = []
    names = traced.names()
    for node in list(traced.graph_module.graph.nodes):
        if node.target in _DROPOUTS and node.args[2]:
            draws.append(_multiplied(traced, node, names.unique(fx_origin.named(node, "draw"))))
    return tuple(draws)


def _multiplied(traced: Trace, node: Node, name: str) -> Draw:
    x, probability, _ = node.args
    assert isinstance(x, Node) and isinstance(probability, float | int)
    value: Tensor = node.meta["val"]
    operator = fx_origin.short_name(node.target)
    each = operator == "dropout"
    shape = tuple(value.shape) if each else (*value.shape[:2], *[1] * (value.dim() - 2))
    laid_out = torch.empty(shape, device="meta")
    if each and x.meta.get(STRIDES) is not None:
        laid_out = torch.empty_like(laid_out.as_strided(shape, x.meta[STRIDES]))
    dtype = str(value.dtype).removeprefix("torch.")
    draw = Draw(name, shape, laid_out.stride(), dtype, operator, float(probability))
    factor = traced.add(name, draw.drawn(), kind="draw")
    with node.graph.inserting_before(node):
        product = fx_origin.added_call(node, aten.mul.Tensor, x, factor)
    node.replace_all_uses_with(product)
    node.graph.erase_node(node)
    return draw
