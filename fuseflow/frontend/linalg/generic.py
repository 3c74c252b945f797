"""The meaning of a `linalg.generic`: for each result an expression over the loops of the operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from torch_mlir import ir

from fuseflow.einsum.index_names import substitute
from fuseflow.einsum.nodes import Affine, Apply, Const, Expr, Index, Reduce, Split, free_indices, plain_names, walk
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg.emitter import simplify_apply
from fuseflow.frontend.linalg.module_io import ORDERED_ATTRIBUTE
from fuseflow.frontend.linalg.scalars import ACCUMULATOR, REDUCTIONS, ScalarEvaluator
from fuseflow.ops import REDUCERS

IndexingMap = tuple[Index | None, ...]
"""For each dimension of an operand, the index that runs along it, or None where the dimension has extent 1."""

MAX_WINDOW = 32
"""The number of positions of a window that are written out, at most."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The loops of a generic, which are called `d0, d1, ...`. Loops of extent 1 are left out.

    `extents` has the number of iterations of each loop, `reduced` the reduction loops, and `maps` the indexing map of each operand. `order`
    has all of them, the outermost first, if that order is the user's.
    """

    extents: dict[str, int]
    reduced: tuple[str, ...]
    maps: tuple[IndexingMap, ...]
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, op: Any) -> LoopNest:
        """Return the loops of an operation. Raise `FrontendError` for an indexing map that is not affine."""
        shapes = [tuple(o.type.shape) if isinstance(o.type, ir.RankedTensorType) else () for o in op.operands]
        results = [tuple(attribute.value.results) for attribute in op.attributes["indexing_maps"]]
        extents = {f"d{position}": size for position, size in loop_extents(results, shapes).items() if size != 1}
        maps = [
            tuple(_index(e, size, extents) for e, size in zip(expressions, shape, strict=True))
            for expressions, shape in zip(results, shapes, strict=True)
        ]
        iterators = [str(kind) for kind in op.attributes["iterator_types"]]
        reduced = tuple(f"d{n}" for n, kind in enumerate(iterators) if "reduction" in kind and f"d{n}" in extents)
        order = tuple(f"d{n}" for n in range(len(iterators))) if ORDERED_ATTRIBUTE in op.attributes else ()
        return cls(extents, reduced, tuple(maps), order)


def loop_extents(maps: Sequence[Sequence[Any]], shapes: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the extent of each loop that runs along a dimension of an operand, by the position of the loop."""
    places = (pair for expressions, shape in zip(maps, shapes, strict=True) for pair in zip(expressions, shape, strict=True))
    return {expression.position: size for expression, size in places if isinstance(expression, ir.AffineDimExpr)}


def _index(expression: Any, size: int, extents: Mapping[str, int]) -> Index | None:
    """Return the index along a dimension of an operand. Windows that do not overlap and leave nothing out are a split."""
    if size == 1:
        return None
    if isinstance(expression, ir.AffineDimExpr):
        return f"d{expression.position}"
    return _kept(_linear(expression), size, extents)


def _sum(first: Affine, second: Affine, sign: int = 1) -> Affine:
    terms = tuple((name, sign * factor) for name, factor in second.terms)
    return Affine((*first.terms, *terms), first.offset + sign * second.offset)


def linear_index(expression: Any, size: int, extents: Mapping[str, int], loops: Sequence[str]) -> Index:
    """Return the expression over `loops` as an index along a dimension of extent `size`, an affine one where no other fits."""
    if isinstance(expression, ir.AffineDimExpr):
        return loops[int(expression.position)]
    form = _linear(expression)
    form = Affine(tuple((loops[int(name[1:])], factor) for name, factor in form.terms), form.offset)
    match form.terms if form.offset == 0 else ():
        case [(outer, step), (inner, 1)] if extents[inner] == step and extents[outer] * step == size:
            return Split(outer, inner, step)
    return form


def _kept(form: Affine, size: int, extents: Mapping[str, int]) -> Index | None:
    """Return an affine index in its simplest form: a plain index, a split, or affine. None if the extent `size` is 1."""
    if size == 1:
        return None
    terms = tuple((name, factor) for name, factor in form.terms if name in extents)  # another loop is 0 all the time
    match sorted(terms, key=lambda term: -term[1]) if form.offset == 0 else ():
        case [(name, 1)] if extents[name] == size:
            return name
        case [(outer, step), (inner, 1)] if extents[inner] == step and extents[outer] * step == size:
            return Split(outer, inner, step)
    return Affine(terms, form.offset)


def _coordinate(ssa: Any) -> Affine:
    """Return the coordinate that a body computes from its loops. Raise `FrontendError` if it is no sum of loops with factors."""
    op = ssa.owner.operation if hasattr(ssa.owner, "operation") else ssa.owner
    match getattr(op, "name", ""):
        case "linalg.index":
            return Affine(((f"d{ir.IntegerAttr(op.attributes['dim']).value}", 1),))
        case "arith.constant":
            return Affine((), ir.IntegerAttr(op.attributes["value"]).value)
        case "arith.addi" | "arith.subi" as name:
            first, second = map(_coordinate, op.operands)
            return _sum(first, second, 1 if name == "arith.addi" else -1)
    hint = "gather by positions that are known before it runs"
    raise FrontendError("an element is read at a place that depends on data", hint=hint)


