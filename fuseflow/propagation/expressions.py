"""The known values of every expression, given the known values of its operands, and the elements of the operands that are needed, given
the elements of a result that are needed. All rules are read from the operator table.

A result is known where all operands are known, or where one of them fixes it whatever the others are (an annihilator). A
reduction is known where all its elements are known, or where one absorbs the others.

Known elements of a result need no operand. Over an index that the operand lacks, and over several uses, an element is needed if any of
them needs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import numpy as np

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Keep, Reduce, factors, free_indices
from fuseflow.einsum.sparse_arrays import LabeledArray, union
from fuseflow.keep_rules import Largest, Threshold, kept, what_is_kept
from fuseflow.ops import Array, Operator, operator, reducer
from fuseflow.propagation.labeled import EVERYWHERE, MAX_POINTS, Entries, Mask, any_over, any_product, contracted, read, sampled

UNKNOWN = LabeledArray(np.asarray(np.nan))
_ABSORBING = {"max": math.inf, "min": -math.inf}
_FIXING: Mapping[str, tuple[tuple[int, float, float], ...]] = {
    "pow": ((0, 1.0, 1.0),),
    "max": ((0, math.inf, math.inf), (1, math.inf, math.inf)),
    "min": ((0, -math.inf, -math.inf), (1, -math.inf, -math.inf)),
    "lt": ((0, math.inf, 0.0), (1, -math.inf, 0.0)),
    "gt": ((0, -math.inf, 0.0), (1, math.inf, 0.0)),
    "le": ((0, -math.inf, 1.0), (1, math.inf, 1.0)),
    "ge": ((0, math.inf, 1.0), (1, -math.inf, 1.0)),
    "threshold": ((0, math.inf, math.inf), (0, -math.inf, -math.inf)),
}
"""Operands that fix a result whatever number the others are, as rows of position, operand and result. They are no annihilators of the
operator table, since a result that is not a number may have one of them as an operand."""


Value: TypeAlias = Mask
"""The known values of an expression, with NaN where one is unknown; or the coordinates of unknown ones, if all others are 0."""
Needs: TypeAlias = Iterator[tuple[Access, Mask]]
"""Accesses, each with the elements of its index space that are needed."""


class Expressions:
    """The expressions of one Einsum. `known` has the known values of tensors, and `shapes` their shapes."""

    def __init__(
        self, known: Mapping[str, Array | Entries], shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]
    ) -> None:
        self.sizes = sizes
        self._known, self._shapes = known, shapes
        self._values: dict[Expr, Value] = {}

    def value(self, node: Expr) -> Value:
        """Return the known values of an expression."""
        if node not in self._values:
            self._values[node] = self._value(node)
        return self._values[node]

    def _value(self, node: Expr) -> Value:
        match node:
            case Const():
                return LabeledArray(np.asarray(node.value, dtype=np.float64))
            case Access():
                known = self._known[node.tensor]
                if isinstance(known, Entries):
                    return Entries(known.crds, known.mask, node.names) if node.is_plain else UNKNOWN
                return read(node, known, self._shapes[node.tensor], self.sizes, 0.0)
            case Apply():
                return self._applied([self.value(arg) for arg in node.args], operator(node.op))
            case Reduce():
                return self._reduced(node)
            case Keep():
                return self._selected(node)
            case other:
                assert_never(other)

    def _applied(self, values: Sequence[Value], row: Operator) -> Value:
        listed = [value for value in values if isinstance(value, Entries)]
        if listed:
            return _applied_to_entries(row, listed[0], values)
        dense = [value for value in values if isinstance(value, LabeledArray)]
        names = union(*dense)
        if not self._fits(names):
            return UNKNOWN
        return LabeledArray(applied(row, [value.over(names) for value in dense]), names)

    def _reduced(self, node: Reduce) -> Value:
        values = [self.value(factor) for factor in product_factors(node)]
        if any(isinstance(value, Entries) for value in values):
            kept = [name for name in free_indices(node.body) if name not in node.over]
            living = any_product([alive(value) for value in values], kept, node.over, self.sizes)
            return LabeledArray(np.where(living.array, np.nan, 0.0), living.names)
        dense = [value for value in values if isinstance(value, LabeledArray)]
        if len(dense) > 1:
            total = self._sum_of_products(dense, node.over)
            if total is not None:
                return total
        body = self.value(node.body)
        return UNKNOWN if isinstance(body, Entries) else reduced(body, node, self.sizes)

    def _sum_of_products(self, values: Sequence[LabeledArray], over: Sequence[str]) -> LabeledArray | None:
        """Return the sum of products, or None where a known factor is infinite and the product can be written out."""
        names = union(*values)
        if any(np.isinf(value.array).any() for value in values):
            return None if self._fits(names) else UNKNOWN
        names = tuple(name for name in names if name not in over)
        living = contracted([value.map(alive_of) for value in values], names, over, self.sizes)
        fixed = contracted([value.map(fixed_of) for value in values], names, over, self.sizes)
        total = contracted([value.map(np.nan_to_num) for value in values], names, over, self.sizes)
        names = union(living, fixed, total)
        open_terms = living.over(names) - fixed.over(names) > 0.5
        return LabeledArray(np.where(open_terms, np.nan, total.over(names)), names)

    def _selected(self, node: Keep) -> Value:
        body = self.value(node.body)
        if isinstance(body, Entries):
            return UNKNOWN if node.marks else body
        if isinstance(node.rule, Largest) and (np.isnan(body.array).any() or not set(node.over) <= set(body.names)):
            return UNKNOWN if node.marks else body.map(lambda array: np.where(array == 0, 0.0, np.nan))
        passes = kept(node.rule, body.array, [body.names.index(name) for name in node.over])
        return LabeledArray(np.where(np.isnan(body.array) | passes, what_is_kept(node.rule, body.array), 0.0), body.names)

    def _fits(self, names: Sequence[str]) -> bool:
        return math.prod(self.sizes[name] for name in names) <= MAX_POINTS

    def needs(self, node: Expr, need: Mask) -> Needs:
        """Yield the elements that an expression needs where a mask over its indices is true. A known element needs no operand."""
        need = self._both(self._any_over(need, free_indices(node)), unknown(self.value(node)))
        if not (need.mask if isinstance(need, Entries) else need.array).any():
            return
        match node:
            case Const():
                return
            case Access():
                yield node, need
            case Apply():
                for position, arg in enumerate(node.args):
                    taken = self._both(need, self._taken(node, position)) if node.op == "where" and position else need
                    yield from self.needs(arg, taken)
            case Reduce():
                yield from self._of_reduction(node, need)
            case Keep(rule=Threshold()):
                yield from self.needs(node.body, need)
            case Keep():  # an element needs all that it is compared with
                yield from self.needs(node.body, self._any_over(need, [name for name in need.names if name not in node.over]))
            case other:
                assert_never(other)

    def _taken(self, node: Apply, position: int) -> Mask:
        """Return where the branch at this position of a `where` may be taken: the condition selects it there, or is unknown."""
        condition = self.value(node.args[0])
        if isinstance(condition, Entries):
            return condition if position == 1 else EVERYWHERE
        return condition.map(lambda c: np.isnan(c) | ((c != 0) if position == 1 else (c == 0)))

    def _of_reduction(self, node: Reduce, need: Mask) -> Needs:
        parts, sizes = product_factors(node), self.sizes
        values = [self.value(factor) for factor in parts]
        if len(parts) < 2 or any(isinstance(value, LabeledArray) and np.isinf(value.array).any() for value in values):
            yield from self.needs(node.body, need)
            return
        masks = [alive(value) for value in values]
        for place, factor in enumerate(parts):
            others, own = [need, *masks[:place], *masks[place + 1 :]], masks[place]
            if isinstance(own, Entries):
                yield from self.needs(factor, sampled(own, others, sizes))
            else:
                yield from self.needs(factor, any_product(others, free_indices(factor), (), sizes))

    def _any_over(self, need: Mask, names: Sequence[str]) -> Mask:
        return need.any_over(names, self.sizes) if isinstance(need, Entries) else any_over(need, names)

    def _both(self, first: Mask, second: Mask) -> Mask:
        """Return where two masks are true. The result may be true elsewhere, too, if their product would be too large."""
        if isinstance(first, Entries) and set(second.names) <= set(first.names):
            return first.both(second)
        if isinstance(second, Entries) and set(first.names) <= set(second.names):
            return second.both(first)
        if isinstance(first, LabeledArray) and isinstance(second, LabeledArray):
            names = union(first, second)
            return LabeledArray(first.over(names) & second.over(names), names)
        return first if isinstance(second, Entries) else second


def _applied_to_entries(row: Operator, first: Entries, values: Sequence[Value]) -> Value:
    """Return the known values of a result if one operand, `first`, is 0 except at listed coordinates. The result is 0 elsewhere,
    too, if the operator gives 0 for zeros at the same places, or for the zeros of this operand."""
    annihilated = all((position, 0.0, 0.0) in row.annihilators for position in range(row.arity))
    if annihilated and all(isinstance(v, Entries) or set(v.names) <= set(first.names) for v in values):
        result = first
        for value in values:
            result = result.both(alive(value))
        return result
    alike = [value for value in values if isinstance(value, Entries) and first.same_place(value)]
    if len(alike) == len(values) and float(row(*[np.zeros(())] * row.arity)) == 0:
        return Entries(first.crds, np.any([value.mask for value in alike], axis=0), first.names)
    return UNKNOWN


def alive(value: Value) -> Mask:
    """Return where a value is not known to be 0."""
    return value if isinstance(value, Entries) else value.map(alive_of)


def unknown(value: Value) -> Mask:
    """Return where a value is unknown."""
    return value if isinstance(value, Entries) else value.map(np.isnan)


def applied(row: Operator, operands: Sequence[Array]) -> Array:
    """Return the known values of the result of an operator."""
    unknown = np.zeros(np.broadcast_shapes(*(operand.shape for operand in operands)), dtype=bool)
    for operand in operands:
        unknown = unknown | np.isnan(operand)
    result = np.where(unknown, np.nan, row(*(np.where(np.isnan(operand), 0.5, operand) for operand in operands)))
    for position, value, fixed in (*_FIXING.get(row.name, ()), *row.annihilators):
        result = np.where(operands[position] == value, fixed, result)
    if row.name == "where":
        condition, true, false = operands
        either = np.where(true == false, true, np.nan)
        result = np.where(np.isnan(condition), either, np.where(condition != 0, true, false))
    return result


def reduced(value: LabeledArray, node: Reduce, sizes: Mapping[str, int]) -> LabeledArray:
    """Return the known values of a reduction of an expression."""
    row, unknown = reducer(node.op), np.isnan(value.array)
    axes = tuple(axis for axis, name in enumerate(value.names) if name in node.over)
    numbers = np.where(unknown, row.identity, value.array)
    with np.errstate(all="ignore"):  # a NaN is unknown
        result = row.array.reduce(numbers, axis=axes, initial=row.identity) if axes else value.array
    if axes:
        result = np.where(unknown.any(axis=axes), np.nan, result)
    if node.op in _ABSORBING:
        result = np.where((value.array == _ABSORBING[node.op]).any(axis=axes), _ABSORBING[node.op], result)
    count = math.prod(sizes[name] for name in node.over if name not in value.names)
    repeated = np.vectorize(lambda element: element if math.isnan(element) else row.repeated(element, count), otypes=[float])
    names = tuple(name for name in value.names if name not in node.over)
    return LabeledArray(np.asarray(result if count == 1 else repeated(result)), names)


def product_factors(node: Reduce) -> tuple[Expr, ...]:
    """Return the factors of a sum of products, or () for another reduction."""
    return factors(node.body) if node.op == "sum" else ()


def alive_of(array: Array) -> Any:
    """Return where an element is not known to be 0."""
    return array != 0


def fixed_of(array: Array) -> Any:
    """Return where an element is known to be another number than 0."""
    return (array != 0) & ~np.isnan(array)
