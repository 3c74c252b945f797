"""Rules of `keep` on computed values, on the way through the front end.

No operator of torch-mlir keeps a part of a value. So a product with a fresh argument, a marker of ones, stands for a rule on the way, and
when the Einsums are there, each such product becomes a `keep` or a `mark` of the other factor by the rule of the marker.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.einsum.nodes import Access, Apply, Einsum, Expr, Keep, Program
from fuseflow.errors import FrontendError
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.keep_rules import Largest
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule


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
