"""Constant folding: PyTorch evaluates operators that have no Einsum form on constant operands, and their results become inputs.

A value is constant here if it depends on no floating-point input. Weights, buffers and integers are, such as the tokens that an
embedding looks up. An operator that has an Einsum form stays in the program even if its operands are constant, so that the user's own
operators are fused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from fuseflow.frontend import fx_origin
from fuseflow.frontend.aten_operators import DIAGONAL, INDEXING, LOOP_INDEX, SLICING, SORTING
from fuseflow.frontend.einsum_names import NameAllocator

FOLDABLE_FAMILIES = (INDEXING, SLICING, SORTING, LOOP_INDEX, DIAGONAL)
"""The families of operators that PyTorch evaluates on constant operands."""
_OPERATORS = frozenset().union(*(family.names for family in FOLDABLE_FAMILIES))
_NAMES_IN_NOTICE = 4


def fold_constants(program: ExportedProgram, tensors: dict[str, Tensor]) -> list[str]:
    """Replace foldable operators of a traced program by new inputs, and add these to `tensors`. Return notices for the user."""
    graph = program.graph_module.graph
    folded_nodes = list(_frontier(graph, values := _ConstantValues(program, tensors)))
    if not folded_nodes:
        return []
    names = NameAllocator()
    for name in tensors:
        names.unique(name)
    # All results are computed before any node is replaced, because one of them may be an operand of another.
    results = [values[node].detach() for node in folded_nodes]
    names_by_operator: dict[str, list[str]] = {}
    arguments = dict(zip(_placeholders(graph), tensors, strict=True))
    for node, result in zip(folded_nodes, results, strict=True):
        operator_name = fx_origin.short_name(_source(node).target)
        name = names.unique(_name(node, arguments))
        tensors[name] = result
        _replace(graph, node)
        names_by_operator.setdefault(operator_name, []).append(name)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return [_notice(operator_name, inputs) for operator_name, inputs in names_by_operator.items()]


def _notice(operator_name: str, names: list[str]) -> str:
    first_names = ", ".join(f"`{name}`" for name in names[:_NAMES_IN_NOTICE])
    more = f" and {len(names) - _NAMES_IN_NOTICE} more" if len(names) > _NAMES_IN_NOTICE else ""
    noun, verb = ("result", "is an input") if len(names) == 1 else ("results", "are inputs")
    return f"`{operator_name}` is evaluated by PyTorch before import; its {noun} {first_names}{more} {verb} of the program"


class _ConstantValues:
    """The values of constant nodes. A value is computed when it is first asked for."""

    def __init__(self, program: ExportedProgram, tensors: dict[str, Tensor]) -> None:
        graph = program.graph_module.graph
        user_inputs, written = set(program.graph_signature.user_inputs), _written(graph)
        self._values: dict[Node, Any] = {
            node: tensor
            for node, tensor in zip(_placeholders(graph), tensors.values(), strict=True)
            if not (node.name in user_inputs and tensor.is_floating_point()) and not tensor.is_meta
        }
        self._constant = dict.fromkeys(self._values, True) | dict.fromkeys(written, False)

    def is_constant(self, node: Node) -> bool:
        if node not in self._constant:
            usable = node.op == "call_function" and (node.target is operator.getitem or _is_pure(node.target))
            self._constant[node] = usable and all(self.is_constant(n) for n in node.all_input_nodes)
        return self._constant[node]

    def __getitem__(self, node: Node) -> Any:
        if node not in self._values:
            pending = [node]
            while pending:
                missing = [n for n in pending[-1].all_input_nodes if n not in self._values]
                if missing:
                    pending += missing
                else:
                    ready = pending.pop()
                    args, kwargs = torch.fx.map_arg((ready.args, ready.kwargs), self._values.__getitem__)
                    self._values[ready] = ready.target(*args, **kwargs)  # type: ignore[operator]
        return self._values[node]


def _is_pure(target: object) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return not _writes(target) and torch.Tag.nondeterministic_seeded not in target.tags


def _writes(target: object) -> bool:
    """Return whether an operator writes to its operand. `detach_`, which follows every constant, counts as no write: it changes no
    value."""
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable and target != torch.ops.aten.detach_.default


def _written(graph: Graph) -> set[Node]:
    """Return the nodes that an operator in place may change: its operands, and all values that these may be views of."""
    written: set[Node] = set()
    for node in reversed(graph.nodes):
        if node in written or _writes(node.target):
            written |= {node, *node.all_input_nodes}
    return written


def _frontier(graph: Graph, values: _ConstantValues) -> Iterator[Node]:
    """Return the last nodes to evaluate. Evaluated are foldable operators, and operators that turn their integer results into
    integers, such as positions or a mask."""
    evaluated: set[Node] = set()
    for node in graph.nodes:
        if node.op == "call_function" and values.is_constant(node):
            evaluated_inputs = [n for n in node.all_input_nodes if n in evaluated]
            part = node.target is operator.getitem
            if _has_no_form(node) or (evaluated_inputs and (part or all(_is_integral(n) for n in (node, *evaluated_inputs)))):
                evaluated.add(node)
    for node in graph.nodes:
        last = node in evaluated and any(user not in evaluated for user in node.users)
        if last and isinstance(node.meta.get("val"), Tensor):
            yield node


def _is_integral(node: Node) -> bool:
    result = node.meta.get("val")
    return isinstance(result, Tensor) and not result.is_floating_point() and not result.is_complex()


def _has_no_form(node: Node) -> bool:
    return fx_origin.short_name(node.target) in _OPERATORS and not fx_origin.is_whole_slice(node)


def _source(node: Node) -> Node:
    """Return the operator whose result a node is, also where the operator has several results."""
    while node.target is operator.getitem and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _name(node: Node, arguments: dict[Node, str]) -> str:
    """Return the name of a folded node: `wte` for the rows of an embedding, `lin.weight.part` for a slice of a weight, or else the
    module path and the operator."""
    source = _source(node)
    operand = source.args[0] if source.args else None
    if isinstance(operand, Node) and operand in arguments and fx_origin.short_name(source.target) in SLICING.names:
        return f"{arguments[operand]}.part"
    path = fx_origin.module_path(source)
    if path and fx_origin.in_library_module(source):
        return path
    return f"{path}.{fx_origin.short_name(source.target)}" if path else fx_origin.short_name(source.target)


def _replace(graph: Graph, node: Node) -> None:
    placeholders = _placeholders(graph)
    with graph.inserting_after(placeholders[-1]) if placeholders else graph.inserting_before(next(iter(graph.nodes))):
        argument = graph.placeholder(f"known_{len(placeholders)}")
    argument.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(argument)


def _placeholders(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]
