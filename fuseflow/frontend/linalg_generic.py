"""The meaning of one `linalg.generic`: an expression for each result over the loops of the operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Reduce, free_indices, walk
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg_scalars import ScalarEvaluator
from fuseflow.frontend.symbolic_values import simplify_apply
from fuseflow.ops import REDUCERS

_COMBINE = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
_ACCUMULATOR = Access("%accumulator", ())

IndexingMap = tuple[str | None, ...]
"""The loop that runs along each dimension of an operand; None where the dimension has extent 1."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The loops of a generic, named `d0, d1, ...`; those of extent 1 do not exist."""

    extents: dict[str, int]
    reduced: tuple[str, ...]
    maps: tuple[IndexingMap, ...]

    @classmethod
    def of(cls, op: Any) -> LoopNest:
        extents: dict[str, int] = {}
        maps: list[IndexingMap] = []
        for operand, attribute in zip(op.operands, op.attributes["indexing_maps"], strict=True):
            shape = operand.type.shape if isinstance(operand.type, ir.RankedTensorType) else ()
            names = [_loop(e, size, attribute.value) for e, size in zip(attribute.value.results, shape, strict=True)]
            extents.update({name: size for name, size in zip(names, shape, strict=True) if name is not None})
            maps.append(tuple(names))
        iterators = [str(kind) for kind in op.attributes["iterator_types"]]
        reduced = tuple(f"d{n}" for n, kind in enumerate(iterators) if "reduction" in kind and f"d{n}" in extents)
        return cls(extents, reduced, tuple(maps))


def _loop(expression: Any, size: int, whole: Any) -> str | None:
    if size == 1:
        return None
    if not isinstance(expression, ir.AffineDimExpr):
        message = f"the indexing map {whole} is not a list of loop indices"
        raise FrontendError(message, hint="sliding windows and strides have no Einsum form")
    return f"d{expression.position}"


def result_elements(
    op: Any, loops: LoopNest, operand: Callable[[Any, IndexingMap], Expr], scalar: Callable[[Any], Expr]
) -> list[tuple[Any, Expr, IndexingMap]]:
    """For each result that is used: the result, its element over the loops (reductions included) and its map.

    `operand` gives the element of an operand, `scalar` that of a tensor of one element read in the body. Raises `FrontendError` for a
    body that has no Einsum form.
    """
    body = op.regions[0].blocks[0]
    inputs = op.attributes["operandSegmentSizes"][0]
    known = {argument: operand(op.operands[n], loops.maps[n]) for n, argument in enumerate(body.arguments)}
    yielded = body.operations[len(body.operations) - 1].operation.operands
    found = []
    for n, result in enumerate(op.results):
        if next(iter(result.uses), None) is None:
            continue  # such as the argmax that comes with every max
        accumulator = body.arguments[inputs + n]
        expr = ScalarEvaluator(known | {accumulator: _ACCUMULATOR}, scalar).value(yielded[n])
        found.append((result, _folded(expr, known[accumulator], loops), loops.maps[inputs + n]))
    return found


def _folded(expr: Expr, start: Expr, loops: LoopNest) -> Expr:
    """What the loops make of the yielded expression, beginning with `start`."""
    if _ACCUMULATOR not in walk(expr):
        if loops.reduced:
            raise FrontendError("a reduction that overwrites its result has no Einsum form", hint="use sum, max, min or prod")
        return expr
    operator, value = _combination(expr)
    reducer = REDUCERS[_COMBINE[operator]]
    free = free_indices(value)
    over = tuple(name for name in loops.reduced if name in free)
    total = Reduce(reducer.name, over, value) if over else value
    for name in loops.reduced:
        if name not in free:
            total = _repeated(reducer.name, total, loops.extents[name])
    return total if start == Const(reducer.identity) else simplify_apply(operator, start, total)


def _combination(expr: Expr) -> tuple[str, Expr]:
    """The operator that combines the accumulator with a value, and the value."""
    if expr == _ACCUMULATOR:
        return "add", Const(0.0)
    if expr == Apply("relu", (_ACCUMULATOR,)):
        return "max", Const(0.0)
    if isinstance(expr, Apply) and expr.op in _COMBINE and _ACCUMULATOR in expr.args:
        value = expr.args[1] if expr.args[0] == _ACCUMULATOR else expr.args[0]
        if _ACCUMULATOR not in walk(value):
            return expr.op, value
    raise FrontendError(
        "a reduction has no Einsum form", hint="its body must be the sum, max, min or prod of the accumulator and a value"
    )


def _repeated(reducer: str, total: Expr, times: int) -> Expr:
    """A reduction over an index that the value does not have."""
    match reducer:
        case "sum":
            return simplify_apply("mul", total, Const(float(times)))
        case "prod":
            return simplify_apply("pow", total, Const(float(times)))
    return total
