"""Indices with offsets and factors: their text, their meaning, their errors, and their replacement by selections."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuseflow as ff
from fuseflow.einsum import mlir
from fuseflow.einsum.index_names import substitute
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Access, Affine, Program, Split
from fuseflow.einsum.parse import parse
from fuseflow.einsum.selections import has_affine, replace_affine
from fuseflow.einsum.sparse_arrays import SparseArray
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import verify
from fuseflow.errors import ProgramError
from fuseflow.lower.partition import partition_program
from fuseflow.schedule import Schedule

WINDOWS = """tensor X[3, 8]     dense
tensor W[2, 3, 3]  (dense, dense, compressed)
tensor A[4, 5]     csr
tensor B[4, 5]
tensor Y[2, 4]
tensor C[8, 5]
tensor R[8]
Y[c, p] = sum(d, r) W[c, d, r] * X[d, 2*p + r - 1]  @conv
C[i, j] = A[i + 0, j] + relu(B[i - 4, j])
R[i]    = X[1, 7 - i]
output Y, C, R
"""


def _arrays(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {t.name: draw.integers(-3, 4, t.shape).astype(np.float32) for t in program.inputs}


def _both(program: Program, arrays: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    selected, tensors = replace_affine(program)
    known = {name: tensor.to_dense() for name, tensor in tensors.items()}
    return evaluate(program, arrays), evaluate(selected, {**arrays, **known})


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("2*p + r - 1", Affine((("p", 2), ("r", 1)), -1)),
        ("i + 0", Affine((("i", 1),))),
        ("7 - i", Affine((("i", -1),), 7)),
        ("-2*i - 3", Affine((("i", -2),), -3)),
        ("2*i", Affine((("i", 2),))),
        ("3", Affine((), 3)),
        ("-1", Affine((), -1)),
        ("0", Affine((), 0)),
        ("p + r", Affine((("p", 1), ("r", 1)))),
        ("h*4 + d", Split("h", "d", 4)),
    ],
)
def test_an_index_reads_back_as_it_is_written(text: str, index: Affine | Split) -> None:
    assert str(index) == text
    program = parse(f"tensor X[9]\nY[i] = X[{text}]\noutput Y")
    assert program.einsums[0].body == Access("X", (index,))


@given(st.lists(st.tuples(st.sampled_from("ijk"), st.integers(-3, 3)), max_size=3), st.integers(-9, 9))
def test_every_affine_index_reads_back(terms: list[tuple[str, int]], offset: int) -> None:
    index = Affine(tuple(terms), offset)
    assert parse(f"Y[i] = X[{index}]").einsums[0].body == Access("X", (index,))


def test_programs_survive_their_text_and_their_mlir() -> None:
    program = parse(WINDOWS)
    verify(program)
    assert show(program) == WINDOWS
    assert mlir.from_mlir(mlir.to_mlir(program)).einsums == program.einsums


def test_an_affine_index_of_affine_indices_is_affine() -> None:
    access = Access("X", (Affine((("p", 2), ("r", 1)), -1), Split("h", "d", 4)))
    table = {"p": Affine((("i", -1),), 3), "d": Affine((("j", 1),), 1)}
    expected = (Affine((("i", -2), ("r", 1)), 5), Affine((("h", 4), ("j", 1)), 1))
    assert substitute(access, table) == Access("X", expected)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("Y[i + 1] = X[i]", "left side"),
        ("Y[i] = X[i + 1]", "an extent"),
        ("s = sum(r) X[r + 1]", "nothing gives index `r` an extent"),
        ("Y[i] = X[i] * X[i + j]", "neither on the left side nor reduced"),
        ("Y[i] = X[i] * X[i + 3000000000]", "beyond 2147483647"),
        ("Y[i] = X[i] * X[1 + h*2 + d]", "factor of a term stands before it"),
        ("Y[i] = X[i] * X[h*2 + d + 1]", "end of the split"),
        ("Y[i] = X[i] * X[i +]", "expected an index"),
    ],
)
def test_what_has_no_meaning_is_refused_in_the_words_of_the_user(statement: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        verify(parse(f"tensor X[9]\n{statement}\noutput {statement[0]}"))
    assert caught.value.span is not None


@given(
    extent=st.integers(1, 7),
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 4)),
    factors=st.tuples(st.integers(-3, 3), st.integers(-3, 3)),
    offset=st.integers(-8, 8),
)
def test_reads_are_those_of_numpy_point_by_point(
    extent: int, sizes: tuple[int, int], factors: tuple[int, int], offset: int
) -> None:
    index = Affine((("i", factors[0]), ("j", factors[1])), offset)
    text = f"tensor X[2, {extent}]\ntensor Y[2, {sizes[0]}, {sizes[1]}]\nY[c, i, j] = X[c, {index}]\noutput Y"
    program = parse(text)
    X = np.arange(1.0, 2 * extent + 1).reshape(2, extent)
    expected = np.zeros((2, *sizes))
    for i, j in np.ndindex(*sizes):
        at = factors[0] * i + factors[1] * j + offset
        if 0 <= at < extent:
            expected[:, i, j] = X[:, at]
    direct, selected = _both(program, {"X": X})
    np.testing.assert_array_equal(direct["Y"], expected)
    np.testing.assert_array_equal(selected["Y"], expected)
    sparse = evaluate(program, {"X": SparseArray((2, extent), np.arange(2 * extent), X.ravel())})
    np.testing.assert_array_equal(sparse["Y"], expected)


def test_selections_mean_what_the_program_means() -> None:
    program = parse(WINDOWS)
    direct, selected = _both(program, _arrays(program))
    for name in program.outputs:
        np.testing.assert_array_equal(direct[name], selected[name])
    rewritten, tensors = replace_affine(program)
    assert not has_affine(rewritten) and len(tensors) == 5
    verify(rewritten)


def test_equal_selections_are_one_tensor_and_names_stay_free() -> None:
    text = "tensor select[5]\ntensor Y[4]\nY[i] = select[i + 1] * select[i + 1] + select[i + 0]\noutput Y"
    rewritten, tensors = replace_affine(parse(text))
    assert sorted(tensors) == ["select_2", "select_3"]
    assert replace_affine(rewritten) == (rewritten, {})


def test_a_program_with_an_offset_is_not_lowered_as_it_is() -> None:
    with pytest.raises(ProgramError, match="no stream of its own"):
        partition_program(parse(WINDOWS), Schedule.fuse("full"))


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("machine", ["ideal", "rda"])
def test_windows_run_in_the_simulator(fuse: str, machine: str) -> None:
    program = parse(WINDOWS)
    arrays = _arrays(program, 3)
    expected = evaluate(program, arrays)
    result = ff.compile(program, tensors=arrays, schedule=ff.Schedule.fuse(fuse), machine=machine).run()
    assert result.check.passed
    for name in program.outputs:
        np.testing.assert_allclose(result.outputs[name], expected[name])


def test_a_maximum_over_shifted_reads_counts_the_zeros_outside() -> None:
    program = parse("tensor X[4]\ntensor Y[4]\nY[i] = max(X[i + 0], X[i + 1])\noutput Y")
    direct, selected = _both(program, {"X": np.array([-1.0, -2.0, -3.0, -4.0])})
    assert direct["Y"].tolist() == selected["Y"].tolist() == [-1, -2, -3, 0]
