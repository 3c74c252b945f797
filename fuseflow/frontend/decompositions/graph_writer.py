"""The writer of a dense graph, which records what functions of tensors compute.

PyTorch traces a function, which takes milliseconds. A model of equal layers makes the same calls again and again, so a function is traced
once, and each use of it that is equal gets a copy of the nodes that the first trace gave. Two uses are equal if they have the same key: for
a call of an operator, the operator, the same numbers and texts as operands, and tensors of the same type, shape and strides. Nothing else
enters the trace of a call but its module path and the line of the user, and a copy has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node, Proxy, map_arg
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree

from fuseflow.frontend.decompositions.densify import DensifyingInterpreter
from fuseflow.frontend.trace.dependence import shares_memory
from fuseflow.frontend.trace.fx_origin import NO_GRADIENT

_OF_TRACE, OF_CALL = ("val", "tensor_meta", "custom"), ("nn_module_stack", "stack_trace")
"""The metadata of a copy that come from the trace, and those that come from the call that it is made for."""
_PLAIN = (int, float, bool, complex, str, type(None), torch.dtype, torch.layout, torch.device, torch.memory_format)
"""The types of operands whose text says all about them."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What the trace of a function gave: its `nodes` in the dense graph, which read `inputs`, and its `values`, in which nodes stand for
    tensors. `written` has the new contents of the inputs that it writes to."""

    inputs: Sequence[Node]
    nodes: Sequence[Node]
    values: Any
    written: Mapping[Node, Node]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Calls of the traced graph that were recorded together. `operands` are the values that they read, in which nodes of the dense graph
    stand for tensors; `key` says what the record depends on, and is None for several calls."""

    calls: list[Node]
    operands: Mapping[Node, Any]
    record: Record
    key: Hashable | None


