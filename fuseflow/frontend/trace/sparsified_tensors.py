"""The sparsity of weights and of results that a model was made sparse with.

The pattern of a weight says which entries are stored, and how, beside a tensor that PyTorch holds dense. A kept entry that is 0 is not
stored: its number is known here, and an element that is not stored is 0. A training step stores it, since its number changes.

An intermediate is made sparse by `fuseflow::keep`, which becomes a `keep` of the program.

No operator of torch-mlir keeps a part of a value. So a product with a fresh argument, a marker of ones, represents a rule on the way, and
when the Einsums are there, each such product becomes a `keep` or a `mark` of the other factor by the rule of the marker.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.fx import Node

from fuseflow.einsum.nodes import Access, Apply, Einsum, Expr, Keep, Program
from fuseflow.errors import FrontendError, SparsityError
from fuseflow.frontend.trace.refusals import refusal
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.keep_rules import Largest
from fuseflow.sparsity import keep_operator as keep_operators
from fuseflow.sparsity.layouts.layout import Layout, has_compiler_format
from fuseflow.sparsity.layouts.listing import LAYOUTS
from fuseflow.sparsity.layouts.sparse import BCSR, COO, CSC, CSR
from fuseflow.sparsity.model_sparsity import require_zeros, sparse_weights
from fuseflow.sparsity.sparsifiers.built_in import KeepAll
from fuseflow.sparsity.sparsifiers.listing import SPARSIFIERS
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier
from fuseflow.sparsity.weights import stored_entries

_KEEP, _MASKED = keep_operators.keep._opoverload, keep_operators.masked._opoverload


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """The mask of a tensor, which is true where an entry is stored, and the layout that it is stored in."""

    mask: Tensor
    layout: Layout


def weight_patterns(module: nn.Module, *, all_kept: bool = False) -> dict[str, Pattern]:
    """Return the patterns of the sparse weights of a model by their qualified names, without the kept entries that are 0 unless
    `all_kept` asks for them, since the numbers of a weight change.

    Raise `FrontendError` for a layout that has no format in the compiler, and `SparsityError` for a weight trained without its mask.
    """
    for name, parameter, weight in sparse_weights(module):
        require_zeros(name, parameter, weight.mask)
    patterns: dict[str, Pattern] = {}
    for name, parameter, weight in sparse_weights(module):
        stored = weight.mask if all_kept else weight.mask & (parameter.detach() != 0).to(weight.mask.device)
        patterns[name] = Pattern(stored, weight.entry.layout)
    for name, pattern in patterns.items():
        if pattern.layout.compiler_format(tuple(pattern.mask.shape)) is None:
            known = ", ".join(f"`{layout}`" for layout, cls in LAYOUTS.items() if has_compiler_format(cls))
            message = f"the weight `{name}` has the layout `{pattern.layout}`, which runs in PyTorch only"
            raise FrontendError(message, hint=f"these are compiled: {known}")
    return patterns


def stored_pattern(tensor: Tensor) -> Pattern | None:
    """Return the pattern of a tensor that PyTorch stores sparse, or None for a dense one. Raise `FrontendError` for a layout that has no
    format in the compiler."""
    if tensor.layout == torch.strided:
        return None
    match tensor.layout:
        case torch.sparse_csr:
            layout: Layout = CSR()
        case torch.sparse_csc:
            layout = CSC()
        case torch.sparse_coo:
            layout = COO()
        case torch.sparse_bsr:
            rows, columns = tensor.values().shape[1:]
            layout = BCSR((rows, columns))
        case other:
            raise FrontendError(f"a weight in the layout `{other}` cannot be trained", hint="store it as CSR, CSC, COO or BSR")
    return Pattern(stored_entries(tensor), layout)


def stored_tensors(
    tensors: Mapping[str, Tensor], patterns: Mapping[str, Pattern], formats: Mapping[str, str]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a model, the ones with a pattern in a sparse layout of PyTorch, and the formats of all tensors that
    have one. A format of the user wins over the format of a layout."""
    stored, chosen = dict(tensors), dict[str, str]()
    for name, pattern in patterns.items():
        if name not in tensors:
            continue
        format = pattern.layout.compiler_format(tuple(tensors[name].shape))
        if format is None or (format.text == "dense" and name not in formats):
            continue
        if format.block:  # pruned entries are 0
            stored[name] = tensors[name].to_sparse_bsr(format.block)
        else:
            tensor, mask = tensors[name], pattern.mask.to(tensors[name].device)
            stored[name] = torch.sparse_coo_tensor(mask.nonzero().T, tensor[mask], tensor.shape, is_coalesced=True)
            chosen[name] = format.text
    return stored, {**chosen, **formats}


