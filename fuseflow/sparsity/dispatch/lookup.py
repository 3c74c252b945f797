"""The look-up of implementations: one for exactly the formats, else one that the shortest lossless conversions reach."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

from fuseflow.sparsity.dispatch.registry import REGISTRY, BackwardKey, Classes, ForwardKey, Function, Outputs, is_built_in
from fuseflow.sparsity.dispatch.signature import Operator
from fuseflow.sparsity.sparsifiers.keep_all import KeepAll

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
    others = []
    for key, function in rows.items():
        paths = _paths(inputs, key.inputs)
        extra = _output_cost(key.outputs, outputs)
        if key != exact and paths is not None and extra is not None:
            others.append((sum(map(len, paths)) + extra, Candidate(function, paths, key.outputs)))
    yield from (candidate for _, candidate in sorted(others, key=lambda other: other[0]))


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
    others = []
    for row, function in rows.items():
        paths = _paths(key.grad_outputs, row.grad_outputs)
        extra = _output_cost(row.grad_inputs, key.grad_inputs)
        if row != key and row.inputs in (key.inputs, None) and paths is not None and extra is not None:
            cost = sum(map(len, paths)) + extra
            others.append((row.inputs is None, cost, Candidate(function, paths, row.grad_inputs)))
    yield from (candidate for *_, candidate in sorted(others, key=lambda other: other[:2]))


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


def _paths(sources: Sequence[type], registered: Sequence[type]) -> tuple[Path, ...] | None:
    targets = registered or (torch.Tensor,) * len(sources)
    if len(sources) != len(targets):
        return None
    paths: list[Path] = []
    for source, target in zip(sources, targets, strict=True):
        path = shortest_path(source, target)
        if path is None:
            return None
        paths.append(path)
    return tuple(paths)


def _output_cost(given: Outputs, asked: Outputs | None) -> int | None:
    """Return how many results must be made sparse afterwards, or None if the formats `given` cannot become the formats `asked`."""
    if asked is None or given == asked:
        return 0
    dense = (KeepAll, torch.Tensor)
    count = max(len(given), len(asked))
    pairs = list(zip(given or (dense,) * count, asked or (dense,) * count, strict=False))
    if len(given) not in (0, count) or len(asked) not in (0, count):
        return None
    changed = [g for g, a in pairs if g != a]
    return len(changed) if all(pair == dense for pair in changed) else None
