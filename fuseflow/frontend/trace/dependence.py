"""The dependence of each value of a traced model: on the structure of its inputs alone, on weights that are only moved, or on data.

It decides which values PyTorch may evaluate before import (`constant_folding`): positions of edges, a causal mask, rows of an embedding,
and values that follow from weights alone. Work on the user's data is never evaluated before import, even if all numbers are known.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.fx import Graph, Node

from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.operator_support import DIAGONAL, INDEXING, LOOP_INDEX, SLICING, SORTING, SPARSE_CONSTRUCTION, VIEWS
from fuseflow.frontend.trace.tracing import Argument, Trace

Dependence: TypeAlias = Literal["structure", "pattern", "weights", "data"]
"""The dependence of a value.

- `structure`: integers, truth values, and numbers that the model makes from nothing else.
- `pattern`: sparse tensors that the model was given, in any layout, and integers and truth values of them, such as the places of entries.
- `weights`: weights, buffers and constants whose numbers are not changed: they are cut, joined, looked up or reshaped.
- `data`: anything else, such as features, and values that are computed with weights.
"""

MOVEMENTS = frozenset().union(
    *(family.names for family in (INDEXING, SLICING, SORTING, LOOP_INDEX, DIAGONAL, SPARSE_CONSTRUCTION)), VIEWS
)
"""Operators that only move numbers."""
_STORED_FLOATS = VIEWS | {"coalesce", "to_dense", "to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"}
"""Operators that store the numbers of a sparse tensor otherwise. The numbers themselves are data."""
_DROPOUTS = frozenset({"dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"})
"""Operators that return their operand in evaluation, which their schemas do not say."""


def dependences(traced: Trace, *, of_reads: bool = False) -> dict[Node, Dependence]:
    """Return the dependence of every value of a traced model. Memory that data is written to holds data.

    Numbers in the code of a model are part of its control flow. So where control flow reads numbers, `of_reads`, values that follow from
    them are structure; otherwise they are left to the program.
    """
    arguments: dict[Node, Dependence] = {}
    for node, argument in traced.arguments.items():
        is_code = of_reads and argument.kind == "constant" and not argument.tensor.is_meta
        arguments[node] = "structure" if is_code else _of_argument(argument)
    graph = traced.graph_module.graph
    memories = Memories(graph)
    data = set[Node]()
    while True:
        values: dict[Node, Dependence] = {}
        for node in graph.nodes:
            values[node] = "data" if memories.root(node) in data else _dependence(node, arguments, values)
        computed = {node for node, dependence in values.items() if dependence == "data"}
        written = {memories.root(target) for node in computed for target in written_by(node)}
        changed = written | memories.written_after(computed)
        if changed <= data:
            return values
        data |= changed


def weight_sources(traced: Trace, sparse: Collection[str]) -> dict[Node, frozenset[Node]]:
    """Return the values that follow from weights, buffers and constants alone, each with the arguments of floats that it is computed from.

    A value that follows from a `sparse` argument is not among them, nor one whose memory is written to.
    """
    graph = traced.graph_module.graph
    memories = Memories(graph)
    sources: dict[Node, frozenset[Node]] = {}
    for node in graph.nodes:
        if memories.writers(memories.root(node)):
            continue
        argument = traced.arguments.get(node)
        if argument is not None:
            dependence = _of_argument(argument)
            if argument.kind != "input" and argument.name not in sparse and dependence in ("structure", "weights"):
                sources[node] = frozenset({node} if dependence == "weights" else ())
        elif _is_known_call(node) and all(operand in sources for operand in node.all_input_nodes):
            sources[node] = frozenset[Node]().union(*(sources[operand] for operand in node.all_input_nodes))
    return sources


def written_by(node: Node) -> Iterator[Node]:
    """Yield the operands that an operator writes to. `detach_`, which follows every constant, writes nothing."""
    if isinstance(node.target, torch._ops.OpOverload) and node.target != torch.ops.aten.detach_.default:
        for argument, value in schema_arguments(node):
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, Node):
                yield value


def remove_unused(traced: Trace) -> None:
    """Remove calls that no result needs. Calls that write to a weight, a buffer or an input stay, so that they can be refused."""
    graph = traced.graph_module.graph
    memories = Memories(graph)
    given = {memories.root(node) for node, argument in traced.arguments.items() if argument.kind != "constant"}
    outputs = [node for node in graph.nodes if node.op == "output"]
    needed = memories.needed_for([*outputs, *(writer for root in given for writer in memories.writers(root))])
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and node not in needed:
            graph.erase_node(node)


def _dependence(node: Node, arguments: Mapping[Node, Dependence], values: dict[Node, Dependence]) -> Dependence:
    if node in arguments:
        return arguments[node]
    if not _is_known_call(node):
        return "data"
    operands = {values[operand] for operand in node.all_input_nodes}
    name = fx_origin.short_name(node.target).rstrip("_")
    match sorted(operands - {"structure"}):
        case []:
            return "structure"
        case ["pattern"] if not _is_float(node) or name in _STORED_FLOATS:
            return "pattern"
        case ["weights"] if node.target is operator.getitem or name in MOVEMENTS:
            return "weights"
    return "data"


def _of_argument(argument: Argument) -> Dependence:
    tensor = argument.tensor
    if tensor.is_meta or argument.trainable or argument.kind == "draw":
        return "data"
    if not tensor.is_floating_point() and not tensor.is_complex():
        return "structure"
    if tensor.layout != torch.strided:
        return "pattern"
    return "data" if argument.kind == "input" else "weights"


def _is_known_call(node: Node) -> bool:
    """Return whether a node calls an operator that returns the same values for the same operands."""
    return node.op == "call_function" and (node.target is operator.getitem or is_repeatable(node.target))


def _is_float(node: Node) -> bool:
    tensor = described_tensor(node)
    return tensor is not None and (tensor.is_floating_point() or tensor.is_complex())


def is_repeatable(target: object) -> bool:
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded not in target.tags


def shares_memory(target: object) -> bool:
    """Return whether a result of a target may be a view of an operand. Any target but an operator may."""
    return not isinstance(target, torch._ops.OpOverload) or any(r.alias_info is not None for r in target._schema.returns)


def schema_arguments(node: Node) -> Iterator[tuple[torch._C.Argument, object]]:
    """Yield the arguments that an operator declares, each with its value in a call."""
    assert isinstance(node.target, torch._ops.OpOverload)
    for position, argument in enumerate(node.target._schema.arguments):
        value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
        yield argument, value


def ancestors_of(node: Node) -> set[Node]:
    """Return a node and all nodes that it is computed from."""
    reached, frontier = {node}, [node]
    while frontier:
        new = set(frontier.pop().all_input_nodes) - reached
        reached |= new
        frontier += new
    return reached


def stores_nonzeros(node: Node, arguments: Mapping[Node, Argument]) -> bool:
    """Return whether a sparse tensor was made of a dense one, so that it stores exactly the elements that are not zero."""
    while fx_origin.short_name(node.target) == "coalesce":
        (node,) = node.all_input_nodes
    if not _is_conversion(node):
        return False
    (source,) = node.all_input_nodes
    return fx_origin.short_name(source.target) == "to_dense" or not any(
        arguments[ancestor].tensor.layout != torch.strided
        if ancestor in arguments
        else _is_conversion(ancestor) or fx_origin.short_name(ancestor.target) in SPARSE_CONSTRUCTION.names
        for ancestor in ancestors_of(source)
    )


def _is_conversion(node: Node) -> bool:
    return fx_origin.short_name(node.target).removeprefix("_").startswith("to_sparse")


class Memories:
    """Which values may share memory, as the schemas of their operators say. Each set of values that do has one of them as its root."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._parents: dict[Node, Node] = {}
        for node in graph.nodes:
            for operand in _shared_operands(node):
                self._parents[self.root(node)] = self.root(operand)
        self._writers: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for target in written_by(node):
                self._writers.setdefault(self.root(target), []).append(node)

    def root(self, node: Node) -> Node:
        while node in self._parents and self._parents[node] is not node:
            node = self._parents[node]
        return node

    def writers(self, root: Node) -> list[Node]:
        """Return the operators that write to a memory, in order."""
        return self._writers.get(root, [])

    def written_after(self, readers: Collection[Node]) -> set[Node]:
        """Return the memories that an operator writes to after one of the `readers` has read from them."""
        positions = {node: position for position, node in enumerate(self._graph.nodes)}
        read = {(self.root(operand), positions[node]) for node in readers for operand in node.all_input_nodes}
        return {root for root, position in read if any(position < positions[writer] for writer in self.writers(root))}

    def needed_for(self, wanted: Iterable[Node]) -> set[Node]:
        """Return some values, all values that they are computed from, and the operators that write to the memory of one of them."""
        needed, waiting = set[Node](), list(wanted)
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += [*node.all_input_nodes, *self.writers(self.root(node))]
        return needed


def _shared_operands(node: Node) -> list[Node]:
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.all_input_nodes if node.target is operator.getitem else []
    if fx_origin.short_name(node.target) in _DROPOUTS:
        return node.all_input_nodes
    return [value for argument, value in schema_arguments(node) if argument.alias_info is not None and isinstance(value, Node)]


def described_tensor(node: Node) -> Tensor | None:
    """Return the tensor without numbers that has the shape and type of a value, or None for a value that is no tensor."""
    value = node.meta.get("val")
    return value if isinstance(value, Tensor) else None
