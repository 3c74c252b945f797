"""Operators on tiles: shapes, values against NumPy, the order of summation, special values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fuseflow.ops import COMBINERS, OPERATORS, REDUCERS
from fuseflow.tile_ops import (
    ALU_FUNCTIONS,
    TILE_FOLDS,
    TILE_OPERATORS,
    constant_tile,
    flops,
    map_elements,
    result_shape,
    work_count,
)

sides = st.integers(1, 4)
numbers = st.floats(-1e3, 1e3)


def as_it_is(values: Any) -> Any:
    """How arithmetic in 64 bits rounds."""
    return values


def tiles(rows: int, columns: int, elements: st.SearchStrategy[float] = numbers) -> st.SearchStrategy[Any]:
    return arrays(np.float64, (rows, columns), elements=elements)


@given(st.data(), sides, sides, sides)
def test_products_add_up_over_k_in_order(data: st.DataObject, rows: int, inner: int, columns: int) -> None:
    a, b = data.draw(tiles(rows, inner)), data.draw(tiles(inner, columns))
    found = np.reshape(TILE_OPERATORS["matmul"].array(as_it_is, a, b), (rows, columns))
    for i in range(rows):
        for j in range(columns):
            total = 0.0
            for k in range(inner):
                product = float(a[i, k]) * float(b[k, j])
                total = total + product
            assert found[i, j] == total
    np.testing.assert_array_equal(np.reshape(TILE_OPERATORS["matmul_t"].array(as_it_is, a, b.T), (rows, columns)), found)


def test_the_order_of_products_shows_in_the_bits() -> None:
    a, b = np.array([[1e16, 1.0, -1e16]]), np.ones((3, 1))
    assert TILE_OPERATORS["matmul"].array(as_it_is, a, b) == 0.0  # (1e16 + 1) - 1e16, not (1e16 - 1e16) + 1
    x = 1.0 + 2.0**-30
    a, b = np.array([[x * x, x]]), np.array([[-1.0], [x]])  # a fused multiply-add gives the rounding error of x * x
    assert TILE_OPERATORS["matmul"].array(as_it_is, a, b) == 0.0


def test_a_zero_annihilates_in_a_product() -> None:
    a, b = np.array([[0.0, 2.0]]), np.array([[math.inf], [3.0]])
    assert TILE_OPERATORS["matmul"].array(as_it_is, a, b) == 6.0


@given(st.data(), st.sampled_from(sorted(TILE_FOLDS)), sides, sides)
def test_folds_run_over_columns_or_rows_in_order(data: st.DataObject, name: str, rows: int, columns: int) -> None:
    a = data.draw(tiles(rows, columns))
    reducer, axis = TILE_FOLDS[name]
    found, op = TILE_OPERATORS[name].array(as_it_is, a), REDUCERS[reducer]
    wanted = []
    for line in a if axis == 1 else a.T:
        total = op.identity
        for value in line.tolist():
            total = op.scalar(total, value)
        wanted.append(total)
    assert np.shape(found) == result_shape(name, [a.shape])
    assert np.ravel(found).tolist() == wanted
    assert (name.startswith("row") and len(wanted) == rows) or (name.startswith("col") and len(wanted) == columns)


@given(sides, sides)
def test_transpose(rows: int, columns: int) -> None:
    a = np.arange(rows * columns, dtype=float).reshape(rows, columns)
    found = TILE_OPERATORS["transpose"].array(as_it_is, a)
    assert found.shape == result_shape("transpose", [a.shape]) == (columns, rows)
    assert found.ravel().tolist() == [a[i, j] for j in range(columns) for i in range(rows)]


def test_what_is_left_as_one_element_is_a_number() -> None:
    row, column = np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])
    assert (
        TILE_OPERATORS["matmul"].array(as_it_is, row, column) == 11.0 == TILE_OPERATORS["matmul_t"].array(as_it_is, row, column.T)
    )
    assert TILE_OPERATORS["row_max"].array(as_it_is, row) == 2.0 and TILE_OPERATORS["col_prod"].array(as_it_is, column) == 12.0
    assert TILE_OPERATORS["col_prod"].array(as_it_is, row).tolist() == [[1.0, 2.0]]
    assert (
        result_shape("matmul", [(1, 2), (2, 1)]) == result_shape("row_sum", [(1, 2)]) == result_shape("col_sum", [(1, 1)]) == ()
    )


@given(st.data(), st.sampled_from(sorted(OPERATORS)), sides, sides)
def test_elementwise_is_the_scalar_operator(data: st.DataObject, name: str, rows: int, columns: int) -> None:
    op = OPERATORS[name]
    shapes = [data.draw(st.sampled_from([(rows, columns), (rows, 1), (1, columns), (1, 1), ()])) for _ in range(op.arity)]
    operands = [data.draw(tiles(*shape, st.floats()) if shape else st.floats()) for shape in shapes]
    result = result_shape(name, shapes)
    assert result == (np.broadcast_shapes(*shapes))
    if not result:
        return
    found = map_elements(op.scalar, *operands)
    assert found.shape == result
    for i, j in np.ndindex(*found.shape):
        wanted = op.scalar(*(float(np.broadcast_to(x, result)[i, j]) for x in operands))
        np.testing.assert_equal(found[i, j], wanted)


@pytest.mark.parametrize(
    ("name", "shapes", "result"),
    [
        ("matmul", [(2, 3), (3, 4)], (2, 4)),
        ("matmul", [(2, 3), (4, 3)], None),
        ("matmul", [(), ()], None),
        ("matmul", [(2, 3), ()], None),
        ("matmul_t", [(2, 3), (4, 3)], (2, 4)),
        ("matmul_t", [(2, 3), (3, 4)], None),
        ("row_sum", [(2, 3)], (2, 1)),
        ("row_max", [()], None),
        ("row_max", [(1, 3)], ()),
        ("col_min", [(2, 3)], (1, 3)),
        ("transpose", [(2, 3)], (3, 2)),
        ("transpose", [(1, 1)], (1, 1)),
        ("transpose", [()], None),
        ("matmul", [(1, 3), (3, 1)], ()),
        ("add", [(2, 3), (2, 3)], (2, 3)),
        ("sub", [(2, 1), (2, 3)], (2, 3)),
        ("where", [(2, 1), (2, 3), (2, 1)], (2, 3)),
        ("mul", [(3, 1), (3, 1)], (3, 1)),
        ("mul", [(1, 3), (2, 3)], (2, 3)),
        ("mul", [(2, 1), (1, 3)], (2, 3)),
        ("mul", [(1, 1), (2, 3)], (2, 3)),
        ("mul", [(1, 1), ()], (1, 1)),
        ("where", [(), (2, 1), (1, 1)], (2, 1)),
        ("mul", [(3, 1), (2, 3)], None),
        ("mul", [(1, 2), (2, 3)], None),
        ("mul", [(2, 2), (2, 3)], None),
        ("where", [(2, 1), (1, 3), (3, 1)], None),
        ("mul", [(2, 3), ()], (2, 3)),
        ("mul", [(), ()], ()),
    ],
)
def test_forms_are_chosen_by_type(name: str, shapes: list[tuple[int, ...]], result: tuple[int, ...] | None) -> None:
    assert result_shape(name, shapes) == result


def test_work_and_flops() -> None:
    assert (work_count("matmul", [(2, 3), (3, 4)]), flops("matmul", [(2, 3), (3, 4)])) == (24, 48)
    assert (work_count("matmul_t", [(2, 3), (4, 3)]), flops("matmul_t", [(2, 3), (4, 3)])) == (24, 48)
    assert (work_count("row_sum", [(2, 3)]), flops("row_sum", [(2, 3)])) == (6, 6)
    assert (work_count("mul", [(2, 1), (2, 3)]), flops("mul", [(2, 1), (2, 3)]), flops("copy", [(2, 3)])) == (6, 6, 0)
    assert (work_count("add", [(2, 1), (1, 3)]), flops("add", [(2, 1), ()]), flops("where", [(2, 1), (), ()])) == (6, 2, 0)
    assert (work_count("transpose", [(2, 3)]), flops("transpose", [(2, 3)]), flops("col_max", [(2, 3)])) == (6, 0, 6)
    assert (work_count("mul", [(), ()]), flops("mul", [(), ()])) == (1, 1)


def test_nobody_writes_to_a_tile() -> None:
    for tile in (
        constant_tile((2, 2), 1.0),
        map_elements(lambda a: a, np.zeros((2, 2))),
        TILE_OPERATORS["matmul"].array(as_it_is, np.eye(2), np.eye(2)),
    ):
        with pytest.raises(ValueError, match="read-only"):
            tile[0, 0] = 5.0
    assert constant_tile((), 1.5) == 1.5


def test_tile_operators_are_no_pointwise_operators() -> None:
    assert not TILE_OPERATORS.keys() & OPERATORS.keys()
    assert ALU_FUNCTIONS.keys() == TILE_OPERATORS.keys() | OPERATORS.keys() | COMBINERS.keys()
