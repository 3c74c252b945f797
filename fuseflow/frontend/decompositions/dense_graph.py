"""The dense graph of a traced graph, which computes the same with simple operators on dense tensors.

PyTorch traces it, which takes milliseconds for each call of an operator. A model of equal layers makes the same calls again and again, so a
call is traced once, and each call that is equal to it gets a copy of the nodes that the trace of the first one gave. Two calls are equal if
they have the same operator, the same numbers and texts as operands, and tensors of the same type, shape and strides. Nothing else enters
the trace of a call but its module path and the line of the user, and a copy has its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node, Proxy, map_arg
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.utils import _pytree as pytree
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.densify import DensifyingInterpreter
from fuseflow.frontend.decompositions.operator_formulas import INNER_IDENTITIES
from fuseflow.frontend.decompositions.slices_and_windows import SLICE_WRITES
from fuseflow.frontend.foreign_errors import foreign_message
from fuseflow.frontend.trace.dependence import shares_memory
from fuseflow.loop_progress import tell

_OF_TRACE, _OF_CALL = ("val", "tensor_meta", "custom"), ("nn_module_stack", "stack_trace")
"""The metadata of a copy that come from the trace, and those that come from the call that it is made for."""
_PLAIN = (int, float, bool, complex, str, type(None), torch.dtype, torch.layout, torch.device, torch.memory_format)
"""The types of operands whose text says all about them."""


@dataclass(frozen=True, slots=True, eq=False)
class _CallTrace:
    """What the trace of some calls gave: its `nodes` in the dense graph, which read `inputs`, and the values of the calls, in which nodes
    stand for tensors. `written` has the new contents of the inputs that they write to."""

    inputs: list[Node]
    nodes: list[Node]
    values: list[Any]
    written: dict[Node, Node]


def dense_graph(
    traced: GraphModule, arguments: Sequence[Tensor], truths: Sequence[bool]
) -> tuple[Graph, Sequence[FrontendError]]:
    """Return the dense graph of a traced graph, and the errors for operators without a dense form. `arguments` are fake tensors of the mode
    that is active, and `truths` says which of them are truth values in the traced graph. Raise `FrontendError` for an operator that
    PyTorch cannot trace."""
    calls = [node for node in traced.graph.nodes if node.op not in ("placeholder", "output")]
    try:
        return _traced(traced, arguments, truths, [[call] for call in calls])
    except FrontendError:
        raise
    except Exception:  # A write to memory that values share, or to a shape, is known to a trace of all calls alone.
        pass
    try:
        return _traced(traced, arguments, truths, [calls])
    except FrontendError:
        raise
    except Exception as error:
        raise FrontendError(f"the model cannot be written in simple operators: {foreign_message(error)}") from error


def _traced(
    traced: GraphModule, arguments: Sequence[Tensor], truths: Sequence[bool], parts: Sequence[list[Node]]
) -> tuple[Graph, Sequence[FrontendError]]:
    """Return the dense graph and the errors, where the calls in each of `parts` are traced together."""
    interpreter = DensifyingInterpreter(traced)

    def run(*tensors: Tensor) -> list[Tensor]:
        writer = _Writer(interpreter, [t != 0 if truth else t for t, truth in zip(tensors, truths, strict=True)])
        for done, part in enumerate(parts, 1):
            writer.write(part)
            tell("simplifying operators", done, len(parts))
        return writer.outputs()

    decompositions = {**get_decomposition_table(), **SLICE_WRITES, **INNER_IDENTITIES}
    # The graph needs no code. The metadata has module paths and stack traces.
    with _use_lazy_graph_module(True), torch.fx.traceback.preserve_node_meta():
        return make_fx(run, decomposition_table=decompositions)(*arguments).graph, interpreter.refusals


class _Writer:
    """A writer of the graph that `make_fx` makes. `_values` has the value of every call so far, in which nodes of this graph stand for
    tensors. If a later call wrote to one of them, `_overwritten` has the node with its new content."""

    def __init__(self, interpreter: DensifyingInterpreter, arguments: Sequence[Tensor]) -> None:
        mode = proxy_tensor.get_proxy_mode()
        assert mode is not None
        self._interpreter, self._tracer, self._graph = interpreter, mode.tracer, mode.tracer.graph
        self._traces: dict[Hashable, _CallTrace] = {}
        self._overwritten: dict[Node, Node] = {}
        self._tensors: dict[Node, Tensor] = {}
        placeholders = interpreter.graph.find_nodes(op="placeholder")
        self._values: dict[Node, Any] = {node: self._node(t) for node, t in zip(placeholders, arguments, strict=True)}

    def outputs(self) -> list[Tensor]:
        """Return the outputs of the graph. Let it end with a copy to each argument that is written to."""
        arguments = self._graph.find_nodes(op="placeholder")
        for argument in filter(self._overwritten.__contains__, arguments):
            self._graph.call_function(torch.ops.aten.copy_.default, (argument, self._overwritten[argument]))
        output = self._interpreter.graph.output_node()
        operands, _ = self._operands([output])
        leaves = pytree.tree_leaves(map_arg(output.args[0], operands.__getitem__))
        return [self._tensor(leaf) for leaf in leaves if leaf is not None]

    def write(self, calls: list[Node]) -> None:
        """Append what some calls compute. One call is traced unless an equal one was."""
        operands, inputs = self._operands(calls)
        key = _key(calls, operands)
        trace = self._traces.get(key)
        if trace is not None:
            trace = self._copied(trace, inputs, calls[0])
        else:
            refused = len(self._interpreter.refusals)
            trace = self._traced(calls, operands, inputs)
            if key is not None and len(self._interpreter.refusals) == refused:
                self._traces[key] = trace
        self._values |= zip(calls, trace.values, strict=True)
        for tensor, content in trace.written.items():
            if tensor.op != "placeholder" and any(shares_memory(node.target) for node in (tensor, *tensor.users)):
                raise RuntimeError("a call writes to memory that another value may share")
            self._overwritten[tensor] = content

    def _traced(self, calls: list[Node], operands: dict[Node, Any], inputs: list[Node]) -> _CallTrace:
        values: list[Any] = []

        def compute(*tensors: Tensor) -> list[Tensor]:
            given = dict(zip(inputs, tensors, strict=True))
            values[:] = self._interpreter.run_calls(calls, {node: map_arg(v, given.__getitem__) for node, v in operands.items()})
            return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor)]

        last = next(reversed(self._graph.nodes), None)
        results = torch.func.functionalize(compute, remove="mutations")(*map(self._tensor, inputs))
        nodes = list(takewhile(lambda node: node is not last, reversed(self._graph.nodes)))[::-1]
        written = {}
        for node in [node for node in nodes if node.target is torch.ops.aten.copy_.default and node.args[0] in inputs]:
            written[node.args[0]] = node.args[1]
            nodes.remove(node)
            self._graph.erase_node(node)
        outputs = map(self._node, results)
        values = pytree.tree_map(lambda leaf: next(outputs) if isinstance(leaf, Tensor) else leaf, values)
        return _CallTrace(inputs, nodes, values, written)

    def _copied(self, trace: _CallTrace, inputs: list[Node], call: Node) -> _CallTrace:
        """Append a copy of a trace of a call that is equal to `call` and has other inputs."""
        copies = dict(zip(trace.inputs, inputs, strict=True))
        own = {key: call.meta[key] for key in _OF_CALL if key in call.meta}
        for node in trace.nodes:
            args, kwargs = map_arg((node.args, node.kwargs), copies.__getitem__)
            copies[node] = self._graph.create_node(node.op, node.target, args, kwargs)
            copies[node].meta = {key: node.meta[key] for key in _OF_TRACE if key in node.meta} | own
        written = {copies[tensor]: copies[content] for tensor, content in trace.written.items()}
        return _CallTrace(inputs, [copies[node] for node in trace.nodes], map_arg(trace.values, copies.__getitem__), written)

    def _operands(self, calls: list[Node]) -> tuple[dict[Node, Any], list[Node]]:
        """Return the values that some calls read, and the nodes for the tensors in them, with their content as it is now."""
        values, inputs, inside = dict[Node, Any](), dict[Node, None](), set(calls)

        def newest(tensor: Node) -> Node:
            while tensor in self._overwritten:
                tensor = self._overwritten[tensor]
            inputs[tensor] = None
            return tensor

        def read(node: Node) -> Node:
            if node not in inside and node not in values:
                values[node] = map_arg(self._values[node], newest)
            return node

        for call in calls:
            map_arg((call.args, call.kwargs), read)
        return values, list(inputs)

    def _node(self, tensor: Tensor) -> Node:
        """Return the node of a tensor of the trace."""
        node: Node = proxy_tensor.get_proxy_slot(tensor, self._tracer).proxy.node
        self._tensors[node] = tensor
        return node

    def _tensor(self, node: Node) -> Tensor:
        """Return the tensor of a node. The trace knows none of a copy until it gets one here."""
        if node not in self._tensors:
            with disable_proxy_modes_tracing():
                tensor: Tensor = node.meta["val"].detach()
            proxy_tensor.track_tensor_tree(tensor, Proxy(node, self._tracer), constant=None, tracer=self._tracer)
            self._tensors[node] = tensor
        return self._tensors[node]


def _key(calls: list[Node], operands: Mapping[Node, Any]) -> Hashable | None:
    """Return what the trace of one call depends on, or None for several calls. `operands` are the values that it reads, in which nodes
    stand for tensors."""
    (call, *others) = calls
    if others or call.op != "call_function":
        return None
    leaves, structure = pytree.tree_flatten(map_arg((call.args, call.kwargs), operands.__getitem__))
    numbers: dict[Node, int] = {}
    key: list[Hashable] = [call.target, structure, bool(call.users)]
    for leaf in leaves:
        if isinstance(leaf, Node):
            key += [numbers.setdefault(leaf, len(numbers)), _description(leaf.meta["val"])]
        else:
            key.append((type(leaf), repr(leaf)) if type(leaf) in _PLAIN else object())
    return tuple(key)


def _description(tensor: Tensor) -> Hashable:
    return tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.is_conj(), tensor.is_neg()
