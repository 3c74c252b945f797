"""The registry: implementations of operators and of sparsifiers, and lossless conversions, by the formats that they are for.

A registration for formats that have one replaces it, so that a cell of a notebook can be run again. A look-up finds the implementation for
exactly the formats, else one that the shortest lossless conversions reach.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import torch

from fuseflow.sparsity.dispatch.argument_binding import Operator, canonical
from fuseflow.sparsity.dispatch_formats import storage_class, storage_classes
from fuseflow.sparsity.sparsifiers.built_in import KeepAll

Classes: TypeAlias = tuple[type, ...]
"""The storage class of each tensor. In a registration, () stands for dense ones, however many they are."""
Outputs: TypeAlias = tuple[tuple[type, type], ...]
"""The class of the sparsifier and the storage class of each result. () stands for dense results, however many they are."""
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True, slots=True)
class ForwardKey:
    """The formats of the operands and of the results for which an implementation of an operator is registered."""

    inputs: Classes
    outputs: Outputs


@dataclass(frozen=True, slots=True)
class BackwardKey:
    """The formats of the tensors and of the gradients for which the gradient of an operator is registered. `inputs` are the
    formats in the forward pass, or None for any."""

    grad_outputs: Classes
    grad_inputs: Outputs
    inputs: Classes | None


@dataclass(frozen=True, slots=True)
class Registry:
    """All registrations, in their order."""

    forward: dict[Operator, dict[ForwardKey, Function]] = field(default_factory=dict)
    backward: dict[Operator, dict[BackwardKey, Function]] = field(default_factory=dict)
    sparsifiers: dict[tuple[type, type, type], Function] = field(default_factory=dict)
    conversions: dict[type, dict[type, Function]] = field(default_factory=dict)


REGISTRY = Registry()
_KERNELS = "fuseflow.sparsity.kernels."


def register_fwd_op_impl(
    operator: Operator, inp: Iterable[Any] | None = None, out: Iterable[Any] | None = None
) -> Callable[[F], F]:
    """Return a decorator that registers an implementation of an operator for formats.

    `inp` are the formats of the tensors that are passed, in the order of the signature; lists of tensors are written out. `out` are the
    sparsifier class and the format of each result. None stands for dense tensors. The function is called as
    `(ctx, inputs, output_sparsifiers)`. It saves for the gradient with `ctx.save_for_backward`, finds arguments that are no tensors in
    `ctx.call.arguments`, and returns tensors or bare storages. It may return `NotImplemented` for tensors that it does not treat.
    """
    key = ForwardKey(storage_classes(inp), output_classes(out))
    return _adding(REGISTRY.forward.setdefault(canonical(operator), {}), key)


def register_bwd_op_impl(
    operator: Operator,
    grad_out: Iterable[Any] | None = None,
    grad_inp: Iterable[Any] | None = None,
    inp: Iterable[Any] | None = None,
) -> Callable[[F], F]:
    """Return a decorator that registers the gradient of an operator for formats.

    `grad_out` are the formats of the gradients of the results. `grad_inp` are the sparsifier class and the format of each gradient that
    is returned, one for each tensor that was passed. None stands for dense ones. `inp` are the formats of the tensors in the forward pass;
    without it, the function is for all that have no gradient of their own. It is called as `(ctx, grad_outputs, input_sparsifiers)`, and
    returns a gradient for each tensor, or None. An operator that a function of yours computes has the gradients of yours only.
    """
    inputs = None if inp is None else storage_classes(inp)
    key = BackwardKey(storage_classes(grad_out), output_classes(grad_inp), inputs)
    return _adding(REGISTRY.backward.setdefault(canonical(operator), {}), key)


def register_sparsifier_implementation(sparsifier: Any, inp: Any, out: Any) -> Callable[[F], F]:
    """Return a decorator that registers how a sparsifier turns a tensor of one format into one of another format.

    The function is called as `(sparsifier, tensor)`, and returns a `PackedTensor` or a bare storage.
    """
    return _adding(REGISTRY.sparsifiers, (_class_of(sparsifier), storage_class(inp), storage_class(out)))


def register_conversion(inp: Any, out: Any) -> Callable[[F], F]:
    """Return a decorator that registers a lossless conversion of storages, which look-ups may take for an operator that lacks a format.

    The function is called with a storage of the class `inp`, and returns one of the class `out` (or a dense tensor).
    """
    return _adding(REGISTRY.conversions.setdefault(storage_class(inp), {}), storage_class(out))


def is_built_in(function: Function) -> bool:
    """Return whether an implementation is part of this package, and not registered by the user."""
    return str(getattr(function, "__module__", "")).startswith(_KERNELS)


def output_classes(outputs: Iterable[Any] | None) -> Outputs:
    """Return the formats of results in the form in which keys hold them. Dense results that keep all entries become ()."""
    classes = tuple((_class_of(sparsifier), storage_class(format)) for sparsifier, format in filter(None, outputs or ()))
    return () if all(pair == (KeepAll, torch.Tensor) for pair in classes) else classes


def _class_of(sparsifier: Any) -> type:
    return sparsifier if isinstance(sparsifier, type) else type(sparsifier)


def _adding(rows: dict[Any, Function], key: Any) -> Callable[[F], F]:
    def add(function: F) -> F:
        rows.pop(key, None)
        rows[key] = function
        return function

    return add


@dataclass(frozen=True, slots=True)
class SameFormatSparsifier:
    """Keeps the entries that stand where `ref_sp_ten` has its own, and stores them as it does. It is what updates in place and gradients
    of stored tensors have. A storage class of the user without known places needs a registered implementation of it."""

    ref_sp_ten: Any


Path: TypeAlias = tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An implementation that can run a call: the conversions that it needs for each tensor of the call, and the formats of its
    results."""

    function: Function
    paths: tuple[Path, ...]
    outputs: Outputs


