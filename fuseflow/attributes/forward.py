"""What is known of every expression, from what is known of its operands. The operator table alone says how.

A result is known where all operands are, or where one of them fixes it whatever the others are (an annihilator). A reduction is known where
all its elements are, or where one absorbs the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import numpy as np

from fuseflow.attributes.contraction import contracted
from fuseflow.attributes.labeled import Labeled, read, union
from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Keep, Reduce
from fuseflow.ops import Array, Operator, operator, reducer
from fuseflow.selection import Largest, Threshold, kept

MAX_POINTS = 1 << 26
"""The most elements of an array of attributes. Of an expression that needs more, nothing is known, which is always right."""

UNKNOWN = Labeled(np.asarray(np.nan))
_ABSORBING = {"max": math.inf, "min": -math.inf}


class Forward:
    """The attributes of the expressions of one Einsum. `known` has those of tensors, and `shapes` their shapes."""

    def __init__(self, known: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._known, self._shapes = known, shapes
        self._values: dict[Expr, Labeled] = {}

    def value(self, node: Expr) -> Labeled:
        """Return what is known of an expression, with NaN where it is unknown."""
        if node not in self._values:
            self._values[node] = self._value(node)
        return self._values[node]

    def _value(self, node: Expr) -> Labeled:
        match node:
            case Const():
                return Labeled(np.asarray(node.value, dtype=np.float64))
            case Access():
                return read(node, self._known[node.tensor], self._shapes[node.tensor], self.sizes, 0.0)
            case Apply():
                return self._applied([self.value(arg) for arg in node.args], operator(node.op))
            case Reduce():
                return self._reduced(node)
            case Keep():
                return self._selected(node)
            case unknown:
                assert_never(unknown)

    def _applied(self, values: Sequence[Labeled], row: Operator) -> Labeled:
        names = union(*values)
        if not self._fits(names):
            return UNKNOWN
        return Labeled(applied(row, [value.over(names) for value in values]), names)

    def _reduced(self, node: Reduce) -> Labeled:
        factors = product_factors(node)
        if len(factors) > 1:
            total = self._sum_of_products([self.value(factor) for factor in factors], node.over)
            if total is not None:
                return total
        return reduced(self.value(node.body), node, self.sizes)

    def _sum_of_products(self, values: Sequence[Labeled], over: Sequence[str]) -> Labeled | None:
        """Return the sum of products, or None where a known factor is infinite or the product is small enough to be written out."""
        names = union(*values)
        if any(np.isinf(value.array).any() for value in values):
            return None if self._fits(names) else UNKNOWN
        names = tuple(name for name in names if name not in over)
        alive = contracted([value.map(alive_of) for value in values], names, over, self.sizes)
        fixed = contracted([value.map(fixed_of) for value in values], names, over, self.sizes)
        total = contracted([value.map(np.nan_to_num) for value in values], names, over, self.sizes)
        names = union(alive, fixed, total)
        unknown = alive.over(names) - fixed.over(names) > 0.5
        return Labeled(np.where(unknown, np.nan, total.over(names)), names)

    def _selected(self, node: Keep) -> Labeled:
        body = self.value(node.body)
        match node.rule:
            case Threshold():
                passes = kept(node.rule, body.array)
                return Labeled(np.where(np.isnan(body.array) | passes, body.array, 0.0), body.names)
            case Largest():
                if np.isnan(body.array).any() or not set(node.over) <= set(body.names):
                    return body.map(lambda array: np.where(array == 0, 0.0, np.nan))
                passes = kept(node.rule, body.array, [body.names.index(name) for name in node.over])
                return Labeled(np.where(passes, body.array, 0.0), body.names)
            case unknown:
                assert_never(unknown)

    def _fits(self, names: Sequence[str]) -> bool:
        return math.prod(self.sizes[name] for name in names) <= MAX_POINTS


def applied(row: Operator, operands: Sequence[Array]) -> Array:
    """Return what is known of the result of an operator."""
    unknown = np.zeros(np.broadcast_shapes(*(operand.shape for operand in operands)), dtype=bool)
    for operand in operands:
        unknown = unknown | np.isnan(operand)
    result = np.where(unknown, np.nan, row(*(np.where(np.isnan(operand), 0.5, operand) for operand in operands)))
    for position, value, fixed in row.annihilators:
        result = np.where(operands[position] == value, fixed, result)
    if row.name == "where":
        condition, true, false = operands
        either = np.where(true == false, true, np.nan)
        result = np.where(np.isnan(condition), either, np.where(condition != 0, true, false))
    return result


def reduced(value: Labeled, node: Reduce, sizes: Mapping[str, int]) -> Labeled:
    """Return what is known of a reduction of an expression."""
    row, unknown = reducer(node.op), np.isnan(value.array)
    axes = tuple(axis for axis, name in enumerate(value.names) if name in node.over)
    numbers = np.where(unknown, row.identity, value.array)
    result = row.array.reduce(numbers, axis=axes, initial=row.identity) if axes else value.array
    if axes:
        result = np.where(unknown.any(axis=axes), np.nan, result)
    if node.op in _ABSORBING:
        result = np.where((value.array == _ABSORBING[node.op]).any(axis=axes), _ABSORBING[node.op], result)
    count = math.prod(sizes[name] for name in node.over if name not in value.names)
    repeated = np.vectorize(lambda element: element if math.isnan(element) else row.repeated(element, count), otypes=[float])
    names = tuple(name for name in value.names if name not in node.over)
    return Labeled(np.asarray(result if count == 1 else repeated(result)), names)


def product_factors(node: Reduce) -> tuple[Expr, ...]:
    """Return the factors of a sum of products, or () for another reduction."""
    return _factors(node.body) if node.op == "sum" else ()


def _factors(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Apply) and node.op == "mul":
        return tuple(factor for arg in node.args for factor in _factors(arg))
    return (node,)


def alive_of(array: Array) -> Any:
    """Return where an element is not known to be 0."""
    return array != 0


def fixed_of(array: Array) -> Any:
    """Return where an element is known, and not 0."""
    return (array != 0) & ~np.isnan(array)
