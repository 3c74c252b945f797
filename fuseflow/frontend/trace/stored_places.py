"""The places of the entries of sparse values that a model computes.

The places are known before import if they come from a sparse tensor that the user gave, or if the model makes a sparse tensor of known
indices. Then only the numbers of the entries are data: `torch.sparse_coo_tensor(edge_index, weights, (n, n))` has a place for each edge.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.torch_tensors import BLOCKED_LAYOUTS, ROW_LAYOUTS, compressed_indices
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.constant_folding import node_values
from fuseflow.frontend.trace.dependence import Dependence, dependences, described_tensor, schema_arguments
from fuseflow.frontend.trace.operator_support import PATTERN_KEEPING, SPARSE_CONSTRUCTION
from fuseflow.frontend.trace.tracing import Argument, Trace

_INDICES = frozenset({"indices", "_indices", "crow_indices", "col_indices", "ccol_indices", "row_indices"})
"""Operators that read the places of entries."""
_STORED_OTHERWISE = ("coalesce", "_coalesce", "t", "transpose")
"""Operators that store the entries of their operand in another order, or elsewhere, whatever their numbers are."""
_AS_OPERAND = {"sparse_sampled_addmm": 0, "sparse_mask": 1}
"""Operators whose result has the places of one operand, with the position of that operand."""
_SOFTMAX = ("_sparse_softmax", "_sparse_log_softmax")


def stored_places(traced: Trace, dependences: Mapping[Node, Dependence]) -> dict[Node, Tensor]:
    """Return the sparse values whose places are known, each with a sparse tensor that stores ones at these places, in the order in
    which the entries of the value are stored."""
    places: dict[Node, Tensor] = {}
    for node in traced.graph_module.graph.nodes:
        stored = _places(traced, dependences, node, places)
        if stored is not None:
            places[node] = stored
    return places


def settle_places(traced: Trace) -> None:
    """Replace, in place, places that a model reads from sparse values that it computes by new arguments, where they are known."""
    graph = traced.graph_module.graph
    for node in list(graph.nodes):
        if fx_origin.short_name(node.target) not in _INDICES or node.args[0] in traced.arguments:
            continue
        stored = stored_places(traced, dependences(traced)).get(node.args[0])
        if stored is not None:
            name = traced.names().unique(fx_origin.named(node, fx_origin.short_name(node.target)))
            node.replace_all_uses_with(traced.add(name, node.target(stored)))
            graph.erase_node(node)


def _places(traced: Trace, dependences: Mapping[Node, Dependence], node: Node, places: Mapping[Node, Tensor]) -> Tensor | None:
    argument = traced.arguments.get(node)
    if argument is not None:
        return _of_argument(argument)
    name = fx_origin.short_name(node.target)
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return None
    if name in SPARSE_CONSTRUCTION.names:
        return _constructed(traced, dependences, node)
    operand = node.args[_AS_OPERAND.get(name, 0)] if node.args else None
    if not isinstance(operand, Node) or operand not in places:
        return None
    stored, name = places[operand], name.removesuffix("_")
    if name in _STORED_OTHERWISE or "to_sparse" in name:
        result: Tensor = node.target(stored, *node.args[1:], **node.kwargs)
        return result
    if name in _SOFTMAX:
        return stored.coalesce()
    is_kept = name in _AS_OPERAND or (name in PATTERN_KEEPING and len(node.all_input_nodes) == 1)
    return stored if is_kept else None


def _of_argument(argument: Argument) -> Tensor | None:
    tensor = argument.tensor
    if tensor.layout == torch.strided:
        return None
    if tensor.layout == torch.sparse_coo:
        ones = torch.ones(tensor._values().shape)
        return torch.sparse_coo_tensor(tensor._indices(), ones, tensor.shape, is_coalesced=tensor.is_coalesced())
    ones = torch.ones(tensor.values().shape)
    return torch.sparse_compressed_tensor(*compressed_indices(tensor), ones, tensor.shape, layout=tensor.layout)


def _constructed(traced: Trace, dependences: Mapping[Node, Dependence], node: Node) -> Tensor | None:
    """Return the places of a tensor that a model makes of indices and values, or None if the indices are data."""
    given = dict(_named_operands(node))
    values = given.pop("values", None)
    if values is None or any(dependences.get(indices) not in ("structure", "pattern") for indices in given.values()):
        return None
    described = described_tensor(values)
    assert described is not None
    known = node_values(traced, list(given.values())) | {values: torch.ones(described.shape, dtype=described.dtype)}
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), known.__getitem__)
    assert callable(node.target)
    result: Tensor = node.target(*args, **kwargs)
    is_batch = result.layout != torch.sparse_coo and compressed_indices(result)[0].dim() > 1
    return None if is_batch else result


def _named_operands(node: Node) -> list[tuple[str, Node]]:
    return [(argument.name, value) for argument, value in schema_arguments(node) if isinstance(value, Node)]


def entry_places(stored: Tensor) -> Tensor:
    """Return the places, of shape (dimensions, entries), of the entries of a sparse tensor in the order in which it stores them."""
    if stored.layout == torch.sparse_coo:
        return stored._indices()
    positions, minor = compressed_indices(stored)
    major = torch.arange(len(positions) - 1).repeat_interleave(positions.diff())
    places = torch.stack((major, minor) if stored.layout in ROW_LAYOUTS else (minor, major))
    if stored.layout not in BLOCKED_LAYOUTS:
        return places
    rows, columns = stored.values().shape[1:]
    corners = places * torch.tensor([[rows], [columns]])
    inside = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).t()
    return (corners.unsqueeze(-1) + inside.unsqueeze(1)).flatten(1)
