"""The values that PyTorch computes on the way to the outputs of a model, by the Einsums that compute the same.

The model is exported once more, with the names of the nodes of its graph as the locations of its operations. So each Einsum names its node,
and PyTorch runs that graph, node by node. The last Einsum of a node has its value; Einsums before it are pieces of one operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from fuseflow.einsum.nodes import Access, Program
from fuseflow.errors import FrontendError
from fuseflow.frontend.export import ExportedGraph, export_graph
from fuseflow.frontend.linalg.locations import Origin
from fuseflow.frontend.linalg.lowering import lower_to_linalg
from fuseflow.frontend.linalg.to_einsum import extract_program
from fuseflow.frontend.quiet import quiet
from fuseflow.frontend.reference_outputs import NodeValues
from fuseflow.frontend.torch_tensors import MAX_DENSE_ELEMENTS, dense_array, unsigned_types
from fuseflow.frontend.trace.intermediates import with_keeps
from fuseflow.frontend.trace.model_call import ModelCall


def node_values(call: ModelCall, formats: Mapping[str, str], program: Program) -> NodeValues:
    """Return the values that PyTorch computes in a call of a model, by the names of the Einsums of `program`, the import of that call.

    An Einsum that is a piece of one operator has no value, nor has one that only moves elements. A value may have another shape than its
    Einsum, where an operator that moves elements comes after it. An Einsum that depends on a `keep` has none either, since the graph of
    operators does not say which entries are kept. And a value that is NaN somewhere is left out: the graph has dense products in the place
    of sparse ones, in which 0 times infinity is NaN. Raises `FrontendError` if an argument is too large as a dense array.
    """
    exported = export_graph(call, formats)
    nodes = _einsum_nodes(exported, program)
    values = _run(exported, frozenset(nodes.values()))
    return {einsum: values[node] for einsum, node in nodes.items() if node in values}


def _einsum_nodes(exported: ExportedGraph, program: Program) -> dict[str, str]:
    """Return the node of each Einsum that is the last one of a node."""
    linalg = lower_to_linalg(exported.graph, exported.stored, unsigned_types(exported.tensors), program.name, _named)
    named = with_keeps(extract_program(linalg), exported.kept)
    if len(named.einsums) != len(program.einsums):
        raise FrontendError("the model is exported otherwise the second time", hint="its `forward` may draw random numbers")
    nodes = {node.location.path: einsum for einsum, node in zip(program.einsums, named.einsums, strict=True)}
    return {einsum.name: node for node, einsum in nodes.items() if node and not isinstance(einsum.body, Access)}


def _named(node: Node) -> Origin:
    return Origin(node.name)


def _run(exported: ExportedGraph, wanted: frozenset[str]) -> dict[str, npt.NDArray[np.generic]]:
    """Run the graph of a model on its arguments, and return the values of the nodes that are wanted and can be trusted."""
    arguments = [_argument(name, tensor, exported) for name, tensor in exported.tensors.items()]
    recorder = _Recorder(exported.graph, wanted - _kept(exported))
    with quiet(), torch.no_grad():
        recorder.run(*arguments)
    return recorder.values


def _argument(name: str, tensor: torch.Tensor, exported: ExportedGraph) -> torch.Tensor:
    """Return an argument as the graph takes it: dense, and integers for the truth values of a sparse tensor."""
    if tensor.numel() > MAX_DENSE_ELEMENTS:
        shape = " x ".join(map(str, tensor.shape))
        raise FrontendError(f"`{name}` ({shape}) is too large as a dense array to compute in PyTorch on the way")
    dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
    return dense.to(torch.int32) if dense.dtype == torch.bool and not exported.stored[name][0].all_dense else dense


def _kept(exported: ExportedGraph) -> frozenset[str]:
    """Return the nodes that depend on the marker of a `keep`, which represents a rule and is no tensor of the model."""
    placeholders = (node for node in exported.graph.nodes if node.op == "placeholder")
    dependent = {node for node, name in zip(placeholders, exported.tensors, strict=True) if name in exported.kept}
    for node in exported.graph.nodes:
        if any(operand in dependent for operand in node.all_input_nodes):
            dependent.add(node)
    return frozenset(node.name for node in dependent)


class _Recorder(Interpreter):
    """An interpreter of a graph that keeps the values of some of its nodes."""

    def __init__(self, graph: Graph, wanted: frozenset[str]) -> None:
        super().__init__(GraphModule(torch.nn.Module(), graph))
        self.wanted = wanted
        self.values: dict[str, npt.NDArray[np.generic]] = {}

    def run_node(self, node: Node) -> Any:
        result = super().run_node(node)
        if node.name in self.wanted and isinstance(result, torch.Tensor) and not result.isnan().any():
            self.values[node.name] = dense_array(result, node.name)
        return result
