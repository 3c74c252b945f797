"""The primitive `alu` is a pointwise operator on aligned values. On tiles, it applies an operator of the table element by element,
multiplies or transposes matrices, or folds rows or columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from fuseflow.float32.operator_precision import Arithmetic
from fuseflow.native.kernel_library import specialize
from fuseflow.native.records import Record, get_float, get_int, inline, set_float
from fuseflow.native.signatures import ELEMENTWISE, Function, call_elementwise
from fuseflow.ops import reducer
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.elementwise_functions import (
    NO_INPUT,
    elementwise,
    kernel_name,
    look_at_operands,
    operand_inputs,
    operator_function,
    push_results,
    round_values,
    step_function,
)
from fuseflow.sim.engine.node_firing import close, node_at, pass_control, source, target
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part, word_count
from fuseflow.sim.engine.stream_rings import (
    REPEATED,
    SCRATCH,
    SLICE,
    WORD_OFFSET,
    element_address,
    head_address,
    head_run,
    scratch_address,
)
from fuseflow.tile_ops import TILE_FOLDS, TILE_OPERATORS, TileShape

ALU = Record("function input0 input1 input2 sums behind", floats="value0 value1 value2")
"""Each operand slot has the input that feeds it (NO_INPUT: none), and its constant or the value of an `N`. `sums` says whether a
firing follows on a stop that is not behind a value, as on sums on `comal`, and `behind` whether the last token was a value."""
state_at = ALU.at
VALUE0, VALUE1, VALUE2 = (ALU.offset(f"value{slot}") for slot in range(3))


def alu(node: n.Alu, layout: NodeLayout) -> list[Part]:
    if node.function in TILE_OPERATORS or any(word_count(type_.tile) > 1 for type_ in layout.types):
        return _alu_on_tiles(node, layout)
    state: dict[str, float] = {
        "function": layout.library.address(elementwise(node.function, layout.arithmetic), ELEMENTWISE),
        "sums": layout.sums,
    }
    for slot, (q, value) in enumerate(operand_inputs(node)):
        state[f"input{slot}"], state[f"value{slot}"] = q, value
    return layout.part(run_alu, layout.state(ALU, **state))


def run_alu(address: int) -> int:
    """Run the part at an address: fire once for each token, and take one token of every operand together."""
    node = node_at(address)
    s = state_at(node.state)
    out = target(node, 0)
    while True:
        k, visible_at, controls = look_at_operands(node)
        if k == 0:
            return 0
        if controls > 0:
            if not pass_control(node, head_run(source(node, 0)).word, visible_at, out.free):
                return 0
            if s.sums > s.behind:
                close(node, 0, 0)
            s.behind = 0
            continue
        s.behind = 1
        a, sa = _operand(node, s.input0, node.state + VALUE0)
        b, sb = _operand(node, s.input1, node.state + VALUE1)
        c, sc = _operand(node, s.input2, node.state + VALUE2)
        kind, word = SCRATCH, scratch_address(out)
        varies = sa + sb + sc > 0
        call_elementwise(s.function, word, k if varies else 1, a, sa, b, sb, c, sc)
        if not varies:
            kind, word = REPEATED, get_int(word, 0)
        push_results(node, visible_at, kind, word, k)


@inline
def _operand(node: Any, q: int, constant: int) -> tuple[int, int]:
    """Return the address of the next values of input q (or of `constant`, for no input or `N`) and their stride (0: one value for all)."""
    if q == NO_INPUT:
        return constant, 0
    reader = source(node, q)
    run = head_run(reader)
    if run.kind >= SLICE:
        return run.word + 8 * reader.offset, 1
    if run.kind == REPEATED:
        return head_address(reader) + WORD_OFFSET, 0
    return constant, 0


TILES = Record(
    "function calls count size "
    "input0 input1 input2 value0 value1 value2 stride0 stride1 stride2 step0 step1 step2 size0 size1 size2"
)  # fmt: skip
"""`calls` says how often the operator is called for a token (0: once for all tokens), and `count` for how many results. Each
operand slot has the input that feeds it, the address of its constant or of its value for `N`, and the words from one value of a
call to the next (`stride`) and from one call to the next (`step`). `size` is the number of words of a token, of the result and of
each operand."""
SHAPE = Record("rows inner columns down across buffer", floats="identity")
"""An operator that exists on tiles only gets this record in place of a third operand. It has the sizes of the loops, the value
that folds start from, and the words from one row to the next (`down`), and from one column to the next (`across`), of the second
matrix of a product, or of a folded one. In `buffer` a product transposes its second matrix, if it must."""
tiles_at, shape_at = TILES.at, SHAPE.at


def _alu_on_tiles(node: n.Alu, layout: NodeLayout) -> list[Part]:
    tiles = [type_.tile for type_ in layout.types]
    (result,) = node.outputs(layout.types)
    state: dict[str, float] = {"calls": 1, "count": word_count(result.tile), "size": word_count(result.tile)}
    if node.function in TILE_OPERATORS:
        function = tile_operator(node.function, layout.arithmetic)
        strides = [(0, 0)] * len(tiles)
        shape = _shape(node.function, tiles)
        shape["buffer"] = layout.buffer(np.float64, word_count(tiles[1])) if node.function == "matmul_t" else 0
        state["value2"] = layout.array(layout.state(SHAPE, **shape))
    elif all(tile == result.tile for tile in tiles):
        function = elementwise(node.function, layout.arithmetic)
        strides = [(1, 0)] * len(tiles)
        state["calls"] = 0
    else:
        function = elementwise(node.function, layout.arithmetic)
        strides = [_broadcast(tile, result.tile) for tile in tiles]
        state["calls"], state["count"] = result.tile
    for slot, (q, value) in enumerate(operand_inputs(node)):
        state[f"input{slot}"] = q
        if q != NO_INPUT:
            state[f"value{slot}"] = layout.constant_element(tiles[q], value)
            state[f"stride{slot}"], state[f"step{slot}"] = strides[q]
            state[f"size{slot}"] = word_count(tiles[q])
        elif slot < len(node.operands):
            state[f"value{slot}"] = layout.constant_element((), value)
    state["function"] = layout.library.address(function, ELEMENTWISE)
    return layout.part(run_alu_on_tiles, layout.state(TILES, **state))


def _broadcast(tile: TileShape, result: TileShape) -> tuple[int, int]:
    """Return the words from one value of a row to the next, and from one row to the next, for an operand whose single row or
    column is broadcast over the result."""
    rows, columns = tile or (1, 1)
    return int(columns == result[1]) if columns > 1 else 0, columns if rows > 1 else 0


def _shape(name: str, tiles: Sequence[TileShape]) -> dict[str, float]:
    """Return the fields of `SHAPE` for an operator on tiles. A transposed matrix has `down` and `across` exchanged; columns are
    folded as the rows of the transposed matrix."""
    rows, inner = tiles[0]
    if name == "matmul_t":
        return {"rows": rows, "inner": inner, "columns": tiles[1][0], "down": 1, "across": inner, "identity": _SUM.identity}
    if name == "matmul":
        columns = tiles[1][1]
        return {"rows": rows, "inner": inner, "columns": columns, "down": columns, "across": 1, "identity": _SUM.identity}
    if name == "transpose":
        return {"rows": inner, "inner": rows, "down": 1, "across": inner}
    fold, axis = TILE_FOLDS[name]
    loops = (
        {"rows": rows, "inner": inner, "down": inner, "across": 1}
        if axis == 1
        else {"rows": inner, "inner": rows, "down": 1, "across": inner}
    )
    return {**loops, "identity": reducer(fold).identity}


_SUM = reducer("sum")


@cache
def tile_operator(name: str, arithmetic: Arithmetic) -> Function:
    """Return the kernel of the tile operator `name`. In the arithmetic `rounded` only the results are rounded, not the steps."""
    if arithmetic == "rounded":
        exact = tile_operator(name, "f64")
        return (
            specialize(_rounded, kernel_name(exact.__qualname__, arithmetic), exact=exact)
            if TILE_OPERATORS[name].rounds
            else exact
        )
    if name in ("matmul", "matmul_t"):
        total, times = step_function("sum", arithmetic), operator_function("mul", arithmetic)
        return specialize(_product, kernel_name("tiles_product", arithmetic), total=total, times=times)
    if name == "transpose":
        return _transpose
    fold, _ = TILE_FOLDS[name]
    return specialize(_fold, kernel_name(f"tiles_fold_{fold}", arithmetic), total=step_function(fold, arithmetic))


def run_alu_on_tiles(address: int) -> int:
    """Run the part: fire once for each token, and take one token of every operand together."""
    node = node_at(address)
    s = tiles_at(node.state)
    out = target(node, 0)
    while True:
        k, visible_at, controls = look_at_operands(node)
        if k == 0:
            return 0
        if controls > 0:
            if not pass_control(node, head_run(source(node, 0)).word, visible_at, out.free):
                return 0
            continue
        a, sa, ta, na = _tile_operand(node, s.input0, s.value0, s.stride0, s.step0, s.size0)
        b, sb, tb, nb = _tile_operand(node, s.input1, s.value1, s.stride1, s.step1, s.size1)
        c, sc, tc, nc = _tile_operand(node, s.input2, s.value2, s.stride2, s.step2, s.size2)
        into = scratch_address(out)
        if s.calls == 0:
            call_elementwise(s.function, into, s.count * k, a, sa, b, sb, c, sc)
        else:
            for i in range(k):
                first = into + 8 * s.size * i
                for j in range(s.calls):
                    x, y, z = a + na * i + ta * j, b + nb * i + tb * j, c + nc * i + tc * j
                    call_elementwise(s.function, first + 8 * s.count * j, s.count, x, sa, y, sb, z, sc)
        push_results(node, visible_at, SCRATCH, into, k)


@inline
def _tile_operand(node: Any, q: int, value: int, stride: int, step: int, size: int) -> tuple[int, int, int, int]:
    """Return the address of the next values of input q, their stride, and the bytes to the values of the next call and of the
    next token. `value` is the address for no input or `N`."""
    if q == NO_INPUT:
        return value, 0, 0, 0
    reader = source(node, q)
    run = head_run(reader)
    if run.kind >= SLICE:
        return element_address(reader), stride, 8 * step, 8 * size
    if run.kind == REPEATED:
        return head_address(reader) + WORD_OFFSET, 0, 0, 0
    return value, 0, 0, 0


def total(a: float, b: float) -> float:
    """Placeholder of the sum, or of another reduction, in the templates below."""
    raise NotImplementedError


def times(a: float, b: float) -> float:
    """Placeholder of the multiplication in the templates below."""
    raise NotImplementedError


def _product(out: int, k: int, a: int, sa: int, b: int, sb: int, shape: int, _: int) -> int:
    """Compute a matrix product row by row. The innermost loop runs over the columns of the result, so that it can be vectorized:
    each sum keeps its order. Four products are added each time that a sum is loaded."""
    s = shape_at(shape)
    rows, inner, columns, start = s.rows, s.inner, s.columns, s.identity  # not loaded again behind every store
    if s.across != 1:
        _transpose_into(s.buffer, b, inner, columns)
        b = s.buffer
    width = 8 * columns
    for i in range(rows):
        row, left = out + width * i, a + 8 * inner * i
        for j in range(columns):
            set_float(row, j, start)
        for q in range(0, inner - 3, 4):
            v, w, x, y = get_float(left, q), get_float(left, q + 1), get_float(left, q + 2), get_float(left, q + 3)
            line = b + width * q
            for j in range(columns):
                value = total(get_float(row, j), times(v, get_float(line, j)))
                value = total(value, times(w, get_float(line + width, j)))
                value = total(value, times(x, get_float(line + 2 * width, j)))
                set_float(row, j, total(value, times(y, get_float(line + 3 * width, j))))
        for q in range(inner - inner % 4, inner):
            v, line = get_float(left, q), b + width * q
            for j in range(columns):
                set_float(row, j, total(get_float(row, j), times(v, get_float(line, j))))
    return 0


@inline
def _transpose_into(into: int, start: int, rows: int, columns: int) -> None:
    """Write the transpose of the tile at `start` to the address `into`. The transpose has `rows` rows and `columns` columns."""
    for i in range(rows):
        for j in range(columns):
            set_float(into, columns * i + j, get_float(start, rows * j + i))


def exact(out: int, k: int, a: int, sa: int, b: int, sb: int, shape: int, _: int) -> int:
    """Placeholder of the operator in the template below."""
    raise NotImplementedError


def _rounded(out: int, k: int, a: int, sa: int, b: int, sb: int, shape: int, _: int) -> int:
    exact(out, k, a, sa, b, sb, shape, _)
    round_values(out, k)
    return 0


def _fold(out: int, k: int, a: int, sa: int, b: int, sb: int, shape: int, _: int) -> int:
    s = shape_at(shape)
    for i in range(s.rows):
        value = s.identity
        for j in range(s.inner):
            value = total(value, get_float(a, s.down * i + s.across * j))
        set_float(out, i, value)
    return 0


def _transpose(out: int, k: int, a: int, sa: int, b: int, sb: int, shape: int, _: int) -> int:
    s = shape_at(shape)
    for i in range(s.rows):
        for j in range(s.inner):
            set_float(out, s.inner * i + j, get_float(a, s.down * i + s.across * j))
    return 0


RULES: dict[type[n.Node], LayoutRule] = {n.Alu: alu}
