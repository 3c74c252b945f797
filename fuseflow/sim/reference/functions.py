"""Operators and reductions as functions of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fuseflow.float32.arithmetic import Arithmetic, array_rounding, rounded_value, scalar_function
from fuseflow.ops import Reducer, operator
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import N
from fuseflow.sim.reference.node_context import NodeContext
from fuseflow.tile_ops import TILE_OPERATORS, TileOperator, TileShape, constant_tile, map_elements


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
    """Return the operator of a node as a function of the tokens of its streams."""
    tiles = [type_.tile for type_ in context.types]
    return _stream_function(_function(node.function, tiles, context.arithmetic), _operand_slots(node, tiles))


def _function(name: str, tiles: Sequence[TileShape], arithmetic: Arithmetic) -> Callable[..., Any]:
    """Return the operator `name` on operands of these shapes, numbers or tiles."""
    if name in TILE_OPERATORS:
        return _tile_operator(TILE_OPERATORS[name], arithmetic)
    scalar = scalar_function(operator(name), arithmetic)
    return partial(map_elements, scalar) if any(tiles) else scalar


def _tile_operator(row: TileOperator, arithmetic: Arithmetic) -> Callable[..., Any]:
    """Return an operator on tiles. In the arithmetic `rounded` only the result is rounded, not the steps."""
    if arithmetic == "rounded":
        return lambda *tiles: rounded_value(row.array(array_rounding("f64"), *tiles))
    return partial(row.array, array_rounding(arithmetic))


def _operand_slots(node: n.Alu, tiles: Sequence[TileShape]) -> list[tuple[Any, bool]]:
    """Return for each operand its constant, or its value for `N` (as a tile if the stream has tiles), and whether it is a
    constant."""
    shapes = iter(tiles)
    return [(o.value if o.constant else constant_tile(next(shapes), o.value), o.constant) for o in node.operands]


def _stream_function(function: Callable[..., Any], slots: Sequence[tuple[Any, bool]]) -> Callable[..., Any]:
    """Return the operator as a function of the tokens of the streams only: constants are filled in, and `N` is replaced by the
    implicit value of its operand. `slots` is the result of `_operand_slots`."""
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
