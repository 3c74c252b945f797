"""Constant folding: PyTorch evaluates operators on known operands before import, and their results become inputs.

`dependence` says which values are known. Two kinds of operators are evaluated: operators without an Einsum form, with all that
follow from their results and from structure alone, such as the degrees of a graph; and operators on weights, buffers and
constants alone (`folded_weights`), such as the product of a weight and its mask. Any other operator stays in the program even if
its operands are known, so that the user's own operators are fused.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.aten_operators import (
    DIAGONAL,
    INDEXING,
    LOOP_INDEX,
    SLICING,
    SORTING,
    SPARSE_CONSTRUCTION,
    STORED_PATTERN,
)
from fuseflow.frontend.trace.dependence import Dependence, Memories, described_tensor, remove_unused, written_by
from fuseflow.frontend.trace.flops import flop_counter
from fuseflow.frontend.trace.patterns import Pattern, pattern_of_part
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.frontend.trace.weight_folding import folded_weights

FOLDABLE_FAMILIES = (INDEXING, SLICING, SORTING, LOOP_INDEX, DIAGONAL, STORED_PATTERN, SPARSE_CONSTRUCTION)
"""The families of operators that PyTorch evaluates on known operands."""
_OPERATORS = frozenset().union(*(family.names for family in FOLDABLE_FAMILIES))
_NAMES_IN_NOTICE = 4


def fold_constants(
    traced: Trace, dependences: dict[Node, Dependence], patterns: dict[str, Pattern], formats: Collection[str] = ()
) -> tuple[list[str], int]:
    """Replace the evaluated values of a traced model by new arguments with the same dependences. Return notices for the user, and
    the FLOPs of the dense products that were evaluated, except products of weights alone. A part of a tensor with a pattern gets
    its pattern in `patterns`. A name in `formats` still means the same tensor afterwards."""
    graph = traced.graph_module.graph
    weights, others = folded_weights(traced, dependences, patterns, formats), _evaluated(graph, dependences)
    needed = {*weights, *others}
    for node in reversed(graph.nodes):
        if dependences[node] != "data" and node.op == "call_function" and node.users and needed.issuperset(node.users):
            needed.add(node)
    evaluated = [node for node in graph.nodes if node in needed]
    last = [node for node in evaluated if described_tensor(node) is not None and any(user not in needed for user in node.users)]
    if not last:
        return [], 0
    for placeholder, argument in traced.arguments.items():
        if argument.name in weights.values():  # the value that follows from it has its name
            traced.arguments[placeholder] = replace(argument, name=f"{argument.name}_orig")
    names = traced.names()
    results = node_values(traced, [node for node in last if node in weights])  # which is no work on data
    with flop_counter() as counter:
        results |= node_values(traced, [node for node in last if node not in weights])
    names_by_operator: dict[str, list[str]] = {}
    # All names are chosen before any node is replaced, because one of them may be an operand of another.
    chosen = [names.unique(weights.get(node) or _name(node, traced)) for node in last]
    for node, name in zip(last, chosen, strict=True):
        pattern = _pattern(traced, node, patterns)
        if pattern is not None:
            patterns[name] = pattern
        placeholder = traced.add(name, results[node].detach())
        dependences[placeholder] = "weights" if node in weights else dependences[node]
        node.replace_all_uses_with(placeholder)
        what = "what follows from weights alone" if node in weights else f"`{fx_origin.short_name(_source(node).target)}`"
        names_by_operator.setdefault(what, []).append(name)
    remove_unused(traced)
    return [_notice(what, inputs) for what, inputs in names_by_operator.items()], counter.get_total_flops()


def _pattern(traced: Trace, node: Node, patterns: dict[str, Pattern]) -> Pattern | None:
    """Return the pattern of a result, or None if it has none."""
    needed = Memories(traced.graph_module.graph).needed_for([node])
    operands = {argument.name: argument.tensor for n, argument in traced.arguments.items() if n in needed}
    if not any(name in patterns for name in operands):
        return None
    masks = {
        n: patterns[argument.name].mask.to(argument.tensor.dtype)
        if argument.name in patterns
        else torch.ones_like(argument.tensor)
        for n, argument in traced.arguments.items()
        if n in needed
    }
    calls = [n for n in needed if n.op == "call_function" and n.target is not operator.getitem]
    return pattern_of_part(operands, patterns, calls, node_values(traced, [node], masks)[node])


def _notice(what: str, names: list[str]) -> str:
    first_names = ", ".join(f"`{name}`" for name in names[:_NAMES_IN_NOTICE])
    more = f" and {len(names) - _NAMES_IN_NOTICE} more" if len(names) > _NAMES_IN_NOTICE else ""
    noun, verb = ("result", "is an input") if len(names) == 1 else ("results", "are inputs")
    return f"{what} is evaluated by PyTorch before import; its {noun} {first_names}{more} {verb} of the program"


def _evaluated(graph: Graph, dependences: dict[Node, Dependence]) -> dict[Node, None]:
    """Return the nodes that PyTorch evaluates, in order: operators without an Einsum form, and all that follow from their results
    and from structure alone."""
    evaluated: dict[Node, None] = {}
    for node in graph.nodes:
        if node.op != "call_function" or dependences[node] == "data":
            continue
        follows = any(operand in evaluated for operand in node.all_input_nodes)
        if _has_no_form(node) or (follows and (node.target is operator.getitem or _continues(node, dependences))):
            evaluated[node] = None
    return _without_copies(evaluated)


def _without_copies(evaluated: dict[Node, None]) -> dict[Node, None]:
    """Return the evaluated nodes without a last `expand` of floats. The program repeats them without memory: degrees for every
    feature, for example."""
    kept = dict(evaluated)
    for node in reversed(evaluated):
        tensor = described_tensor(node)
        copies = fx_origin.short_name(node.target) == "expand" and tensor is not None and tensor.is_floating_point()
        if copies and not any(user in kept for user in node.users):
            del kept[node]
    return kept


def _continues(node: Node, dependences: dict[Node, Dependence]) -> bool:
    """Return whether an operator with an Einsum form is evaluated because its operand is. A comparison of floats is not
    evaluated: its result is a mask, which is stored like its operand."""
    if dependences[node] == "weights":
        return False
    operands = [tensor for n in node.all_input_nodes if (tensor := described_tensor(n)) is not None]
    result = described_tensor(node)
    return result is not None and (result.is_floating_point() or not any(tensor.is_floating_point() for tensor in operands))


def _has_no_form(node: Node) -> bool:
    return fx_origin.short_name(node.target) in _OPERATORS and not fx_origin.is_whole_slice(node)


def node_values(traced: Trace, wanted: list[Node], others: Mapping[Node, Tensor] | None = None) -> dict[Node, Any]:
    """Return the values of nodes. All values that they need are computed in the order of the model, with its writes in place.
    `others` are tensors in place of the arguments."""
    graph = traced.graph_module.graph
    needed = Memories(graph).needed_for(wanted)
    written = {target for node in needed for target in written_by(node)}
    values: dict[Node, Any] = {}
    for node in graph.nodes:
        if node not in needed:
            continue
        if node in traced.arguments:
            tensor = traced.arguments[node].tensor if others is None else others[node]
            values[node] = tensor.clone() if written else tensor
        else:
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
    return values


def _source(node: Node) -> Node:
    """Return the operator whose result a node is, also where the operator has several results."""
    while node.target is operator.getitem and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _name(node: Node, traced: Trace) -> str:
    """Return the name of a folded node: `wte` for the rows of an embedding, `lin.weight.part` for a slice of a weight, or else the
    module path and the operator."""
    source = _source(node)
    operand = source.args[0] if source.args else None
    if isinstance(operand, Node) and operand in traced.arguments and fx_origin.short_name(source.target) in SLICING.names:
        return f"{traced.arguments[operand].name}.part"
    path = fx_origin.module_path(source)
    if path and fx_origin.in_library_module(source):
        return path
    return f"{path}.{fx_origin.short_name(source.target)}" if path else fx_origin.short_name(source.target)