class GraphWriter:
    """A writer of the graph that `make_fx` makes. `_values` has the value of every call so far, in which nodes of this graph stand for
    tensors. If a later call wrote to one of them, `_overwritten` has the node with its new content."""

    def __init__(self, interpreter: DensifyingInterpreter, arguments: Sequence[Tensor]) -> None:
        mode = proxy_tensor.get_proxy_mode()
        assert mode is not None
        self.interpreter, self._tracer, self.graph = interpreter, mode.tracer, mode.tracer.graph
        self.parts: list[Part] = []
        self._records: dict[Hashable, Record] = {}
        self._overwritten: dict[Node, Node] = {}
        self._tensors: dict[Node, Tensor] = {}
        placeholders = interpreter.graph.find_nodes(op="placeholder")
        self.arguments = [self._node(tensor) for tensor in arguments]
        self._values: dict[Node, Any] = dict(zip(placeholders, self.arguments, strict=True))

    def outputs(self) -> list[Node]:
        """Return the nodes of the outputs of the traced graph."""
        output = self.interpreter.graph.output_node()
        operands, _ = self._operands([output])
        leaves = pytree.tree_leaves(map_arg(output.args[0], operands.__getitem__))
        return [leaf for leaf in leaves if leaf is not None]

    def written_arguments(self) -> dict[Node, Node]:
        """Return the arguments that are written to, each with its content behind all calls."""
        return {node: self._newest(node) for node in self.graph.find_nodes(op="placeholder") if node in self._overwritten}

    def forget_write(self, argument: Node) -> None:
        """Take a write to an argument as one to a value that is an output."""
        del self._overwritten[argument]

    def write(self, calls: list[Node]) -> None:
        """Append what some calls compute. One call is traced unless an equal one was."""
        operands, inputs = self._operands(calls)
        key = _key(calls, operands)
        refused = len(self.interpreter.refusals)

        def compute(*tensors: Tensor) -> list[Any]:
            given = dict(zip(inputs, tensors, strict=True))
            return self.interpreter.run_calls(calls, {node: map_arg(v, given.__getitem__) for node, v in operands.items()})

        function = torch.func.functionalize(compute, remove="mutations")
        record = self.record(key, function, inputs, {name: calls[0].meta[name] for name in OF_CALL if name in calls[0].meta})
        if len(self.interpreter.refusals) > refused:
            self._records.pop(key, None)
        self.parts.append(Part(calls, operands, record, key))
        self._values |= zip(calls, record.values, strict=True)
        for tensor, content in record.written.items():
            if tensor.op != "placeholder" and any(shares_memory(node.target) for node in (tensor, *tensor.users)):
                raise RuntimeError("a call writes to memory that another value may share")
            self._overwritten[tensor] = content

    def record(
        self, key: Hashable | None, function: Callable[..., Any], inputs: Sequence[Node], own: Mapping[str, Any]
    ) -> Record:
        """Append what a function of the tensors of `inputs` computes, or a copy of what one with this key computed. The nodes of a copy
        have the metadata `own`."""
        known = self._records.get(key) if key is not None else None
        if known is not None:
            return self._copied(known, inputs, own)
        record = self._traced(function, inputs)
        if key is not None:
            self._records[key] = record
        return record

    def _traced(self, function: Callable[..., Any], inputs: Sequence[Node]) -> Record:
        values: list[Any] = []

        def compute(*tensors: Tensor) -> list[Tensor]:
            values[:] = [function(*tensors)]
            return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor)]

        last = next(reversed(self.graph.nodes), None)
        results = compute(*map(self.tensor, inputs))
        nodes = list(takewhile(lambda node: node is not last, reversed(self.graph.nodes)))[::-1]
        written = {}
        for node in [node for node in nodes if node.target is torch.ops.aten.copy_.default and node.args[0] in inputs]:
            written[node.args[0]] = node.args[1]
            del self._tensors[node.args[0]]  # which stands for the copy now
            nodes.remove(node)
            self.graph.erase_node(node)
        outputs = map(self._node, results)
        (value,) = pytree.tree_map(lambda leaf: next(outputs) if isinstance(leaf, Tensor) else leaf, values)
        return Record(inputs, nodes, value, written)

    def _copied(self, record: Record, inputs: Sequence[Node], own: Mapping[str, Any]) -> Record:
        """Append a copy of a record, which reads other inputs."""
        copies = dict(zip(record.inputs, inputs, strict=True))
        for node in record.nodes:
            args, kwargs = map_arg((node.args, node.kwargs), copies.__getitem__)
            copies[node] = self.graph.create_node(node.op, node.target, args, kwargs)
            copies[node].meta = {key: node.meta[key] for key in _OF_TRACE if key in node.meta} | dict(own)
        written = {copies[tensor]: copies[content] for tensor, content in record.written.items()}
        return Record(inputs, [copies[node] for node in record.nodes], map_arg(record.values, copies.__getitem__), written)

    def _operands(self, calls: list[Node]) -> tuple[dict[Node, Any], list[Node]]:
        """Return the values that some calls read, and the nodes for the tensors in them, with their content as it is now."""
        values, inputs, inside = dict[Node, Any](), dict[Node, None](), set(calls)

        def newest(tensor: Node) -> Node:
            content = self._newest(tensor)
            inputs[content] = None
            return content

        def read(node: Node) -> Node:
            if node not in inside and node not in values:
                values[node] = map_arg(self._values[node], newest)
            return node

        for call in calls:
            map_arg((call.args, call.kwargs), read)
        return values, list(inputs)

    def _newest(self, tensor: Node) -> Node:
        """Return the node with the content of a tensor as it is now."""
        while tensor in self._overwritten:
            tensor = self._overwritten[tensor]
        return tensor

    def _node(self, tensor: Tensor) -> Node:
        """Return the node of a tensor of the trace."""
        node: Node = proxy_tensor.get_proxy_slot(tensor, self._tracer).proxy.node
        self._tensors[node] = tensor
        return node

    def tensor(self, node: Node) -> Tensor:
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
    key: list[Hashable] = [call.target, structure, bool(call.users), bool(call.meta.get(NO_GRADIENT))]
    for leaf in leaves:
        if isinstance(leaf, Node):
            key += [numbers.setdefault(leaf, len(numbers)), description(leaf.meta["val"])]
        else:
            key.append((type(leaf), repr(leaf)) if type(leaf) in _PLAIN else object())
    return tuple(key)


def description(tensor: Tensor) -> Hashable:
    return tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.is_conj(), tensor.is_neg()
