"""Operators on tiles: those of the operator table element by element, and a table of those that exist on tiles only.

A tile is an array [b1, b2] of float64 that nobody writes to. Every operator is defined by the scalar functions of `ops`, applied in a
fixed order: sums of products run over k ascending from the identity 0, each product rounded before it is added (never fused), and
row reductions run over columns ascending from the identity. So tiles and scalars give the same bits, in every simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.ops import OPERATORS, REDUCERS, Operator

Tile: TypeAlias = tuple[int, ...]
"""The shape of a tile: rows and columns; () for a scalar."""
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TileOperator:
    """An operator that exists on tiles only.

    `result` is the shape that it makes of the shapes of its operands, None if it does not take them, which `takes` says in words.
    `work` is the number of multiply-accumulates, or of elements folded; each is `per_work` FLOPs. `unit`: latency class of the machine.
    """

    name: str
    arity: int
    takes: str
    result: Callable[..., Tile | None]
    work: Callable[..., int]
    array: Callable[..., Array]
    per_work: int = 1
    unit: str = "add"


def filled(tile: Tile, value: float) -> Any:
    """An element of the shape `tile` with one value everywhere: a number where `tile` is ()."""
    return _closed(np.full(tile, value, dtype=np.float64)) if tile else value


def each(function: Callable[..., float], *operands: Any) -> Array:
    """A scalar function element by element; columns (b1 x 1) and numbers stand for every column.

    >>> each(lambda a, b: a + b, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[10.0], [20.0]])).tolist()
    [[11.0, 12.0], [23.0, 24.0]]
    """
    arrays = np.broadcast_arrays(*operands)
    values = map(function, *(array.ravel().tolist() for array in arrays))
    return _closed(np.fromiter(values, np.float64, arrays[0].size).reshape(arrays[0].shape))


def result_tile(function: str, tiles: Sequence[Tile]) -> Tile | None:
    """The shape of the result of an operator on streams of elements of shapes `tiles`; None if it does not take these.

    >>> result_tile("matmul", [(2, 3), (3, 4)]), result_tile("add", [(2, 4), (2, 1)]), result_tile("add", [(2, 4), (4, 2)])
    ((2, 4), (2, 4), None)
    """
    if function in TILE_OPERATORS:
        row = TILE_OPERATORS[function]
        return row.result(*tiles) if len(tiles) == row.arity and all(tiles) else None
    widest = max(tiles, default=())
    fits = all(tile == widest or (tile and tile == (widest[0], 1)) for tile in tiles)
    return widest if fits else None


def work(function: str, tiles: Sequence[Tile]) -> int:
    """What an operator has to do on elements of these shapes: multiply-accumulates of a product, else elements."""
    if function in TILE_OPERATORS:
        return TILE_OPERATORS[function].work(*tiles)
    return prod(max(tiles, default=()))


def flops(function: str, tiles: Sequence[Tile]) -> int:
    """FLOPs of an operator on one element of each of these shapes."""
    row = TILE_OPERATORS.get(function)
    return work(function, tiles) * (row.per_work if row else OPERATORS[function].flops)


def _closed(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _matmul(a: Array, b: Array) -> Array:
    """Products a[i, k] * b[k, j] added up from 0 in the order of k."""
    total: Array = filled((a.shape[0], b.shape[1]), REDUCERS["sum"].identity)
    for k in range(a.shape[1]):
        product = each(OPERATORS["mul"].scalar, a[:, k : k + 1], b[k : k + 1, :])
        total = each(REDUCERS["sum"].scalar, total, product)
    return total


def _row(reducer: str) -> Callable[[Array], Array]:
    op = REDUCERS[reducer]

    def fold(a: Array) -> Array:
        total: Array = filled((a.shape[0], 1), op.identity)
        for j in range(a.shape[1]):
            total = each(op.scalar, total, a[:, j : j + 1])
        return total

    return fold


_ROWS = (
    TileOperator(
        "matmul",
        2,
        "tiles of b1 x k and k x b2",
        lambda a, b: (a[0], b[1]) if a[1] == b[0] else None,
        lambda a, b: prod((*a, b[1])),
        _matmul,
        2,
        "mul",
    ),
    TileOperator(
        "matmul_t",
        2,
        "tiles of b1 x k and b2 x k",
        lambda a, b: (a[0], b[0]) if a[1] == b[1] else None,
        lambda a, b: prod((*a, b[0])),
        lambda a, b: _matmul(a, b.T),
        2,
        "mul",
    ),
    TileOperator("row_sum", 1, "a tile", lambda a: (a[0], 1), prod, _row("sum")),
    TileOperator("row_max", 1, "a tile", lambda a: (a[0], 1), prod, _row("max")),
)

TILE_OPERATORS: Mapping[str, TileOperator] = MappingProxyType({row.name: row for row in _ROWS})

FUNCTIONS: Mapping[str, Operator | TileOperator] = MappingProxyType({**OPERATORS, **TILE_OPERATORS})
"""Everything that an `alu` computes."""
