"""The work of each operator on tiles, item by item: a table that an array of units (`tile_array.py`) executes.

An item reads one element of each operand and changes one element of the result. Items come in an order in which neighbours change
different elements, and each element has its items in the order in which the simulators add up or fold. So a product has its loop
over k outside of rows and columns, and a fold of rows its loop over columns outside of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from fuseflow.hardware.arithmetic import Arithmetic
from fuseflow.ops import COMBINERS, OPERATORS, reducer
from fuseflow.rules.expressions import Expr
from fuseflow.tile_ops import TILE_FOLDS, TileShape, broadcast_shape

Combine: TypeAlias = Callable[[Expr, Sequence[Expr]], Expr]
"""A function from an element of the result, and the elements that an item reads, to the new element of the result."""


@dataclass(frozen=True, slots=True)
class TileWork:
    """The `items` of an operator, in their order: item w changes element w % `results` of the result. `reads` maps, for each
    operand, an item to the element that it reads. Elements begin with `identity`, or without a value if None. Work that only
    `moves` elements needs no unit."""

    results: int
    items: int
    reads: tuple[Callable[[int], int], ...]
    combine: Combine
    identity: float | None = None
    moves: bool = False


Row: TypeAlias = Callable[[Arithmetic, Sequence[TileShape]], TileWork]
"""A function from an arithmetic and the shapes of operands to the work of an operator."""


def tile_work(function: str, arithmetic: Arithmetic, tiles: Sequence[TileShape]) -> TileWork | None:
    """Return the work of an operator on operands of these shapes, or None if the operator has no circuit. The shape () is a
    scalar."""
    if function in OPERATORS or function in COMBINERS:
        return _elementwise(function, arithmetic, tiles)
    row = TILE_WORK.get(function)
    return row(arithmetic, tiles) if row else None


def fold_work(function: str, arithmetic: Arithmetic, tile: TileShape) -> TileWork:
    """Return the work of a reduction of tiles, element by element: one tile is folded into another."""
    count = prod(tile)
    return TileWork(count, count, (lambda w: w,), _fold(function, arithmetic), reducer(function).identity)


def copy_work(tile: TileShape) -> TileWork:
    """Return the work that copies a tile."""
    count = prod(tile)
    return TileWork(count, count, (lambda w: w,), lambda _, elements: elements[0], moves=True)


def _fold(function: str, arithmetic: Arithmetic) -> Combine:
    return lambda total, elements: arithmetic.apply(f"fold_{function}", total, elements[0])


def _elementwise(function: str, arithmetic: Arithmetic, tiles: Sequence[TileShape]) -> TileWork:
    shape = broadcast_shape(tiles)
    assert shape is not None, "the verifier knows which shapes fit"
    reads = tuple(_broadcast(tile, shape) for tile in tiles)
    if function == "copy":
        return TileWork(prod(shape), prod(shape), reads, lambda _, elements: elements[0], moves=True)
    return TileWork(prod(shape), prod(shape), reads, lambda _, elements: arithmetic.apply(function, *elements))


def _broadcast(tile: TileShape, shape: TileShape) -> Callable[[int], int]:
    """Return a function from an element of a shape to the element of a tile that is broadcast to it. A single row or column, or a
    scalar, is broadcast."""
    if prod(tile) == 1:
        return lambda w: 0
    (rows, columns), width = tile, shape[1]
    return lambda w: w // width % rows * columns + w % width % columns


def _product(transposed: bool) -> Row:
    def work(arithmetic: Arithmetic, tiles: Sequence[TileShape]) -> TileWork:
        (rows, depth), other = tiles
        columns = other[0] if transposed else other[1]
        count = rows * columns

        def right(w: int) -> int:
            k, column = w // count, w % columns
            return column * depth + k if transposed else k * columns + column

        def combine(total: Expr, elements: Sequence[Expr]) -> Expr:
            return arithmetic.apply("fold_sum", total, arithmetic.apply("mul", *elements))

        reads = (lambda w: w % count // columns * depth + w // count), right
        return TileWork(count, count * depth, reads, combine, reducer("sum").identity)

    return work


def _transpose(arithmetic: Arithmetic, tiles: Sequence[TileShape]) -> TileWork:
    ((rows, columns),) = tiles
    reads = ((lambda w: w % rows * columns + w // rows),)
    return TileWork(rows * columns, rows * columns, reads, lambda _, elements: elements[0], moves=True)


def _folds(function: str, axis: int) -> Row:
    def work(arithmetic: Arithmetic, tiles: Sequence[TileShape]) -> TileWork:
        ((rows, columns),) = tiles
        combine, identity = _fold(function, arithmetic), reducer(function).identity
        if axis == 0:
            return TileWork(columns, rows * columns, (lambda w: w,), combine, identity)
        return TileWork(rows, rows * columns, ((lambda w: w % rows * columns + w // rows),), combine, identity)

    return work


TILE_WORK: Mapping[str, Row] = {
    "matmul": _product(transposed=False),
    "matmul_t": _product(transposed=True),
    "transpose": _transpose,
    **{name: _folds(*fold) for name, fold in TILE_FOLDS.items()},
}
"""The work of operators that exist on tiles only, by name."""