def forward_candidates(operator: Operator, inputs: Classes, outputs: Outputs | None) -> Iterator[Candidate]:
    """Yield the implementations of an operator for formats, the one that needs the fewest conversions first.

    `outputs` are the requested formats of the results, or None for a call that takes any. Results of another format are made by a
    sparsifier from dense ones, which counts as a conversion.
    """
    rows = REGISTRY.forward.get(operator, {})
    exact = ForwardKey(inputs, outputs or ())
    if exact in rows:
        yield Candidate(rows[exact], ((),) * len(inputs), exact.outputs)
    others = ((False, key.inputs, key.outputs, function) for key, function in rows.items() if key != exact)
    yield from _converting(others, inputs, outputs)


def backward_candidates(operator: Operator, key: BackwardKey, forward: Function | None = None) -> Iterator[Candidate]:
    """Yield the implementations of the gradient of an operator, the one that needs the fewest conversions first, and first of all
    the ones for exactly these formats of the forward pass.

    The tensors of the forward pass are as that pass saved them, so that their formats are never converted. Built-in
    implementations cannot read the tensors that a user's function `forward` saved.
    """
    rows = REGISTRY.backward.get(operator, {})
    if forward is not None and not is_built_in(forward):
        rows = {row: function for row, function in rows.items() if not is_built_in(function)}
    if key in rows:
        yield Candidate(rows[key], ((),) * len(key.grad_outputs), key.grad_inputs)
    others = (
        (row.inputs is None, row.grad_outputs, row.grad_inputs, function)
        for row, function in rows.items()
        if row != key and row.inputs in (key.inputs, None)
    )
    yield from _converting(others, key.grad_outputs, key.grad_inputs)


def _converting(
    rows: Iterable[tuple[bool, Classes, Outputs, Function]], sources: Classes, asked: Outputs | None
) -> Iterator[Candidate]:
    """Yield the implementations that tensors with the formats `sources` can be converted for, the one with the fewest conversions
    first. A row is whether the implementation comes last, the formats that it takes, and the ones that it gives."""
    found = []
    for last, registered, given, function in rows:
        targets, extra = registered or (torch.Tensor,) * len(sources), _output_cost(given, asked)
        if len(targets) != len(sources) or extra is None:
            continue
        paths = tuple(path for path in map(shortest_path, sources, targets) if path is not None)
        if len(paths) == len(sources):
            found.append((last, sum(map(len, paths)) + extra, Candidate(function, paths, given)))
    yield from (candidate for *_, candidate in sorted(found, key=lambda other: other[:2]))


def shortest_path(source: type, target: type) -> Path | None:
    """Return the shortest row of lossless conversions from one storage class to another, or None if there is none."""
    paths: dict[type, Path] = {source: ()}
    queue = deque([source])
    while queue and target not in paths:
        cls = queue.popleft()
        for reached, conversion in REGISTRY.conversions.get(cls, {}).items():
            if reached not in paths:
                paths[reached] = (*paths[cls], conversion)
                queue.append(reached)
    return paths.get(target)


def _output_cost(given: Outputs, asked: Outputs | None) -> int | None:
    """Return how many results must be made sparse afterwards, or None if the formats `given` cannot become the formats `asked`."""
    if asked is None or given == asked:
        return 0
    dense, count = (KeepAll, torch.Tensor), max(len(given), len(asked))
    if len(given) not in (0, count) or len(asked) not in (0, count):
        return None
    changed = [g for g, a in zip(given or (dense,) * count, asked or (dense,) * count, strict=True) if g != a]
    return len(changed) if all(pair == dense for pair in changed) else None