def _linear(expression: Any) -> Affine:
    match expression:
        case ir.AffineDimExpr():
            return Affine(((f"d{expression.position}", 1),))
        case ir.AffineConstantExpr():
            return Affine((), expression.value)
        case ir.AffineAddExpr():
            return _sum(_linear(expression.lhs), _linear(expression.rhs))
        case ir.AffineMulExpr():
            first, second = _linear(expression.lhs), _linear(expression.rhs)
            if first.terms and second.terms:
                hint = "an index is a sum of loops with factors"
                raise FrontendError(f"the index {expression} multiplies two loops", hint=hint)
            inner, factor = (first, second.offset) if not second.terms else (second, first.offset)
            return Affine(tuple((name, n * factor) for name, n in inner.terms), inner.offset * factor)
    hint = "indices with `mod` or `floordiv` have no form"
    raise FrontendError(f"the index {expression} is no sum of loops with factors", hint=hint)


def result_elements(
    op: Any, loops: LoopNest, operand: Callable[[Any, IndexingMap], Expr], scalar: Callable[[Any], Expr]
) -> list[tuple[Any, Expr, IndexingMap]]:
    """Return each result that is used, with its element as an expression over the loops (reductions included) and its indexing map.

    `operand` computes the element of an operand, and `scalar` the element of a one-element tensor that the body reads. Raise
    `FrontendError` for a body that has no Einsum form.
    """
    body = op.regions[0].blocks[0]
    inputs = op.attributes["operandSegmentSizes"][0]
    arguments = {argument: operand(op.operands[n], loops.maps[n]) for n, argument in enumerate(body.arguments)}
    yielded = body.operations[len(body.operations) - 1].operation.operands

    def extracted(read: Any) -> Expr:
        source, *indices = read.operands
        sizes = source.type.shape
        return operand(source, tuple(_kept(_coordinate(i), size, loops.extents) for i, size in zip(indices, sizes, strict=True)))

    plain = frozenset[str]().union(*map(plain_names, arguments.values()))
    elements = []
    for n, result in enumerate(op.results):
        if next(iter(result.uses), None) is None:
            continue  # An example is the argmax that comes with every max.
        _refuse_scattered(op, inputs + n, loops.maps[inputs + n])
        accumulator = body.arguments[inputs + n]
        expr = ScalarEvaluator(arguments | {accumulator: ACCUMULATOR}, scalar, extracted).value(yielded[n])
        elements.append((result, _reduction(expr, arguments[accumulator], loops, plain), loops.maps[inputs + n]))
    return elements


def _refuse_scattered(op: Any, operand: int, indices: IndexingMap) -> None:
    """Raise `FrontendError` for a result with a dimension that is no loop of its own: some elements would never be written."""
    written = [index for index in indices if index is not None]
    if len(set(written)) < len(written) or not all(isinstance(index, str) for index in written):
        problem = f"the result map {op.attributes['indexing_maps'][operand].value} is no permutation of loops"
        raise FrontendError(problem, hint="each dimension of a result is a loop of its own")


def _reduction(expr: Expr, start: Expr, loops: LoopNest, plain: Collection[str]) -> Expr:
    """Return the value of a result after all loops, given the yielded expression and the value `start` before the first iteration. A
    reduction loop is one over a window unless an operand has a dimension along it, as with `plain` ones."""
    if ACCUMULATOR not in walk(expr):
        if loops.reduced:
            raise FrontendError("a reduction that overwrites its result has no Einsum form", hint="use sum, max, min or prod")
        return expr
    operator, value = _combination(expr)
    reducer = REDUCERS[REDUCTIONS[operator]]
    free = free_indices(value)
    over = tuple(name for name in loops.reduced if name in free and name in plain)
    window = {name: loops.extents[name] for name in loops.reduced if name in free and name not in plain}
    total = _written_out(operator, Reduce(reducer.name, over, value) if over else value, window)
    for name in loops.reduced:
        if name not in free:
            total = _repeated(reducer.name, total, loops.extents[name])
    return total if start == Const(reducer.identity) else simplify_apply(operator, start, total)


def _combination(expr: Expr) -> tuple[str, Expr]:
    """Return the operator that combines the accumulator with a value, and the value. Raise `FrontendError` if the body has another form."""
    if expr == ACCUMULATOR:
        return "add", Const(0.0)
    if expr == Apply("relu", (ACCUMULATOR,)):
        return "max", Const(0.0)
    if isinstance(expr, Apply) and expr.op in REDUCTIONS and ACCUMULATOR in expr.args:
        value = expr.args[1] if expr.args[0] == ACCUMULATOR else expr.args[0]
        if ACCUMULATOR not in walk(value):
            return expr.op, value
    hint = "its body must be the sum, max, min or prod of the accumulator and a value"
    raise FrontendError("a reduction has no Einsum form", hint=hint)


def _written_out(operator: str, value: Expr, window: Mapping[str, int]) -> Expr:
    """Return a reduction over a window that no operand has as a dimension, position by position."""
    if math.prod(window.values()) > MAX_WINDOW:
        message = f"a window of {' x '.join(map(str, window.values()))} positions is larger than {MAX_WINDOW}"
        raise FrontendError(message, hint="pool in two steps, or with windows that do not overlap")
    positions = product(*(range(size) for size in window.values()))
    terms = [substitute(value, {n: Affine((), at) for n, at in zip(window, p, strict=True)}) for p in positions]
    while len(terms) > 1:  # pairs of pairs, which keeps the expression flat
        pairs = [Apply(operator, (a, b)) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*pairs, *terms[len(pairs) * 2 :]]
    return terms[0]


def _repeated(reducer: str, total: Expr, times: int) -> Expr:
    """Return the reduction of the value `total` over an index of extent `times` that the value does not depend on."""
    match reducer:
        case "sum":
            return simplify_apply("mul", total, Const(float(times)))
        case "prod":
            return simplify_apply("pow", total, Const(float(times)))
    return total
