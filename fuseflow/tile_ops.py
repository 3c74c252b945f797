"""Operators on tiles: the operators of the operator table, element by element, and a table of operators that exist on tiles only.

A tile is an array [b1, b2] of float64 that is read-only. Every operator is defined by the scalar functions of `ops`, applied in a fixed
order. A sum of products runs over ascending k from the identity 0, and each product is rounded before it is added (it is never fused). A
fold runs over ascending columns or rows from the identity. So tiles and scalars give the same bits in every simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.ops import COMBINERS, OPERATORS, REDUCERS, Operator, operator

TileShape: TypeAlias = tuple[int, ...]
"""The shape of a tile, that is, its rows and columns, or () for a scalar."""
Array = npt.NDArray[np.float64]
Rounding: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class TileOperator:
    """An operator that exists on tiles only.

    `result` computes the shape of the result from the shapes of the operands, or None if the operator does not accept them;
    `operands` says in words which ones it accepts. `work` computes the number of multiply-accumulates or of elements; each takes
    `flops_per_work` FLOPs. `array` computes the result, which is a number where its shape is (). Its first argument is the
    function that rounds arrays of sums and products; the operands follow. `unit` is the latency class of the machine, and
    `rounds` says whether a result of 32-bit floats may have more digits than such a float.
    """

    name: str
    arity: int
    operands: str
    result: Callable[..., TileShape | None]
    work: Callable[..., int]
    array: Callable[..., Any]
    flops_per_work: int = 1
    unit: str = "add"
    rounds: bool = False


def constant_tile(tile: TileShape, value: float) -> Any:
    """Return a tile of the shape `tile` whose elements all have one value, or the value itself where `tile` is ()."""
    return _read_only(np.full(tile, value, dtype=np.float64)) if tile else value


def map_elements(function: Callable[..., float], *operands: Any) -> Array:
    """Apply a scalar function element by element. A column (b1 x 1), a row (1 x b2) or a number is repeated as NumPy broadcasts it.

    >>> map_elements(lambda a, b: a + b, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[10.0], [20.0]])).tolist()
    [[11.0, 12.0], [23.0, 24.0]]
    """
    arrays = np.broadcast_arrays(*operands)
    values = map(function, *(array.ravel().tolist() for array in arrays))
    return _read_only(np.fromiter(values, np.float64, arrays[0].size).reshape(arrays[0].shape))


def result_shape(function: str, tiles: Sequence[TileShape]) -> TileShape | None:
    """Return the shape of the result of an operator on operands of shapes `tiles`, or None if it does not accept them.

    >>> result_shape("matmul", [(2, 3), (3, 4)]), result_shape("add", [(2, 1), (1, 4)]), result_shape("add", [(2, 4), (4, 2)])
    ((2, 4), (2, 4), None)
    """
    if function in TILE_OPERATORS:
        row = TILE_OPERATORS[function]
        return row.result(*tiles) if len(tiles) == row.arity and all(tiles) else None
    return broadcast_shape(tiles)


def broadcast_shape(tiles: Sequence[TileShape]) -> TileShape | None:
    """Return the shape to which tiles broadcast, where a single row, a single column or a scalar is repeated, or None if they do not
    fit."""
    shapes = [tile for tile in tiles if tile]
    if not shapes:
        return ()
    sides = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    return sides if all(size in (1, side) for tile in shapes for size, side in zip(tile, sides, strict=True)) else None


def work_count(function: str, tiles: Sequence[TileShape]) -> int:
    """Return the work of an operator on operands of these shapes: the multiply-accumulates of a product, or the elements of another
    operator."""
    if function in TILE_OPERATORS:
        return TILE_OPERATORS[function].work(*tiles)
    return prod(broadcast_shape(tiles) or ())


def flops(function: str, tiles: Sequence[TileShape]) -> int:
    """Return the number of FLOPs of an operator on one operand of each of these shapes."""
    row = TILE_OPERATORS.get(function)
    return work_count(function, tiles) * (row.flops_per_work if row else operator(function).flops)


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _contracted(rows: int, columns: int) -> TileShape:
    """Return the shape of the result of a product or a fold. A single element is a scalar, with the shape ()."""
    return (rows, columns) if rows * columns > 1 else ()


def _element(array: Array) -> Any:
    return _read_only(array) if array.size > 1 else array.item()


def _matmul(rounded: Rounding, a: Array, b: Array) -> Any:
    """Add the products a[i, k] * b[k, j] up from 0 in the order of k. `rounded` rounds each product and sum. Arrays and numbers
    give the same bits."""
    total = np.full((a.shape[0], b.shape[1]), REDUCERS["sum"].identity)
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            total = rounded(total + rounded(OPERATORS["mul"](a[:, k : k + 1], b[k : k + 1, :])))
    return _element(total)


def _folded(reducer: str, axis: int, rounded: Rounding, a: Array) -> Any:
    """Fold each row (axis 1) or each column (axis 0) in the order of its elements."""
    op = REDUCERS[reducer]
    total: Array = np.full(a.shape[1 - axis], op.identity)
    for k in range(a.shape[axis]):
        total = rounded(map_elements(op.scalar, total, a.take(k, axis)))
    return _element(np.expand_dims(total, axis))


def _product(name: str, second: str, side: int, array: Callable[..., Any]) -> TileOperator:
    """Return the row of a product: the result has a column for each coordinate along dimension `side` of the second operand."""

    def result(a: TileShape, b: TileShape) -> TileShape | None:
        return _contracted(a[0], b[side]) if a[1] == b[1 - side] else None

    def work(a: TileShape, b: TileShape) -> int:
        return prod((*a, b[side]))

    return TileOperator(name, 2, f"tiles of b1 x k and {second}", result, work, array, 2, "mul", True)


_TRANSPOSE = TileOperator(
    "transpose", 1, "a tile", lambda a: a[::-1], prod, lambda rounded, a: _read_only(a.T.copy()), 0, "logic"
)

TILE_FOLDS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {f"{side}_{name}": (name, axis) for side, axis in (("row", 1), ("col", 0)) for name in REDUCERS}
)
"""The operators that fold the rows or the columns of a tile, each with its reducer and the axis along which it runs."""


def _fold(name: str, reducer: str, axis: int) -> TileOperator:
    def result(a: TileShape) -> TileShape:
        return _contracted(a[0], 1) if axis == 1 else _contracted(1, a[1])

    row = REDUCERS[reducer]
    return TileOperator(name, 1, "a tile", result, prod, partial(_folded, reducer, axis), 1, row.unit, row.rounds)


_ROWS = (
    _product("matmul", "k x b2", 1, _matmul),
    _product("matmul_t", "b2 x k", 0, lambda rounded, a, b: _matmul(rounded, a, b.T)),
    _TRANSPOSE,
    *(_fold(name, *fold) for name, fold in TILE_FOLDS.items()),
)

TILE_OPERATORS: Mapping[str, TileOperator] = MappingProxyType({row.name: row for row in _ROWS})

ALU_FUNCTIONS: Mapping[str, Operator | TileOperator] = MappingProxyType({**OPERATORS, **COMBINERS, **TILE_OPERATORS})
"""All functions that an `alu` node can compute, by name."""