def unstored_masks(patterns: Mapping[str, Pattern], stored: Mapping[str, Tensor]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the masks of tensors whose storage does not show the pruned entries: they are stored dense or in blocks."""
    layouts = (torch.strided, torch.sparse_bsr)
    return {name: p.mask.cpu().numpy() for name, p in patterns.items() if name in stored and stored[name].layout in layouts}


@dataclass(slots=True)
class KeptIntermediates:
    """The rules of the markers of a traced model, by their names; the patterns of masks that were drawn; and errors for
    rules that the compiler does not have."""

    rules: dict[str, KeepRule]
    patterns: dict[str, Pattern] = field(default_factory=dict)
    refusals: list[FrontendError] = field(default_factory=list)


def masked(x: Tensor, mask: Tensor) -> Tensor:
    """Return x times a mask of zeros and ones."""
    return x * mask


def mark_kept(traced: Trace, rules: dict[str, KeepRule], *, trains: bool = False) -> KeptIntermediates:
    """Replace, in place, the rules on intermediates of a traced model by products with markers, which are added to `rules`, and with
    known masks. A step that `trains` has no form for rules of gradients; elsewhere they have no effect."""
    intermediates = KeptIntermediates(rules)
    graph = traced.graph_module.graph
    for node in list(graph.nodes):
        if node.target is _MASKED:
            mask = node.args[1]
            assert isinstance(mask, Node)
            argument = traced.arguments[mask]
            intermediates.patterns[argument.name] = Pattern(argument.tensor != 0, COO())
            node.target = masked
        elif node.target is _KEEP:
            if trains and node.args[2]:
                message, hint = "a rule of the gradient of an intermediate has no form in the compiler", "leave its `grad` out"
                intermediates.refusals.append(refusal(node, message, hint))
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
            known = [f"`{name}`" for name, cls in SPARSIFIERS.items() if cls.keep_rule is not Sparsifier.keep_rule]
            hint = f"these have one: {', '.join(known)}; others select entries of weights"
            problem = f"`{sparsifier}` of a computed tensor has no form in the compiler"
            intermediates.refusals.append(refusal(node, problem, hint))
            continue
        name = traced.names().unique(f"keep{len(intermediates.rules)}")
        marker = add_marker(traced, intermediates.rules, name, value, kept)
        with graph.inserting_before(node):
            product = graph.call_function(keep, (product, marker))
            product.meta = dict(node.meta)
    node.replace_all_uses_with(product)
    graph.erase_node(node)


def keep(x: Tensor, marker: Tensor, marks: bool = False) -> Tensor:
    """Return the product of x and a marker, which represents what the rule of the marker leaves of x, or its `marks` of what it leaves."""
    return x * marker


def add_marker(traced: Trace, rules: MutableMapping[str, KeepRule], name: str, value: Tensor, rule: KeepRule) -> Node:
    """Return a new marker, an argument called `name`, for a rule on a value of this shape and dtype. It is added to `rules`."""
    places = [d for d, size in enumerate(value.shape) if size != 1]  # dimensions of extent 1 are lost on the way
    rules[name] = replace(rule, dimensions=tuple(places.index(d) for d in rule.dimensions if d in places))
    return traced.add(name, torch.ones((), dtype=value.dtype).expand(value.shape))


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
        case Apply("mul", (factor, Access(tensor=name) as marker)) if name in rules:
            einsum = replace(einsum, body=_keep(rules[name], marker, factor))
        case Apply("mul", (Access(tensor=name) as marker, factor)) if name in rules:
            einsum = replace(einsum, body=_keep(rules[name], marker, factor))
    if any(access.tensor in rules for access in einsum.accesses):
        message = f"a rule keeps a part of `{einsum.name}`, which is no whole result"
        raise FrontendError(message, hint="keep a part of the result of an operator", span=einsum.location.span)
    return einsum


def _keep(kept: KeepRule, marker: Access, body: Expr) -> Expr:
    if isinstance(kept.rule, Largest) and not kept.dimensions:
        return body  # It compares one entry with no other.
    return Keep(kept.rule, tuple(str(marker.indices[d]) for d in kept.dimensions), body)
