"""Alu on tiles: an operator of the table element by element, products of matrices, folds of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from fuseflow.ops import operator, reducer
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.jit import ELEMENTWISE, Function, call_elementwise, specialize
from fuseflow.sim.engine.kernels.pointwise import NO_INPUT, elementwise, give, inputs_of, look, pass_control, scalar
from fuseflow.sim.engine.memory import Record, get_float, inline, set_float
from fuseflow.sim.engine.nodes import node_at, source, target
from fuseflow.sim.engine.place import Part, Place, words
from fuseflow.sim.engine.streams import REPEATED, SCRATCH, SLICE, WORD_OFFSET, element, head_address, head_run, scratch
from fuseflow.tile_ops import TILE_OPERATORS, Tile

TILES = Record(
    "function calls count "
    "input0 input1 input2 value0 value1 value2 stride0 stride1 stride2 step0 step1 step2"
)  # fmt: skip
"""How often the operator is called for a token (0: once for all), and for how many results. Of each operand slot: which input feeds it,
the address of its constant or of what `N` stands for, words from one value of a call to the next, and from one call to the next."""
SHAPE = Record("rows inner columns down across", floats="identity")
"""What an operator that exists on tiles only is told in place of a third operand: the sizes of its loops, the value that its sums start
from, and in a product the words from one row of the second matrix to the next, and from one column to the next."""
tiles_at, shape_at = TILES.at, SHAPE.at


def on_tiles(node: n.Alu, place: Place) -> bool:
    return node.function in TILE_OPERATORS or any(words(type_.tile) > 1 for type_ in place.types)


def alu_on_tiles(node: n.Alu, place: Place) -> list[Part]:
    tiles = [type_.tile for type_ in place.types]
    (result,) = node.outputs(place.types)
    if node.function in TILE_OPERATORS:
        function = tile_operator(node.function)
        state: dict[str, float] = {"calls": 1, "count": words(result.tile)}
        steps = [(0, words(tile)) for tile in tiles]
    else:
        function = elementwise(node.function)
        rows, columns = result.tile
        split = any(tile != result.tile for tile in tiles)  # columns stand beside tiles
        state = {"calls": rows, "count": columns} if split else {"calls": 0, "count": words(result.tile)}
        steps = [(1, columns) if tile == result.tile else (0, 1) for tile in tiles]
    for slot, (q, value) in enumerate(inputs_of(node)):
        state[f"input{slot}"] = q
        state[f"value{slot}"] = place.filled(() if q == NO_INPUT else tiles[q], value)
        state[f"stride{slot}"], state[f"step{slot}"] = (0, 0) if q == NO_INPUT else steps[q]
    if node.function in TILE_OPERATORS:
        state["value2"] = place.array(place.state(SHAPE, **_shape(node.function, tiles, result.tile)))
    state["function"] = place.library.address(function, ELEMENTWISE)
    return place.part(run_alu_on_tiles, place.state(TILES, **state))


def _shape(name: str, tiles: Sequence[Tile], result: Tile) -> dict[str, float]:
    rows, columns = result
    inner = tiles[0][1]
    down, across = (1, inner) if name == "matmul_t" else (columns, 1)
    identity = reducer(_REDUCERS[name]).identity
    return {"rows": rows, "inner": inner, "columns": columns, "down": down, "across": across, "identity": identity}


_REDUCERS = {"matmul": "sum", "matmul_t": "sum", "row_sum": "sum", "row_max": "max"}


@cache
def tile_operator(name: str) -> Function:
    """The operator on tiles at addresses. A transposed matrix is one with other words between its rows and columns."""
    total = reducer(_REDUCERS[name]).scalar
    if name in ("matmul", "matmul_t"):
        return specialize(_product, "tiles_product", total=total, times=scalar(operator("mul")))
    return specialize(_rows, f"tiles_{name}", total=total)


def run_alu_on_tiles(address: int) -> int:
    """One firing a token: all operands are looked at and taken together."""
    node = node_at(address)
    s = tiles_at(node.state)
    out = target(node, 0)
    while True:
        k, seen, controls = look(node)
        if k == 0:
            return 0
        if controls > 0:
            if not pass_control(node, seen):
                return 0
            continue
        a, sa, ta = _operand(node, s.input0, s.value0, s.stride0, s.step0)
        b, sb, tb = _operand(node, s.input1, s.value1, s.stride1, s.step1)
        c, sc, tc = _operand(node, s.input2, s.value2, s.stride2, s.step2)
        into, calls, count = scratch(out), s.calls * k, s.count
        if calls == 0:
            calls, count = 1, count * k
        for i in range(calls):
            call_elementwise(s.function, into + 8 * count * i, count, a + ta * i, sa, b + tb * i, sb, c + tc * i, sc)
        give(node, seen, SCRATCH, into, k)


@inline
def _operand(node: Any, q: int, value: int, stride: int, step: int) -> tuple[int, int, int]:
    """Address of an operand's next values, their stride, and the bytes to those of the next call."""
    if q == NO_INPUT:
        return value, 0, 0
    reader = source(node, q)
    run = head_run(reader)
    if run.kind >= SLICE:
        return element(reader), stride, 8 * step
    if run.kind == REPEATED:
        return head_address(reader) + WORD_OFFSET, 0, 0
    return value, 0, 0


def total(a: float, b: float) -> float:
    """Stands for the sum or another reduction in the templates below."""
    raise NotImplementedError


def times(a: float, b: float) -> float:
    raise NotImplementedError


def _product(out: int, k: int, a: int, sa: int, b: int, sb: int, shape: int, _: int) -> int:
    s = shape_at(shape)
    for i in range(s.rows):
        row = out + 8 * s.columns * i
        for j in range(s.columns):
            set_float(row, j, s.identity)
        for q in range(s.inner):
            x, start = get_float(a, s.inner * i + q), b + 8 * s.down * q
            for j in range(s.columns):
                set_float(row, j, total(get_float(row, j), times(x, get_float(start, s.across * j))))
    return 0


def _rows(out: int, k: int, a: int, sa: int, b: int, sb: int, shape: int, _: int) -> int:
    s = shape_at(shape)
    for i in range(s.rows):
        value = s.identity
        for j in range(s.inner):
            value = total(value, get_float(a, s.inner * i + j))
        set_float(out, i, value)
    return 0
