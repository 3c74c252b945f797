"""Export of a model as a graph of simple operators, with a description of its arguments."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch._decomp import get_decompositions
from torch.export import ExportedProgram, default_decompositions, export
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from fuseflow.frontend.foreign_errors import quiet
from fuseflow.frontend.model_propagation.dependence_rules import RULES, operators_of
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.model_call import ModelCall
from fuseflow.frontend.trace.refusals import refusal

Kind = Literal["parameter", "buffer", "input", "intermediate"]
aten = torch.ops.aten

_BATCH_NORMS = ("batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
_HINT_EVAL = "call `model.eval()` before, or return the new value instead of writing it in place"


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """A tensor that a graph is called with. `names` are all names that it has in the model. Its numbers are `constant` if it is a buffer,
    or the scale or shift of a batch norm; the value of an input is None."""

    names: tuple[str, ...]
    kind: Kind
    tensor: Tensor | None
    constant: bool


@dataclass(frozen=True, slots=True, eq=False)
class ExportedModule:
    """A graph of operators without writes. `arguments` describes its placeholders; a tied weight has several, with one argument.
    `outputs` are the nodes that the model returns."""

    graph: Graph
    arguments: Mapping[Node, Argument]
    outputs: tuple[Node, ...]


def export_module(call: ModelCall) -> ExportedModule:
    """Export a call of a model. Raise `FrontendError` if PyTorch cannot export it, or if it writes to its state or reads its data."""
    with quiet(), torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):  # its LSTM has no decomposition
        try:
            program = export(call.module, call.args, dict(call.kwargs), strict=False)
            norms = [node for node in program.graph.nodes if fx_origin.short_name(node.target) in _BATCH_NORMS]
            constants = {arg.name for node in norms for arg in node.args[1:3] if isinstance(arg, Node)}  # scales and shifts
            program = program.run_decompositions(_decompositions())
        except Exception as error:  # whatever the model and PyTorch raise
            raise fx_origin.export_error(error) from error
    _require_no_writes(program)
    graph = program.graph
    graph.eliminate_dead_code()
    for node in graph.nodes:
        _require_tensors(node)
    outputs = {spec.arg.name for spec in program.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT}
    leaves = [leaf for leaf in pytree.tree_leaves(graph.output_node().args) if isinstance(leaf, Node) and leaf.name in outputs]
    return ExportedModule(graph, _arguments(call.module, program, constants), tuple(leaves))


def _decompositions() -> dict[Any, Any]:
    """Return the decompositions for `torch.export`: those of PyTorch and of layers that normalize, which become sums and products,
    without the operators that have a rule of lifting."""
    norms = [aten.native_layer_norm, aten._native_batch_norm_legit, aten._native_batch_norm_legit_no_training]
    table = default_decompositions()
    table.update({**get_decompositions(norms), aten.native_group_norm.default: _group_norm})  # type: ignore[no-untyped-call]
    for name in RULES:
        for target in operators_of(name):
            table.pop(target, None)  # type: ignore[no-untyped-call]
    return table


def _group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, channels: int, size: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize groups of channels. PyTorch's own decomposition depends on how tensors lie in memory."""
    rows = x.reshape(n, groups, -1)
    var, mean = torch.var_mean(rows, 2, correction=0, keepdim=True)
    scale = torch.rsqrt(var + eps)
    result = ((rows - mean) * scale).reshape(x.shape)
    by_channel = (1, channels, *[1] * (x.dim() - 2))
    if weight is not None:
        result = result * weight.reshape(by_channel)
    if bias is not None:
        result = result + bias.reshape(by_channel)
    return result, mean.reshape(n, groups), scale.reshape(n, groups)


def _arguments(module: nn.Module, program: ExportedProgram, constants: set[str]) -> dict[Node, Argument]:
    """Return the argument of each placeholder that stands for a tensor. The placeholders of one tied tensor share it."""
    state = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    tensors: dict[str, Any] = {**program.constants, **dict(state)}
    names: dict[int, list[str]] = {}
    for name, tensor in state:
        names.setdefault(id(tensor), []).append(name)
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    specs = dict(zip(placeholders, program.graph_signature.input_specs, strict=True))
    constant = {id(tensors[spec.target]) for node, spec in specs.items() if spec.target and node.name in constants}
    arguments: dict[Node, Argument] = {}
    shared: dict[int, Argument] = {}
    for node, spec in specs.items():
        if spec.kind is InputKind.USER_INPUT:
            if isinstance(node.meta.get("val"), Tensor):
                arguments[node] = Argument((node.name,), "input", None, False)
        elif isinstance(tensor := tensors[spec.target or ""], Tensor):
            kind: Kind = "parameter" if spec.kind is InputKind.PARAMETER else "buffer"
            all_names = tuple(names.get(id(tensor), [str(spec.target)]))
            argument = Argument(all_names, kind, tensor.detach(), kind == "buffer" or id(tensor) in constant)
            arguments[node] = shared.setdefault(id(tensor), argument)
    return arguments


def _require_no_writes(program: ExportedProgram) -> None:
    """Raise `FrontendError` for a model that writes to its parameters, buffers or inputs."""
    for spec in program.graph_signature.output_specs:
        if spec.target is not None and spec.kind.name.endswith("_MUTATION"):
            node = next(node for node in program.graph.nodes if node.name == spec.arg.name)
            raise refusal(node, f"the model writes to `{spec.target}`", _HINT_EVAL)


def _require_tensors(node: Node) -> None:
    """Raise `FrontendError` for control flow, and for operators with another shape or another meaning for other data."""
    if node.op != "call_function" or node.target is operator.getitem:
        return
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        raise refusal(node, f"control flow or a nested graph (`{node.target}`)", "write it without `torch.cond` and the like")
    leaves = pytree.tree_leaves(node.meta.get("val"))
    sizes = [size for leaf in leaves if isinstance(leaf, Tensor) for size in leaf.shape]
    if any(isinstance(each, torch.SymInt | torch.SymFloat | torch.SymBool) for each in (*leaves, *sizes)):
        problem = f"what `{node.target}` computes has another shape, or is another number, with other data"
        raise refusal(node, problem, "use `torch.where` or a mask, which keep the shape")


def named_results(exported: ExportedModule) -> Iterator[tuple[str, Node]]:
    """Yield the nodes that compute one tensor, with names such as `layer1.relu`, and `layer1.relu_2` for a second one."""
    used = dict.fromkeys((name for argument in exported.arguments.values() for name in argument.names), 1)
    for node in exported.graph.nodes:
        if node.op != "call_function" or not isinstance(node.meta.get("val"), Tensor):
            continue
        source = node.args[0] if node.target is operator.getitem else node
        path, short = fx_origin.module_path(source), fx_origin.short_name(source.target).strip("_")
        name = f"{path}.{short}" if path else short
        used[name] = used.get(name, 0) + 1
        yield name if used[name] == 1 else f"{name}_{used[name]}", node
