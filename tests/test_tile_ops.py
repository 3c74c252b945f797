"""Operators on tiles: shapes, values against NumPy, the order of summation, special values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.tile_ops import FUNCTIONS, TILE_OPERATORS, each, filled, flops, result_tile, work

sides = st.integers(1, 4)
numbers = st.floats(-1e3, 1e3)


def tiles(rows: int, columns: int, elements: st.SearchStrategy[float] = numbers) -> st.SearchStrategy[Any]:
    return arrays(np.float64, (rows, columns), elements=elements)


@given(st.data(), sides, sides, sides)
def test_products_add_up_over_k_in_order(data: st.DataObject, rows: int, inner: int, columns: int) -> None:
    a, b = data.draw(tiles(rows, inner)), data.draw(tiles(inner, columns))
    found = TILE_OPERATORS["matmul"].array(a, b)
    for i in range(rows):
        for j in range(columns):
            total = 0.0
            for k in range(inner):
                product = float(a[i, k]) * float(b[k, j])
                total = total + product
            assert found[i, j] == total
    np.testing.assert_array_equal(TILE_OPERATORS["matmul_t"].array(a, b.T), found)


def test_the_order_of_products_shows_in_the_bits() -> None:
    a, b = np.array([[1e16, 1.0, -1e16]]), np.ones((3, 1))
    assert TILE_OPERATORS["matmul"].array(a, b).item() == 0.0  # (1e16 + 1) - 1e16, not (1e16 - 1e16) + 1
    x = 1.0 + 2.0**-30
    a, b = np.array([[x * x, x]]), np.array([[-1.0], [x]])  # a fused multiply-add gives the rounding error of x * x
    assert TILE_OPERATORS["matmul"].array(a, b).item() == 0.0


def test_a_zero_annihilates_in_a_product() -> None:
    a, b = np.array([[0.0, 2.0]]), np.array([[math.inf], [3.0]])
    assert TILE_OPERATORS["matmul"].array(a, b).tolist() == [[6.0]]


@given(st.data(), sides, sides)
def test_rows_fold_over_columns_in_order(data: st.DataObject, rows: int, columns: int) -> None:
    a = data.draw(tiles(rows, columns))
    for name, reducer in (("row_sum", "sum"), ("row_max", "max")):
        found, op = TILE_OPERATORS[name].array(a), REDUCERS[reducer]
        assert found.shape == result_tile(name, [a.shape]) == (rows, 1)
        for i in range(rows):
            total = op.identity
            for j in range(columns):
                total = op.scalar(total, float(a[i, j]))
            assert found[i, 0] == total


@given(st.data(), st.sampled_from(sorted(OPERATORS)), sides, sides)
def test_elementwise_is_the_scalar_operator(data: st.DataObject, name: str, rows: int, columns: int) -> None:
    op = OPERATORS[name]
    operands = [data.draw(tiles(rows, data.draw(st.sampled_from([1, columns])), st.floats())) for _ in range(op.arity)]
    found = each(op.scalar, *operands)
    assert found.shape == result_tile(name, [x.shape for x in operands])
    for i, j in np.ndindex(*found.shape):
        wanted = op.scalar(*(float(x[i, min(j, x.shape[1] - 1)]) for x in operands))
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
        ("add", [(2, 3), (2, 3)], (2, 3)),
        ("sub", [(2, 1), (2, 3)], (2, 3)),
        ("where", [(2, 1), (2, 3), (2, 1)], (2, 3)),
        ("mul", [(3, 1), (3, 1)], (3, 1)),
        ("mul", [(1, 3), (2, 3)], None),
        ("mul", [(3, 1), (2, 3)], None),
        ("mul", [(2, 2), (2, 3)], None),
        ("mul", [(2, 3), ()], None),
        ("mul", [(), ()], ()),
    ],
)
def test_forms_are_chosen_by_type(name: str, shapes: list[tuple[int, ...]], result: tuple[int, ...] | None) -> None:
    assert result_tile(name, shapes) == result


def test_work_and_flops() -> None:
    assert (work("matmul", [(2, 3), (3, 4)]), flops("matmul", [(2, 3), (3, 4)])) == (24, 48)
    assert (work("matmul_t", [(2, 3), (4, 3)]), flops("matmul_t", [(2, 3), (4, 3)])) == (24, 48)
    assert (work("row_sum", [(2, 3)]), flops("row_sum", [(2, 3)])) == (6, 6)
    assert (work("mul", [(2, 1), (2, 3)]), flops("mul", [(2, 1), (2, 3)]), flops("copy", [(2, 3)])) == (6, 6, 0)
    assert (work("mul", [(), ()]), flops("mul", [(), ()])) == (1, 1)


def test_nobody_writes_to_a_tile() -> None:
    for tile in (filled((2, 2), 1.0), each(lambda a: a, np.zeros((2, 2))), TILE_OPERATORS["matmul"].array(np.eye(2), np.eye(2))):
        with pytest.raises(ValueError, match="read-only"):
            tile[0, 0] = 5.0
    assert filled((), 1.5) == 1.5


def test_tile_operators_are_no_pointwise_operators() -> None:
    assert not TILE_OPERATORS.keys() & OPERATORS.keys()
    assert FUNCTIONS.keys() == TILE_OPERATORS.keys() | OPERATORS.keys()
