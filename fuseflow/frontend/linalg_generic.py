"""The meaning of a `linalg.generic`: for each result an expression over the loops of the operation."""

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
"""For each dimension of an operand, the loop that runs along it, or None where the dimension has extent 1."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The loops of a generic, which are called `d0, d1, ...`. Loops of extent 1 are left out.

    `extents` has the number of iterations of each loop, `reduced` the reduction loops, and `maps` the indexing map of each operand.
    """

    extents: dict[str, int]
    reduced: tuple[str, ...]
    maps: tuple[IndexingMap, ...]

    @classmethod
    def of(cls, op: Any) -> LoopNest:
        """Return the loops of an operation. Raise `FrontendError` for an indexing map that is not a list of loops."""
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


def _loop(expression: Any, size: int, indexing_map: Any) -> str | None:
    if size == 1:
        return None
    if not isinstance(expression, ir.AffineDimExpr):
        message = f"the indexing map {indexing_map} is not a list of loop indices"
        raise FrontendError(message, hint="sliding windows and strides have no Einsum form")
    return f"d{expression.position}"


def result_elements(
    op: Any, loops: LoopNest, operand: Callable[[Any, IndexingMap], Expr], scalar: Callable[[Any], Expr]
) -> list[tuple[Any, Expr, IndexingMap]]:
    """Return each result that is used, with its element as an expression over the loops (reductions included) and its indexing map.

    `operand` computes the element of an operand, and `scalar` that of a tensor of one element that the body reads. Raise
    `FrontendError` for a body that has no Einsum form.
    """
    body = op.regions[0].blocks[0]
    inputs = op.attributes["operandSegmentSizes"][0]
    arguments = {argument: operand(op.operands[n], loops.maps[n]) for n, argument in enumerate(body.arguments)}
    yielded = body.operations[len(body.operations) - 1].operation.operands
    elements = []
    for n, result in enumerate(op.results):
        if next(iter(result.uses), None) is None:
            continue  # An example is the argmax that comes with every max.
        accumulator = body.arguments[inputs + n]
        expr = ScalarEvaluator(arguments | {accumulator: _ACCUMULATOR}, scalar).value(yielded[n])
        elements.append((result, _reduction(expr, arguments[accumulator], loops), loops.maps[inputs + n]))
    return elements


def _reduction(expr: Expr, start: Expr, loops: LoopNest) -> Expr:
    """Return the value of a result after all loops, given the yielded expression and the value `start` before the first iteration."""
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
    """Return the operator that combines the accumulator with a value, and the value. Raise `FrontendError` if the body has another form."""
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
    """Return the reduction of a value over an index that it does not depend on."""
    match reducer:
        case "sum":
            return simplify_apply("mul", total, Const(float(times)))
        case "prod":
            return simplify_apply("pow", total, Const(float(times)))
    return total
