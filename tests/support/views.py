"""Which of the statements of a program have what real models have: seen in the program and its data, not in what drew it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from random_programs import Case
from random_programs.views import is_selection

from fuseflow.einsum.nodes import Access, Affine, Apply, Const, Einsum, Expr, Keep, Reduce, walk
from fuseflow.einsum.verify import shapes_and_extents
from fuseflow.keep_rules import Largest

FEATURES = ("offsets", "strides", "selections", "concatenations", "max by pattern", "top-k")


def features(case: Case) -> dict[str, set[str]]:
    """The names of the Einsums that have each feature, of those that an output needs."""
    shapes, _ = shapes_and_extents(case.program)
    positions = {name for name, tensor in case.tensors.items() if is_selection(tensor.to_dense())}
    having: dict[str, set[str]] = {feature: set() for feature in FEATURES}
    needed = _needed(case)
    for einsum in case.program.einsums:
        if einsum.name in needed:
            for feature in _of(einsum, shapes, positions):
                having[feature].add(einsum.name)
    return having


def _of(einsum: Einsum, shapes: dict[str, tuple[int, ...]], positions: set[str]) -> Iterator[str]:
    affine = [index for access in einsum.accesses for index in access.indices if isinstance(index, Affine)]
    if any(index.offset for index in affine):
        yield "offsets"
    if any(abs(factor) > 1 for index in affine for _, factor in index.terms):
        yield "strides"
    for node in walk(einsum.body):
        match node:
            case Reduce("sum", over, body) if any(_takes(factor, over, positions) for factor in walk(body)):
                yield "selections"
            case Reduce("max" | "min", _, Apply("where", (Apply("eq", (Access(), Const(0.0))), Const(absent), _))):
                if math.isinf(absent):
                    yield "max by pattern"
            case Apply("add", (Access() as first, Access() as second)) if _are_parts(first, second, shapes):
                yield "concatenations"
            case Keep(Largest()):
                yield "top-k"


def _takes(node: Expr, over: tuple[str, ...], positions: set[str]) -> bool:
    """Whether rows are taken, or put somewhere, by the ones of a matrix."""
    if not isinstance(node, Apply) or node.op != "mul":
        return False
    return any(isinstance(x, Access) and x.tensor in positions and bool(set(x.names) & set(over)) for x in node.args)


def _are_parts(first: Access, second: Access, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Whether two accesses put their tensors beside each other in one dimension, and agree in the others."""
    if len(first.indices) != len(second.indices):
        return False
    pairs = [(d, i, j) for d, (i, j) in enumerate(zip(first.indices, second.indices, strict=True)) if i != j]
    if len(pairs) != 1:
        return False
    ((dimension, i, j),) = pairs
    if not (isinstance(i, Affine) and isinstance(j, Affine) and i.terms == j.terms and [f for _, f in i.terms] == [1]):
        return False
    low, high = ((first, i), (second, j)) if i.offset > j.offset else ((second, j), (first, i))
    return low[1].offset - high[1].offset == shapes[low[0].tensor][dimension]


def _needed(case: Case) -> set[str]:
    """What the outputs are computed from."""
    needed = set(case.program.outputs)
    for einsum in reversed(case.program.einsums):
        needed |= set(einsum.operands) if einsum.name in needed else set()
    return needed
