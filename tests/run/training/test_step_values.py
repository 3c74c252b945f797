"""Values without cycles: they are packed in the places in which a simulation stored them, or refused if they have others."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.einsum.sparse_arrays import SparseArray
from fuseflow.run.training.step_values import StepInterpreter, packed_like
from fuseflow.tensors import Format, from_coordinates, pack

DENSE = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]])


def operands(array: np.ndarray, fill: float = 0.0) -> list:
    places = np.array(np.nonzero(~np.isnan(array) if np.isnan(fill) else array != fill))
    return [array, SparseArray.of_points(array.shape, places, array[tuple(places)], fill)]


@pytest.mark.parametrize("values", operands(DENSE), ids=["dense", "sparse"])
@pytest.mark.parametrize("format", ["csr", "csc", "(dense, dense)", "(dense, dense) order (1, 0)", "coo"])
def test_values_in_the_places_of_another(values, format) -> None:
    places = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], dtype=np.float32)
    pattern = pack(places, Format.parse(format, 2))
    packed = packed_like(values, pattern)
    assert packed.stored == pattern.stored and (packed.coordinates() == pattern.coordinates()).all()
    assert packed.dtype == np.float32 and (packed.to_dense() == DENSE).all()


@pytest.mark.parametrize("values", operands(DENSE), ids=["dense", "sparse"])
def test_a_value_in_another_place(values) -> None:
    assert packed_like(values, pack(np.eye(2, 3, dtype=np.float32), Format.parse("csr", 2))) is None


@pytest.mark.parametrize("fill", [1.0, np.nan, -np.inf])
def test_implicit_values(fill) -> None:
    array = np.where(DENSE == 0, fill, DENSE)
    places = np.array(np.nonzero(DENSE))
    pattern = from_coordinates((2, 3), places, np.ones(2, np.float32), Format.parse("csr", 2), fill)
    for values in operands(array, fill):
        np.testing.assert_array_equal(packed_like(values, pattern).to_dense(), array)
    for values in (*operands(np.where(DENSE == 3, 5.0, DENSE)), np.full((2, 3), 7.0)):
        assert packed_like(values, pattern) is None, "0 and 7 are not stored, and not implicit"


def test_what_is_made_of_an_input_is_kept_until_it_changes() -> None:
    program = parse("tensor a[3]\ntensor b[3]\nc[i] = a[i] * b[i]\noutput c")
    interpreter, first = StepInterpreter(program, wide=False), pack(np.ones(3, np.float32), Format.dense(1))
    held = {"a": first, "b": first}
    interpreter.outputs(held)
    kept = interpreter._operands["a"][1]
    other = pack(np.full(3, 2, np.float32), Format.dense(1))
    assert interpreter.outputs({**held, "b": other})["c"].tolist() == [2, 2, 2]
    assert interpreter._operands["a"][1] is kept
