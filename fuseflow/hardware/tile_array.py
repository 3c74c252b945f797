"""Arrays of units: an operator on tiles that takes several cycles, with as many units as the items of one cycle. A table has the work of
each operator, item by item.

An item reads one element of each operand and changes one element of the result. Items come in an order in which neighbours change
different elements, and each element has its items in the order in which the simulators add up or fold. So a product has its loop
over k outside of rows and columns, and a fold of rows its loop over columns outside of rows.

The firing that takes the operands does the first step, directly on the tokens, and keeps them. A helping process does the other
steps, one in each cycle. The elements of the result rotate through a row of registers: each step takes elements at the front and
puts the results at the end. So units are connected to fixed registers, whatever the size of a tile. The number of the step
chooses which elements of the operands they get.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from fuseflow.firing_rules.expressions import NO, YES, Expr, concat, const, count_bits, mux
from fuseflow.firing_rules.rules import Module, Store
from fuseflow.hardware.arithmetic import Arithmetic
from fuseflow.ops import COMBINERS, OPERATORS, reducer
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
    """Return the work of an operator on operands of these shapes (() is a scalar), or None if it has no circuit."""
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


ARRAY = "array"
"""The process that does all steps after the first."""


@dataclass(frozen=True, slots=True)
class TileOperand:
    """An operand of an array: a payload of elements, or a constant. All elements are `absent` where `empty` holds."""

    payload: Expr
    empty: Expr | None = None
    absent: Expr | None = None


class TileArray:
    """The array that does `work` in at most `cycles` cycles. `start` has the elements of the result before the first step.
    Without `start` they are those of the work before, if the array `keeps` them, or the identity of the work. If `fresh` holds in
    the first firing, there is no old value, and an item stores the element that it reads.

    `begun` are the registers after the first firing, and `result` is the result in the last step. An array with one step
    (`steps`) has no helping process: its result is complete in the firing."""

    def __init__(
        self,
        m: Module,
        arithmetic: Arithmetic,
        work: TileWork,
        operands: Sequence[TileOperand],
        cycles: int,
        start: Sequence[Expr] = (),
        keeps: bool = False,
        fresh: Expr = NO,
    ) -> None:
        self.m, self.work, self.width, self.keeps = m, work, arithmetic.width, keeps
        self.lanes = work.items if work.moves else -(-work.items // cycles)
        self.steps = -(-work.items // self.lanes)
        self.step = m.register("step", count_bits(self.steps)) if self.steps > 1 else const(0, 1)
        self.first = self.step.is_(0) if self.steps > 1 else YES
        self.begun: dict[str, Expr | int] = {}
        self.chosen: dict[tuple[int, int, int], Expr] = {}
        identity = const(0 if work.identity is None else arithmetic.word(work.identity), self.width)
        row, fresh = self._row(identity, start), self.kept("fresh", fresh)
        for lane, elements in enumerate(zip(*(self._operand(k, x) for k, x in enumerate(operands)), strict=True)):
            combined = work.combine(row[lane], elements)
            row.append(combined if fresh is NO else mux(fresh, elements[0], combined))
        tail = work.items - (self.steps - 1) * self.lanes
        self.turned, self.aligned = (row[behind : behind + work.results] for behind in (self.lanes, tail))
        self.result = concat(*reversed(self.aligned))
        if self.steps > 1:
            self.begun |= {"step": 1, **self._elements(self.turned)}
        elif keeps:
            self.begun |= self._elements(self.aligned)

    @property
    def total(self) -> Expr:
        """The result of all work so far, for an array that keeps its result."""
        return concat(*reversed([Expr("register", (), self.width, name) for name in self._elements(self.aligned)]))

    @property
    def emptied(self) -> dict[str, Expr | int]:
        """The registers of an array that keeps its result, once the result is emitted: the values of the start."""
        return {name: self.m.registers[name].initial for name in self._elements(self.aligned)}

    def kept(self, name: str, value: Expr) -> Expr:
        """Return an expression that keeps in every step what `value` had in the first firing, by a register `name` if needed."""
        if self.steps == 1 or value.op == "const":
            return value
        register = self.m.register(name, value.width)
        self.begun[name] = value
        return mux(self.first, value, register)

    def rules(self, late: Mapping[str, Expr] | None = None, stores: Sequence[Store] = ()) -> None:
        """Add the rules of the steps after the first. The last step emits the tokens `late`, with `stores`."""
        if self.steps == 1:
            return
        self.m.helper(ARRAY)
        ends = self.step.is_(self.steps - 1)
        if self.steps > 2:
            sets = {"step": self.step + 1, **self._elements(self.turned)}
            self.m.rule("steps", ~self.first & ~ends, sets=sets, on=ARRAY)
        kept = self._elements(self.aligned) if self.keeps else {}
        self.m.rule("last step", ends, sets={"step": 0, **kept}, stores=stores, late=late, on=ARRAY)

    def _row(self, identity: Expr, start: Sequence[Expr]) -> list[Expr]:
        """Return the elements of the result before a step, from the identity, `start` or registers."""
        if not self.keeps and self.steps == 1:
            return [*start] or [identity] * self.work.results
        initial = identity.number if self.keeps else 0
        registers = [self.m.register(f"element{k}", self.width, initial) for k in range(self.work.results)]
        if self.keeps or (not start and self.work.identity is None):
            return list[Expr](registers)
        start = start or [identity] * self.work.results
        return [mux(self.first, begin, register) for begin, register in zip(start, registers, strict=True)]

    def _operand(self, number: int, operand: TileOperand) -> list[Expr]:
        """Return the elements of operand `number` that the units get in a step, one for each unit."""
        payload, reads, width = operand.payload, self.work.reads[number], self.width
        if payload.op == "const":
            return [payload] * self.lanes
        sources = [payload]
        if self.steps > 1:
            sources.append(self.m.register(f"operand{number}", payload.width))
            self.begun[f"operand{number}"] = payload
        elements = [[source.bits(width * k, width) for k in range(payload.width // width)] for source in sources]
        empty = None if operand.empty is None else self.kept(f"empty{number}", operand.empty)
        lanes = []
        for lane in range(self.lanes):
            items = range(lane, self.work.items, self.lanes)
            element = self._choice([elements[step > 0][reads(item)] for step, item in enumerate(items)])
            lanes.append(element if empty is None or operand.absent is None else mux(empty, operand.absent, element))
        return lanes

    def _choice(self, choices: Sequence[Expr]) -> Expr:
        """Return the expression of `choices` whose index is the number of the step. Equal choices share their logic."""
        row = list(choices)
        for bit in range(self.step.width):
            row = [self._either(bit, *row[k : k + 2]) for k in range(0, len(row), 2)]
        return row[0]

    def _either(self, bit: int, no: Expr, yes: Expr | None = None) -> Expr:
        key = bit, id(no), id(yes)
        if yes is None:
            return no
        if key not in self.chosen:
            self.chosen[key] = mux(self.step.bits(bit, 1), yes, no)
        return self.chosen[key]

    def _elements(self, row: Sequence[Expr]) -> dict[str, Expr | int]:
        return {f"element{k}": element for k, element in enumerate(row)}
