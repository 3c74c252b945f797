"""Constant folding: PyTorch evaluates operators on known operands before import, and their results become inputs.

`dependence` says which values are known. Two kinds of operators are evaluated: operators without an Einsum form, with all that
follow from their results and from structure alone, such as the degrees of a graph; and operators on weights, buffers and
constants alone (`_folded_weights`), such as the product of a weight and its mask. Any other operator stays in the program even if
its operands are known, so that the user's own operators are fused.

The work that PyTorch does so is missing from the program. Two sides are compared: both count products of two tensors that are summed, a
multiplication and an addition each, as if no element were zero. Both leave out sums of one product, since a program has no dimension of
extent 1, and products with a sparse tensor: PyTorch counts some layouts and not others, and no gather or scatter.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from fuseflow.einsum.nodes import Access, Apply, Expr, Keep, Program, Reduce, children, index_names
from fuseflow.einsum.verify import extents
from fuseflow.errors import first_names
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import (
    Dependence,
    Memories,
    described_tensor,
    remove_unused,
    weight_sources,
    written_by,
)
from fuseflow.frontend.trace.operator_support import (
    DIAGONAL,
    INDEXING,
    LOOP_INDEX,
    MOVEMENTS,
    SLICING,
    SORTING,
    SPARSE_CONSTRUCTION,
    STORED_PATTERN,
    VIEWS,
)
from fuseflow.frontend.trace.sparsified_tensors import Pattern
from fuseflow.frontend.trace.tracing import Argument, Trace
from fuseflow.sparsity.layouts.sparse import COO, CSR
from fuseflow.tensors.dtypes import DTYPES

_FOLDABLE_FAMILIES = (INDEXING, SLICING, SORTING, LOOP_INDEX, DIAGONAL, STORED_PATTERN, SPARSE_CONSTRUCTION)
_OPERATORS = frozenset().union(*(family.names for family in _FOLDABLE_FAMILIES))
"""Operators that PyTorch evaluates on known operands."""
_PARAMETRIZED = re.compile(r"(.*\.|)parametrizations\.(\w+)\.")
"""The name of a tensor of `torch.nn.utils.parametrize`, with the path and the name of the weight that is computed of it."""
_PAIRS = (("_orig", "_mask"), ("_orig", "_u"), ("_v", "_g"))
"""The ends of the names of the two tensors by which `prune`, `spectral_norm` and `weight_norm` of PyTorch replace a weight."""
_MOST_CODES = 256
"""A table with more numbers has codes of more than 8 bits."""
TENSOR_NAME = "tensor_name"
"""The key of the metadata of a node that has the name of the tensor that the node computes."""
_SHAPED = VIEWS - {"to", "_to_copy", "type_as"}
"""Operators that return the numbers of their operand in another shape, for which a program needs no memory."""


def fold_constants(
    traced: Trace, dependences: dict[Node, Dependence], patterns: dict[str, Pattern], formats: Collection[str] = ()
) -> tuple[list[str], int]:
    """Replace the evaluated values of a traced model by new arguments with the same dependences. Return notices for the user, and
    the FLOPs of the dense products that were evaluated, except products of weights alone. A part of a tensor with a pattern gets
    its pattern in `patterns`. A name in `formats` still means the same tensor afterwards."""
    graph = traced.graph_module.graph
    weights, others = _folded_weights(traced, dependences, patterns, formats), _evaluated(graph, dependences)
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
        placeholder = traced.add(name, results[node].detach(), _decoded_type(traced, node))
        dependences[placeholder] = "weights" if node in weights else dependences[node]
        node.replace_all_uses_with(placeholder)
        what = "what follows from weights alone" if node in weights else f"`{fx_origin.short_name(_source(node).target)}`"
        names_by_operator.setdefault(what, []).append(name)
    remove_unused(traced)
    return [_notice(what, inputs) for what, inputs in names_by_operator.items()], counter.get_total_flops()


def _pattern(traced: Trace, node: Node, patterns: dict[str, Pattern]) -> Pattern | None:
    """Return the pattern of a result, or None if it has none.

    Its mask is the result on the masks of the arguments, but only if every operator leaves numbers as they are.
    """
    needed = Memories(traced.graph_module.graph).needed_for([node])
    arguments = {n: argument for n, argument in traced.arguments.items() if n in needed}
    sparse = [patterns[argument.name] for argument in arguments.values() if argument.name in patterns]
    calls = [n for n in needed if n.op == "call_function" and n.target is not operator.getitem]
    if not sparse or any(fx_origin.short_name(call.target) not in MOVEMENTS for call in calls):
        return None
    masks = {
        n: patterns[a.name].mask.to(a.tensor.dtype) if a.name in patterns else torch.ones_like(a.tensor)
        for n, a in arguments.items()
    }
    kept = node_values(traced, [node], masks)[node] != 0
    return Pattern(kept, next(layout for layout in (sparse[0].layout, CSR(), COO()) if not layout.refusal(kept)))


def _notice(what: str, names: list[str]) -> str:
    noun, verb = ("result", "is an input") if len(names) == 1 else ("results", "are inputs")
    return f"{what} is evaluated by PyTorch before import; its {noun} {first_names(names)} {verb} of the program"


def _evaluated(graph: Graph, dependences: dict[Node, Dependence]) -> dict[Node, None]:
    """Return, in order, the operators without an Einsum form, and all that follow from their results and from structure alone. What is
    read from memory that one of them wrote to follows from it."""
    evaluated: dict[Node, None] = {}
    memories, written = Memories(graph), set[Node]()
    for node in graph.nodes:
        if node.op != "call_function" or dependences[node] == "data":
            continue
        follows = any(operand in evaluated or memories.root(operand) in written for operand in node.all_input_nodes)
        has_no_form = fx_origin.short_name(node.target) in _OPERATORS and not fx_origin.is_whole_slice(node)
        if has_no_form or (follows and (node.target is operator.getitem or _continues(node, dependences))):
            evaluated[node] = None
            written |= {memories.root(target) for target in written_by(node)}
    return _without_copies(evaluated)


def _without_copies(evaluated: dict[Node, None]) -> dict[Node, None]:
    """Return the nodes without a last `expand` of floats, such as degrees for every feature: a program repeats them without memory."""
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
    """Return the name of a folded node: `wte` for rows of an embedding, `lin.weight.part` for a slice, or module path and operator."""
    source = _source(node)
    operand = source.args[0] if source.args else None
    if isinstance(operand, Node) and operand in traced.arguments and fx_origin.short_name(source.target) in SLICING.names:
        return f"{traced.arguments[operand].name}.part"
    path = fx_origin.module_path(source)
    return path if path and fx_origin.in_library_module(source) else fx_origin.named(source, fx_origin.short_name(source.target))


def _folded_weights(
    traced: Trace, dependences: Mapping[Node, Dependence], patterns: Collection[str], formats: Collection[str]
) -> dict[Node, str]:
    """Return the values that are folded, in order, each with the name of the tensor that it is, or '' if it has none of its own.

    They follow from weights, buffers and constants alone, and meet data later. Examples are a weight times its mask, a parametrization, a
    low-rank update of a weight, and the scale of a batch norm. A value with more bytes than all its sources together, such as the product
    of two thin matrices or a weight of 8 bits times its scale, is not folded, so that no program grows; nor is a value that meets no data
    at all, because then the model is that computation. Values that are computed from tensors with `patterns`, or from tensors that
    `formats` names, are not folded, unless they get that name.
    """
    sources = weight_sources(traced, patterns)
    graph = traced.graph_module.graph
    folded = {node: "" for node in graph.nodes if dependences[node] == "data" and sources.get(node)}
    alone = set[Node]()  # values that only other folded values or the outputs read: they meet no data
    for node in reversed(folded):
        if all(user.op == "output" or user in alone for user in node.users):
            alone.add(node)
    for node in alone:
        del folded[node]
    for node in reversed(list(folded)):
        if all(user in folded for user in node.users):
            continue
        arguments = {argument.name: source for source, argument in traced.arguments.items() if source in sources[node]}
        folded[node] = _tensor_name(node, arguments, folded)
        is_left = not _decoded_type(traced, node) and _is_left(node, [traced.arguments[source] for source in arguments.values()])
        if is_left or any(name in formats and name != folded[node] for name in arguments):
            del folded[node]
    return folded


def _decoded_type(traced: Trace, node: Node) -> str:
    """Return the type of a weight that is stored in codes, as `table[codes]`: a narrow type of floats that has the numbers of the table
    and no more bits than the codes, or '' if there is none."""
    table = node.args[0] if fx_origin.short_name(node.target) in ("index", "embedding") else None
    described = described_tensor(table) if isinstance(table, Node) else None
    if (
        not isinstance(table, Node)
        or described is None
        or not described.is_floating_point()
        or described.dim() != 1
        or not 2 < described.numel() <= _MOST_CODES
    ):
        return ""
    numbers = node_values(traced, [table])[table].double().numpy()
    for row in (DTYPES[name] for name in ("e2m1", "e4m3", "e5m2")):
        if len(numbers) <= 2**row.bits and np.array_equal(row.round(numbers), numbers):
            return row.name
    return ""


def _is_left(node: Node, sources: Collection[Argument]) -> bool:
    """Return whether a value stays in the program: its operator only changes the shape, it is a comparison, whose mask is stored
    like its operand, or it has more bytes than all its `sources` together."""
    tensor = described_tensor(node)
    if tensor is None or tensor.dtype == torch.bool or fx_origin.short_name(node.target) in _SHAPED:
        return True
    return 8 * tensor.nbytes > sum(source.bits for source in sources)


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


_MATRIX_PRODUCTS = (torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm, torch.ops.aten.baddbmm)


def flop_counter() -> FlopCounterMode:
    """Return a context that counts the FLOPs of the dense products that PyTorch computes in it, for `get_total_flops`."""
    return FlopCounterMode(display=False, custom_mapping={op: _of_dense(op, count) for op, count in flop_registry.items()})


def flops_notice(evaluated: int, program: Program) -> str:
    """Return the sentence that says how much work PyTorch did before import, where that was any. `evaluated` are its FLOPs."""
    if not evaluated:
        return ""
    share = evaluated / (evaluated + program_flops(program))
    if share > 0.5:
        return (
            f"most of the model's work is not in the program: PyTorch did {evaluated:,} FLOPs before import, {share:.0%} of all. "
            "Cycles of the program are those of the rest"
        )
    return f"what PyTorch evaluated before import took {evaluated:,} FLOPs, {share:.1%} of the model's"


def _of_dense(op: object, count: Callable[..., int]) -> Callable[..., int]:
    """Return the function `count`, which counts the FLOPs of an operator, changed to return 0 if an operand is sparse, or if it is a
    product of matrices whose sums have one term."""

    def counted(*args: Any, **kwargs: Any) -> int:
        operands = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if any(operand.layout != torch.strided for operand in operands):
            return 0
        if op in _MATRIX_PRODUCTS and args[-1].shape[-2] == 1:
            return 0
        if not getattr(count, "_get_raw", False):
            args, kwargs = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.shape, (args, kwargs))
        return count(*args, **kwargs)

    counted._get_raw = True  # type: ignore[attr-defined]
    return counted


def program_flops(program: Program) -> int:
    """Return the FLOPs of all summed products of two tensors or more in a program, without products with a sparse tensor.

    A selection is no factor, and an index that it determines costs nothing: `sum(h) select[i, h] * X[h, j]` is a slice.
    """
    sizes = extents(program)
    sparse = {t.name for t in program.inputs if t.format is not None and not t.format.all_dense and not _is_selection(t.name)}
    return sum(_flops(e.body, sizes[e.name], set(index_names(e.indices)), sparse) for e in program.einsums)


def _is_selection(name: str) -> bool:
    return name == "select" or name.startswith("select_")


def _flops(expr: Expr, sizes: Mapping[str, int], loops: set[str], sparse: set[str]) -> int:
    inner = loops | set(expr.over) if isinstance(expr, Reduce | Keep) else loops
    own = 0
    if isinstance(expr, Reduce) and expr.op == "sum":
        factors = list(_factors(expr.body))
        selected = {factor.names[-1] for factor in factors if _is_selection(factor.tensor)}
        others = [factor for factor in factors if not _is_selection(factor.tensor)]
        if len(others) > 1 and not any(factor.tensor in sparse for factor in others):
            own = 2 * math.prod(sizes[name] for name in inner - selected)
    return own + sum(_flops(child, sizes, inner, sparse) for child in children(expr))


def _factors(expr: Expr) -> Iterator[Access]:
    """Yield the tensors of a product."""
    if isinstance(expr, Access):
        yield expr
    elif isinstance(expr, Apply) and expr.op == "mul":
        for arg in expr.args:
            yield from _factors(arg)
