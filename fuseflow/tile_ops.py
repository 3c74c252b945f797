"""Operators on tiles: those of the operator table element by element, and a table of those that exist on tiles only.

A tile is an array [b1, b2] of float64 that nobody writes to. Every operator is defined by the scalar functions of `ops`, applied in a
fixed order: sums of products run over k ascending from the identity 0, each product rounded before it is added (never fused), and
folds run over columns or rows ascending from the identity. So tiles and scalars give the same bits, in every simulator.
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
"""The shape of a tile: rows and columns; () for a scalar."""
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TileOperator:
    """An operator that exists on tiles only.

    `result` is the shape that it makes of the shapes of its operands, None if it does not take them, which `takes` says in words.
    `work` is the number of multiply-accumulates, or of elements; each is `per_work` FLOPs. `unit`: latency class of the machine.
    `array` gives a number where `result` is ().
    """

    name: str
    arity: int
    takes: str
    result: Callable[..., TileShape | None]
    work: Callable[..., int]
    array: Callable[..., Any]
    per_work: int = 1
    unit: str = "add"


def constant_tile(tile: TileShape, value: float) -> Any:
    """An element of the shape `tile` with one value everywhere: a number where `tile` is ()."""
    return _closed(np.full(tile, value, dtype=np.float64)) if tile else value


def map_elements(function: Callable[..., float], *operands: Any) -> Array:
    """A scalar function element by element; columns (b1 x 1), rows (1 x b2) and numbers stand for every column, row and element.

    >>> each(lambda a, b: a + b, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[10.0], [20.0]])).tolist()
    [[11.0, 12.0], [23.0, 24.0]]
    """
    arrays = np.broadcast_arrays(*operands)
    values = map(function, *(array.ravel().tolist() for array in arrays))
    return _closed(np.fromiter(values, np.float64, arrays[0].size).reshape(arrays[0].shape))


def result_shape(function: str, tiles: Sequence[TileShape]) -> TileShape | None:
    """The shape of the result of an operator on streams of elements of shapes `tiles`; None if it does not take these.

    >>> result_tile("matmul", [(2, 3), (3, 4)]), result_tile("add", [(2, 1), (1, 4)]), result_tile("add", [(2, 4), (4, 2)])
    ((2, 4), (2, 4), None)
    """
    if function in TILE_OPERATORS:
        row = TILE_OPERATORS[function]
        return row.result(*tiles) if len(tiles) == row.arity and all(tiles) else None
    return broadcast_shape(tiles)


def broadcast_shape(tiles: Sequence[TileShape]) -> TileShape | None:
    """The shape of tiles that meet element by element, where one row, one column or a scalar stands for all; None if they do not fit."""
    shapes = [tile for tile in tiles if tile]
    if not shapes:
        return ()
    sides = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    return sides if all(size in (1, side) for tile in shapes for size, side in zip(tile, sides, strict=True)) else None


def work_count(function: str, tiles: Sequence[TileShape]) -> int:
    """What an operator has to do on elements of these shapes: multiply-accumulates of a product, else elements."""
    if function in TILE_OPERATORS:
        return TILE_OPERATORS[function].work(*tiles)
    return prod(broadcast_shape(tiles) or ())


def flops(function: str, tiles: Sequence[TileShape]) -> int:
    """FLOPs of an operator on one element of each of these shapes."""
    row = TILE_OPERATORS.get(function)
    return work_count(function, tiles) * (row.per_work if row else operator(function).flops)


def _closed(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _contracted(rows: int, columns: int) -> TileShape:
    """The shape of what a product or a fold leaves: one element is a scalar."""
    return (rows, columns) if rows * columns > 1 else ()


def _element(array: Array) -> Any:
    return _closed(array) if array.size > 1 else array.item()


def _matmul(a: Array, b: Array) -> Any:
    """Products a[i, k] * b[k, j] added up from 0 in the order of k. Arrays and numbers multiply and add to the same bits."""
    total = np.full((a.shape[0], b.shape[1]), REDUCERS["sum"].identity)
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            total += OPERATORS["mul"](a[:, k : k + 1], b[k : k + 1, :])
    return _element(total)


def _folded(reducer: str, axis: int, a: Array) -> Any:
    """The fold of each row (axis 1) or column (axis 0), in the order of its elements."""
    op = REDUCERS[reducer]
    total: Array = np.full(a.shape[1 - axis], op.identity)
    for k in range(a.shape[axis]):
        total = map_elements(op.scalar, total, a.take(k, axis))
    return _element(np.expand_dims(total, axis))


_PRODUCTS = (
    TileOperator(
        "matmul",
        2,
        "tiles of b1 x k and k x b2",
        lambda a, b: _contracted(a[0], b[1]) if a[1] == b[0] else None,
        lambda a, b: prod((*a, b[1])),
        _matmul,
        2,
        "mul",
    ),
    TileOperator(
        "matmul_t",
        2,
        "tiles of b1 x k and b2 x k",
        lambda a, b: _contracted(a[0], b[0]) if a[1] == b[1] else None,
        lambda a, b: prod((*a, b[0])),
        lambda a, b: _matmul(a, b.T),
        2,
        "mul",
    ),
)

_TRANSPOSE = TileOperator("transpose", 1, "a tile", lambda a: a[::-1], prod, lambda a: _closed(a.T.copy()), 0, "logic")

TILE_FOLDS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {f"{what}_{name}": (name, axis) for what, axis in (("row", 1), ("col", 0)) for name in REDUCERS}
)
"""Operators that fold the rows or the columns of a tile: the reducer, and the axis along which it runs."""


def _fold(name: str, reducer: str, axis: int) -> TileOperator:
    def result(a: TileShape) -> TileShape:
        return _contracted(a[0], 1) if axis == 1 else _contracted(1, a[1])

    return TileOperator(name, 1, "a tile", result, prod, partial(_folded, reducer, axis), 1, REDUCERS[reducer].unit)


_ROWS = (*_PRODUCTS, _TRANSPOSE, *(_fold(name, *fold) for name, fold in TILE_FOLDS.items()))

TILE_OPERATORS: Mapping[str, TileOperator] = MappingProxyType({row.name: row for row in _ROWS})

ALU_FUNCTIONS: Mapping[str, Operator | TileOperator] = MappingProxyType({**OPERATORS, **COMBINERS, **TILE_OPERATORS})
"""Everything that an `alu` computes."""
