"""Intermediates that a sparse model makes: `fuseflow::keep` in a traced model becomes a `keep` of the program.

No operator of torch-mlir says that. So a product with a fresh argument, a marker, stands for it on the way, and when the Einsums
are there, each such product becomes a `keep` of the other factor by the rule of the marker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce
from fuseflow.errors import FrontendError, SparsityError
from fuseflow.frontend.trace.patterns import Pattern
from fuseflow.frontend.trace.refusals import refusal
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.selection import Largest
from fuseflow.sparsity import keep as keep_operators
from fuseflow.sparsity.layouts.sparse import COO
from fuseflow.sparsity.sparsifiers.entries import KeepAll
from fuseflow.sparsity.sparsifiers.listing import SPARSIFIERS
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier

_KEEP, _MASKED = keep_operators.keep._opoverload, keep_operators.masked._opoverload


@dataclass(slots=True)
class KeptIntermediates:
    """The rules of the markers of a traced model, by their names; the patterns of masks that were drawn; and errors for rules
    that the compiler does not have."""

    rules: dict[str, KeepRule] = field(default_factory=dict)
    patterns: dict[str, Pattern] = field(default_factory=dict)
    refusals: list[FrontendError] = field(default_factory=list)


def keep(x: Tensor, marker: Tensor) -> Tensor:
    """Return the product of x and a marker, which represents the `keep` of x by the rule of the marker."""
    return x * marker


def masked(x: Tensor, mask: Tensor) -> Tensor:
    """Return x times a mask of zeros and ones."""
    return x * mask


def mark_kept(traced: Trace) -> KeptIntermediates:
    """Replace, in place, the rules on intermediates of a traced model by products with markers and with known masks."""
    intermediates = KeptIntermediates()
    graph = traced.graph_module.graph
    for node in list(graph.nodes):
        if node.target is _MASKED:
            mask = node.args[1]
            assert isinstance(mask, Node)
            argument = traced.arguments[mask]
            intermediates.patterns[argument.name] = Pattern(argument.tensor != 0, COO())
            node.target = masked
        elif node.target is _KEEP:
            _mark(traced, node, intermediates)
    return intermediates


def _mark(traced: Trace, node: Node, intermediates: KeptIntermediates) -> None:
    x, rule, *_ = node.args
    assert isinstance(x, Node) and isinstance(rule, str)
    format = keep_operators.parse_format(rule)
    value: Tensor = node.meta["val"]
    graph, product = traced.graph_module.graph, x
    for sparsifier in (format.inline, format.external):
        if sparsifier == KeepAll():
            continue
        try:
            kept = sparsifier.keep_rule(tuple(value.shape))
        except SparsityError as error:
            intermediates.refusals.append(refusal(node, error.message, error.hint))
            continue
        if kept is None:
            intermediates.refusals.append(
                refusal(node, f"`{sparsifier}` of a computed tensor has no form in the compiler", _hint())
            )
            continue
        name = f"keep{len(intermediates.rules)}"
        marker = traced.add(name, torch.ones((), dtype=value.dtype).expand(value.shape))
        intermediates.rules[name] = _without_units(kept, tuple(value.shape))
        with graph.inserting_before(node):
            product = graph.call_function(keep, (product, marker))
            product.meta = dict(node.meta)
    node.replace_all_uses_with(product)
    graph.erase_node(node)


def _hint() -> str:
    known = [f"`{name}`" for name, cls in SPARSIFIERS.items() if cls.keep_rule is not Sparsifier.keep_rule]
    return f"these have one: {', '.join(known)}; others select entries of weights"


def _without_units(kept: KeepRule, shape: tuple[int, ...]) -> KeepRule:
    """Return a rule over the dimensions of a tensor that has lost its dimensions of extent 1."""
    places = [d for d, size in enumerate(shape) if size != 1]
    return replace(kept, dimensions=tuple(places.index(d) for d in kept.dimensions if d in places))


def with_keeps(program: Program, rules: Mapping[str, KeepRule]) -> Program:
    """Return a program in which each product with a marker is a `keep` of the other factor by its rule in `rules`."""
    if not rules:
        return program
    einsums = tuple(_with_keep(einsum, rules) for einsum in program.einsums)
    return replace(program, tensors=tuple(t for t in program.tensors if t.name not in rules), einsums=einsums)


def _with_keep(einsum: Einsum, rules: Mapping[str, KeepRule]) -> Einsum:
    """Return an Einsum without markers. Raises `FrontendError` for a product with a marker that is only a part of it."""
    if not any(access.tensor in rules for access in einsum.accesses):
        return einsum
    match einsum.body:
        case Apply("mul", (left, Access(tensor=name) as marker)) if name in rules:
            kept = replace(einsum, body=_keep(rules[name], marker, left))
        case Apply("mul", (Access(tensor=name) as marker, right)) if name in rules:
            kept = replace(einsum, body=_keep(rules[name], marker, right))
        case Access() | Const() | Apply() | Reduce() | Keep():
            kept = einsum
        case unknown:
            assert_never(unknown)
    if any(access.tensor in rules for access in kept.accesses):
        raise FrontendError(
            f"a rule keeps a part of `{einsum.name}`, which is no whole result",
            hint="keep a part of the result of an operator",
            span=einsum.location.span,
        )
    return kept


def _keep(kept: KeepRule, marker: Access, body: Expr) -> Expr:
    if isinstance(kept.rule, Largest) and not kept.dimensions:
        return body  # It compares one entry with no other.
    return Keep(kept.rule, tuple(str(marker.indices[d]) for d in kept.dimensions), body)
