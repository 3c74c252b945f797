"""Which values of a traced model are folded: values that follow from weights, buffers and constants alone, and meet data later.

Examples are a weight times its mask, a parametrization, a low-rank update of a weight, and the scale of a batch norm. A value
that is larger than all its sources together, such as the product of two thin matrices, is not folded, so that no program grows;
nor is a value that meets no data at all, because then the model is that computation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import torch
from torch.fx import Node

from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.aten_operators import VIEWS
from fuseflow.frontend.trace.dependence import Dependence, described_tensor, weight_sources
from fuseflow.frontend.trace.tracing import Trace

_PARAMETRIZED = re.compile(r"(.*\.|)parametrizations\.(\w+)\.")
"""The name of a tensor of `torch.nn.utils.parametrize`, with the path and the name of the weight that is computed of it."""
_PAIRS = (("_orig", "_mask"), ("_orig", "_u"), ("_v", "_g"))
"""The ends of the names of the two tensors by which `prune`, `spectral_norm` and `weight_norm` of PyTorch replace a weight."""
TENSOR_NAME = "tensor_name"
"""The key of the metadata of a node that has the name of the tensor that the node computes."""
_SHAPED = VIEWS - {"to", "_to_copy", "type_as"}
"""Operators that return the numbers of their operand in another shape, for which a program needs no memory."""


def folded_weights(
    traced: Trace, dependences: Mapping[Node, Dependence], patterns: Collection[str], formats: Collection[str]
) -> dict[Node, str]:
    """Return the values that are folded, in order, each with the name of the tensor that it is, or '' if it has none of its own.

    Values that are computed from tensors with `patterns`, or from tensors that `formats` names, are not folded, unless they get that name.
    """
    sources = weight_sources(traced, patterns)
    graph = traced.graph_module.graph
    folded = {node: "" for node in graph.nodes if dependences[node] == "data" and sources.get(node)}
    for node in _without_data(folded):
        del folded[node]
    for node in reversed(list(folded)):
        if all(user in folded for user in node.users):
            continue
        arguments = {argument.name: source for source, argument in traced.arguments.items() if source in sources[node]}
        folded[node] = _tensor_name(node, arguments, folded)
        if _is_left(node, arguments.values()) or any(name in formats and name != folded[node] for name in arguments):
            del folded[node]
    return folded


def _without_data(folded: Collection[Node]) -> set[Node]:
    """Return the folded values that only other folded values or the outputs read: they meet no data."""
    alone = set[Node]()
    for node in reversed(list(folded)):
        if all(user.op == "output" or user in alone for user in node.users):
            alone.add(node)
    return alone


def _is_left(node: Node, sources: Collection[Node]) -> bool:
    """Return whether a value stays in the program: its operator only changes the shape, it is a comparison, whose mask is stored
    like its operand, or it is larger than all its `sources` together."""
    tensor = described_tensor(node)
    if tensor is None or tensor.dtype == torch.bool or fx_origin.short_name(node.target) in _SHAPED:
        return True
    return _size(node) > sum(map(_size, sources))


def _size(node: Node) -> int:
    tensor = described_tensor(node)
    return 0 if tensor is None else tensor.numel()


def _tensor_name(node: Node, arguments: Mapping[str, Node], folded: Collection[Node]) -> str:
    """Return the name by which the user knows a folded value: the weight that PyTorch computes from the arguments, or the first
    argument of this shape that nothing else reads. Return '' if there is none."""
    if name := node.meta.get(TENSOR_NAME):
        return str(name)
    for name in arguments:
        if match := _PARAMETRIZED.match(name):
            return "".join(match.groups())
        for end, other in _PAIRS:
            if name.endswith(end) and name.removesuffix(end) + other in arguments:
                return name.removesuffix(end)
    for name, source in arguments.items():
        if _shape(source) == _shape(node) and all(user in folded for user in source.users):
            return name
    return ""


def _shape(node: Node) -> tuple[int, ...]:
    tensor = described_tensor(node)
    return () if tensor is None else tuple(tensor.shape)
