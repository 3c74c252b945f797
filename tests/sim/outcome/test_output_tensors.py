"""Written streams to tensors, in every format."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SimulationError
from fuseflow.samml.nodes import TensorDecl
from fuseflow.sim.outcome.output_tensors import WriterStream, assemble, round_to_dtype
from fuseflow.tensors import Format, Tensor, pack

FORMATS = [
    Format.of(*levels, order=order)
    for levels in (
        ("dense", "dense"), ("dense", "compressed"), ("compressed", "dense"), ("compressed", "compressed"),
        ("compressed(nonunique)", "singleton"),
    )
    for order in ((0, 1), (1, 0))
]  # fmt: skip


def written(tensor: Tensor) -> WriterStream:
    """What writers would receive for a tensor: its fibers, level by level."""
    result = WriterStream(values=array("d", tensor.values.tolist()))
    refs = [0]
    for p, level in enumerate(tensor.levels):
        crds, ends, below = array("q"), array("q", [0]), []
        for ref in refs:
            found, references = level.fiber(ref)
            crds.extend(found)
            ends.append(len(crds))
            below += references
        result.crd[p], result.pos[p], refs = crds, ends, below
    result.values = array("d", [float(tensor.values[r]) for r in refs])
    return result


@given(st.data(), st.sampled_from(FORMATS), st.sampled_from([0.0, -1.0]))
def test_what_is_written_is_what_is_read_back(data: st.DataObject, format: Format, fill: float) -> None:
    shape = (data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = np.where(rng.random(shape) < 0.5, rng.integers(1, 5, shape), fill).astype(np.float32)
    tensor = pack(values, format, fill)
    found = assemble(TensorDecl("Y", shape, format, "f32", fill), written(tensor))
    assert (found.format, found.shape, found.fill, found.dtype) == (format, shape, fill, np.float32)
    np.testing.assert_array_equal(found.to_dense(), values)
    np.testing.assert_array_equal(found.coordinates(), tensor.coordinates())
    np.testing.assert_array_equal(found.values, tensor.values)


def test_a_dense_level_is_scattered_over_the_implicit_value() -> None:
    decl = TensorDecl("Y", (2, 3), Format.dense(2), "f64", -1.0)
    got = WriterStream(
        {0: array("q", [1]), 1: array("q", [0, 2])}, {0: array("q", [0, 1]), 1: array("q", [0, 2])}, array("d", [5, 6])
    )
    assert assemble(decl, got).to_dense().tolist() == [[-1, -1, -1], [5, -1, 6]]


@given(st.data(), st.sampled_from(["f32", "f64"]), st.sampled_from([Format.dense(2), Format.of("compressed", "dense")]))
def test_dense_levels_written_in_part(data: st.DataObject, dtype: str, format: Format) -> None:
    """Any rows, below each any columns: what was written is in its place, in narrow arrays as in wide ones."""
    shape = (data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3)))
    rows = [i for i in range(shape[0]) if data.draw(st.booleans())]
    columns = [[j for j in range(shape[1]) if data.draw(st.booleans())] for _ in rows]
    crds = [rows, [j for row in columns for j in row]]
    pos = [[0, len(rows)], [0, *np.cumsum([len(row) for row in columns], dtype=int)]]
    values = np.arange(1, len(crds[1]) + 1, dtype=dtype.replace("f", "float"))
    expected = np.full(shape, -1.0)
    expected[np.repeat(rows, [len(row) for row in columns]).astype(int), crds[1]] = values
    for kind in (np.int32, np.int64):
        got = WriterStream({p: np.array(crd, kind) for p, crd in enumerate(crds)}, dict(enumerate(map(np.array, pos))), values)
        np.testing.assert_array_equal(assemble(TensorDecl("Y", shape, format, dtype, -1.0), got).to_dense(), expected)


def test_dense_levels_written_in_full_keep_the_values_where_they_are() -> None:
    values = np.arange(6, dtype=np.float32)
    crd = {0: np.array([0, 1], np.int32), 1: np.array([0, 1, 2, 0, 1, 2], np.int32)}
    got = WriterStream(crd, {0: np.array([0, 2]), 1: np.array([0, 3, 6])}, values)
    found = assemble(TensorDecl("Y", (2, 3), Format.dense(2), "f32"), got)
    assert np.shares_memory(found.values, values)
    assert found.to_dense().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_fiber_of_full_length_that_is_not_in_order_is_not_taken_as_it_is() -> None:
    decl = TensorDecl("Y", (3,), Format.dense(1), "f32")
    got = WriterStream({0: np.array([2, 0, 1])}, {0: np.array([0, 3])}, np.array([5, 6, 7], np.float32))
    assert assemble(decl, got).to_dense().tolist() == [6, 7, 5]


def test_a_dense_level_above_a_compressed_one_must_be_full() -> None:
    decl = TensorDecl("Y", (2, 3), Format.parse("csr", 2), "f64")
    got = WriterStream(
        {0: array("q", [1]), 1: array("q", [0, 2])}, {0: array("q", [0, 1]), 1: array("q", [0, 2])}, array("d", [5, 6])
    )
    with pytest.raises(SimulationError, match="tensor `Y`: the dense level above level 1 received 1 of 2 coordinates"):
        assemble(decl, got)


def test_streams_that_do_not_fit() -> None:
    decl = TensorDecl("Y", (3,), Format.of("compressed"), "f64")
    with pytest.raises(SimulationError, match="the values received 1 elements for 2 parents"):
        assemble(decl, WriterStream({0: array("q", [0, 2])}, {0: array("q", [0, 2])}, array("d", [5])))
    with pytest.raises(SimulationError, match="level 0 received 2 fibers for 1 parents"):
        assemble(decl, WriterStream({0: array("q", [0, 2])}, {0: array("q", [0, 2, 2])}, array("d", [5, 6])))
    with pytest.raises(SimulationError, match=r"coordinate 3 of level 0 is outside 0\.\.2"):
        assemble(decl, WriterStream({0: array("q", [3])}, {0: array("q", [0, 1])}, array("d", [5])))


def test_a_scalar() -> None:
    found = assemble(TensorDecl("s", (), Format.dense(0), "i64"), WriterStream(values=array("d", [7.0])))
    assert found.to_dense() == 7
    assert found.dtype == np.int64


def test_values_are_rounded_to_the_dtype() -> None:
    values = np.array([1 / 3, 1e300, -np.inf, np.nan])
    as_f32 = round_to_dtype(TensorDecl("Y", (4,), Format.dense(1), "f32"), values)
    np.testing.assert_array_equal(as_f32, np.array([np.float32(1 / 3), np.inf, -np.inf, np.nan], dtype=np.float32))
    assert round_to_dtype(TensorDecl("Y", (4,), Format.dense(1), "f64"), values) is not None
    integers = round_to_dtype(TensorDecl("Y", (3,), Format.dense(1), "i32"), np.array([2.0, -3.0, 2.6]))
    assert integers.tolist() == [2, -3, 3]
    assert integers.dtype == np.int32


@pytest.mark.parametrize(
    ("dtype", "value"), [("i32", 2.0**31), ("i64", np.inf), ("i64", -np.inf), ("i32", np.nan), ("i64", 2.0**63)]
)
def test_a_value_that_an_integer_cannot_hold(dtype: str, value: float) -> None:
    with pytest.raises(SimulationError, match=f"tensor `Y`: the value .* does not fit its dtype {dtype}"):
        round_to_dtype(TensorDecl("Y", (1,), Format.dense(1), dtype), np.array([value]))
