"""Operators and reductions as functions of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fuseflow.float32.operator_precision import Arithmetic, array_rounding, rounded_value, scalar_function
from fuseflow.ops import Reducer, operator
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import N
from fuseflow.sim.reference.node_context import NodeContext
from fuseflow.tile_ops import TILE_OPERATORS, constant_tile, map_elements


def fold_function(op: Reducer, context: NodeContext) -> Callable[[Any, Any], Any]:
    """Return the step of a reduction as a function of two values; tiles are combined element by element."""
    scalar = scalar_function(op, context.arithmetic)
    return partial(map_elements, scalar) if context.types[-1].tile else scalar


class Operators(dict[str, Callable[..., float]]):
    """A mapping from the names of operators to functions on numbers in an arithmetic, which are made at the first use."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic

    def __missing__(self, name: str) -> Callable[..., float]:
        self[name] = scalar_function(operator(name), self.arithmetic)
        return self[name]


def alu_function(node: n.Alu, context: NodeContext) -> Callable[..., Any]:
    """Return the operator of a node as a function of the tokens of its streams. In the arithmetic `rounded`, an operator that exists
    on tiles only rounds its result, not its steps."""
    tiles, arithmetic = [type_.tile for type_ in context.types], context.arithmetic
    shapes = iter(tiles)
    slots = [(o.value if o.constant else constant_tile(next(shapes), o.value), o.constant) for o in node.operands]
    if node.function not in TILE_OPERATORS:
        scalar = scalar_function(operator(node.function), arithmetic)
        return _stream_function(partial(map_elements, scalar) if any(tiles) else scalar, slots)
    array = TILE_OPERATORS[node.function].array
    if arithmetic == "rounded":
        return _stream_function(lambda *tiles: rounded_value(array(array_rounding("f64"), *tiles)), slots)
    return _stream_function(partial(array, array_rounding(arithmetic)), slots)


def _stream_function(function: Callable[..., Any], slots: Sequence[tuple[Any, bool]]) -> Callable[..., Any]:
    """Return the operator as a function of the tokens of the streams only: constants are filled in, and `N` is replaced by the
    implicit value of its operand. `slots` has for each operand its constant, or its value for `N`, and whether it is a constant."""
    match slots:
        case [(x, False)]:
            return lambda a: function(x if a is N else a)
        case [(x, False), (y, False)]:
            return lambda a, b: function(x if a is N else a, y if b is N else b)
        case [(x, False), (y, True)]:
            return lambda a: function(x if a is N else a, y)
        case [(x, True), (y, False)]:
            return lambda b: function(x, y if b is N else b)

    def call(*tokens: Any) -> Any:
        rest = iter(tokens)
        values = [value if constant or (t := next(rest)) is N else t for value, constant in slots]
        return function(*values)

    return call
