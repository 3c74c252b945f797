"""Operators without an Einsum form on what is known before the model runs: PyTorch evaluates them, their results become inputs.

Known is what depends on no floating-point input: weights, buffers, constants and integers, such as the tokens that an embedding looks
up. An operator that has an Einsum form stays in the program, so that what the user writes is what is fused.
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
_OPERATORS = frozenset().union(*(family.names for family in FOLDABLE_FAMILIES))
_SHOWN = 4


def fold_constants(program: ExportedProgram, tensors: dict[str, Tensor]) -> list[str]:
    """Replace such operators of a traced program by new inputs, which are added to `tensors`; returns what the user is told."""
    graph = program.graph_module.graph
    found = list(_frontier(graph, values := _Values(program, tensors)))
    if not found:
        return []
    names = NameAllocator()
    for name in tensors:
        names.unique(name)
    results = [values[node].detach() for node in found]  # before any of them is replaced: one may be made of another
    told: dict[str, list[str]] = {}
    arguments = dict(zip(_placeholders(graph), tensors, strict=True))
    for node, result in zip(found, results, strict=True):
        what = fx_origin.short_name(_source(node).target)
        name = names.unique(_name(node, arguments))
        tensors[name] = result
        _replace(graph, node)
        told.setdefault(what, []).append(name)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return [_notice(what, of) for what, of in told.items()]


def _notice(what: str, names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    noun, verb = ("result", "is an input") if len(names) == 1 else ("results", "are inputs")
    return f"`{what}` is evaluated by PyTorch before import; its {noun} {shown}{more} {verb} of the program"


class _Values:
    """The numbers of known nodes, evaluated when they are asked for."""

    def __init__(self, program: ExportedProgram, tensors: dict[str, Tensor]) -> None:
        graph = program.graph_module.graph
        given, written = set(program.graph_signature.user_inputs), _written(graph)
        self._values: dict[Node, Any] = {
            node: tensor
            for node, tensor in zip(_placeholders(graph), tensors.values(), strict=True)
            if not (node.name in given and tensor.is_floating_point()) and not tensor.is_meta
        }
        self._known = dict.fromkeys(self._values, True) | dict.fromkeys(written, False)

    def known(self, node: Node) -> bool:
        if node not in self._known:
            usable = node.op == "call_function" and (node.target is operator.getitem or _is_pure(node.target))
            self._known[node] = usable and all(self.known(n) for n in node.all_input_nodes)
        return self._known[node]

    def __getitem__(self, node: Node) -> Any:
        if node not in self._values:
            todo = [node]
            while todo:
                missing = [n for n in todo[-1].all_input_nodes if n not in self._values]
                if missing:
                    todo += missing
                else:
                    now = todo.pop()
                    args, kwargs = torch.fx.map_arg((now.args, now.kwargs), self._values.__getitem__)
                    self._values[now] = now.target(*args, **kwargs)  # type: ignore[operator]
        return self._values[node]


def _is_pure(target: object) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return not _writes(target) and torch.Tag.nondeterministic_seeded not in target.tags


def _writes(target: object) -> bool:
    """`detach_` follows every constant and changes no number."""
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable and target != torch.ops.aten.detach_.default


def _written(graph: Graph) -> set[Node]:
    """What an operator in place may change: its first operand, and all that this one may be a view of."""
    written: set[Node] = set()
    for node in reversed(graph.nodes):
        if node in written or _writes(node.target):
            written |= {node, *node.all_input_nodes}
    return written


def _frontier(graph: Graph, values: _Values) -> Iterator[Node]:
    """The last nodes to evaluate: those operators, and what whole numbers make of their whole numbers (positions, a mask)."""
    evaluated: set[Node] = set()
    for node in graph.nodes:
        if node.op == "call_function" and values.known(node):
            made = [n for n in node.all_input_nodes if n in evaluated]
            part = node.target is operator.getitem
            if _has_no_form(node) or (made and (part or all(_is_whole(n) for n in (node, *made)))):
                evaluated.add(node)
    for node in graph.nodes:
        last = node in evaluated and any(user not in evaluated for user in node.users)
        if last and isinstance(node.meta.get("val"), Tensor):
            yield node


def _is_whole(node: Node) -> bool:
    result = node.meta.get("val")
    return isinstance(result, Tensor) and not result.is_floating_point() and not result.is_complex()


def _has_no_form(node: Node) -> bool:
    return fx_origin.short_name(node.target) in _OPERATORS and not fx_origin.is_whole_slice(node)


def _source(node: Node) -> Node:
    """The operator that a result is one of several of."""
    while node.target is operator.getitem and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _name(node: Node, arguments: dict[Node, str]) -> str:
    """`wte` for the rows of an embedding, `lin.weight.part` for a slice of a weight, else module path and operator."""
    source = _source(node)
    of = source.args[0] if source.args else None
    if isinstance(of, Node) and of in arguments and fx_origin.short_name(source.target) in SLICING.names:
        return f"{arguments[of]}.part"
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
