"""The check of a run against its reference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

from fuseflow.cli.main import main
from fuseflow.compiler import compile
from fuseflow.einsum.parse import parse
from fuseflow.einsum.sparse_arrays import SparseArray
from fuseflow.run.check import Check, check_outputs, like_magnitudes, relative_error
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("output", "reference", "error"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]], 0.0),
        ([[1.0, 2.5]], [[1.0, 2.0]], 0.25),
        ([[0.0, 0.0], [1.0, 1.0]], [[NAN, NAN], [1.0, 1.0]], INF),  # nothing says that the row is behind a mask
        ([[NAN, NAN]], [[NAN, NAN]], 0.0),
        ([0.0, 0.0], [NAN, NAN], INF),
        ([[-INF, 1.0]], [[-INF, 1.0]], 0.0),
        ([[0.0, 1.0]], [[-INF, 1.0]], INF),
        ([[INF, 1.0]], [[-INF, 1.0]], INF),
        ([[NAN, 1.0]], [[0.0, 1.0]], INF),
        ([[1e-3, 0.0]], [[0.0, 0.0]], 1e-3),  # nothing to be relative to: absolute
        ([], [], 0.0),
        ([1.0], [1.0, 2.0], INF),
    ],
)
def test_compare(output, reference, error):
    assert relative_error(np.array(output), np.array(reference)) == pytest.approx(error)


@pytest.mark.parametrize(
    ("dtype", "error", "passed"), [("f4", 5e-5, True), ("f4", 2e-4, False), ("f8", 1e-8, False), ("i4", 0.2, False)]
)
def test_tolerance_follows_the_dtype(dtype, error, passed):
    want = np.array([10.0])
    scaled = 2 if dtype == "i4" else 10 * error
    output = pack(np.array([10.0 + scaled]).astype(dtype), Format.dense(1))
    assert check_outputs({"y": output}, {"y": want}, "test").passed is passed


def test_an_overflow_of_the_output_type_is_right_where_the_reference_overflows_too():
    output = pack(np.array([INF, 1.0], dtype=np.float32), Format.dense(1))
    assert check_outputs({"y": output}, {"y": np.array([2.7e115, 1.0])}, "test").passed
    assert not check_outputs({"y": output}, {"y": np.array([2.7e35, 1.0])}, "test").passed


def test_the_worst_output_is_named():
    outputs = {name: pack(np.array([value]), Format.dense(1)) for name, value in (("a", 1.0), ("b", 2.0))}
    outcome = check_outputs(outputs, {"a": np.array([1.0]), "b": np.array([1.0])}, "test")
    assert (outcome.worst, outcome.passed, outcome.max_rel_error) == ("b", False, 1.0)


@pytest.mark.parametrize(
    ("position", "value", "fill", "error"),
    [(None, 0, 2.0, 0.0), (5, 4.0, 2.0, 0.25), (12, 1.0, 2.0, 0.25), (None, 0, 1.0, 0.25)],
    ids=["equal", "another value", "one too many", "another implicit value"],
)
def test_a_sparse_reference_is_compared_where_something_is_stored(position, value, fill, error):
    want = SparseArray((4, 5), np.array([5, 9, 13]), np.array([3.0, 4.0, -1.0]), 2.0)
    have = want.toarray().reshape(-1)
    have[have == 2.0] = fill
    if position is not None:
        have[position] = value
    output = pack(have.reshape(4, 5), Format.of("compressed", "compressed", order=(1, 0)), fill)
    outcome = check_outputs({"y": output}, {"y": want}, "test")
    assert (outcome.max_rel_error, outcome.passed) == (error, error == 0)
    dense = check_outputs({"y": output}, {"y": want.toarray()}, "test")
    assert replace(outcome, largest=None) == replace(dense, largest=None)  # the implicit value has no coordinates


def test_the_check_takes_the_time_of_what_is_stored():
    """A dense form would take 7 TB."""
    n = 1_000_000
    entries = sparse.coo_array((np.ones(50, np.float32), (np.arange(50) * 7, np.arange(50) * 11)), shape=(n, n))
    text = f"tensor x[{n}, {n}] dcsr\ns = sum(i, j) x[i, j]\ny[i, j] = x[i, j] * 2\noutput s, y\n"
    compiled = compile(parse(text), tensors={"x": entries})
    result = compiled.run()
    assert result.check is not None and result.check.passed
    tensors = dict(result.tensors)
    tensors["y"] = replace(tensors["y"], values=np.where(np.arange(50) == 7, 2.01, tensors["y"].values).astype(np.float32))
    assert not compiled.compare(tensors).passed


CANCELS = """
tensor A[12, 400] {dtype}
tensor X[400] {dtype}
T[i] = sum(j) A[i, j] * X[j]
Y[i] = T[i] * 3
output Y
"""


def cancelling(dtype: str) -> tuple[Compiled, np.ndarray]:
    """Rows whose exact sums are 0: each term stands there with both signs, in a random order."""
    rng = np.random.default_rng(4)
    half = rng.standard_normal((12, 200))
    signed = rng.permuted(np.concatenate([half, -half], axis=1), axis=1).astype("f4" if dtype == "f32" else "f8")
    tensors = {"A": signed, "X": np.full(400, 3.0, signed.dtype)}
    return compile(parse(CANCELS.format(dtype=dtype)), tensors=tensors, machine="ideal"), signed


def test_what_is_nothing_but_rounding_is_not_compared():
    compiled, _ = cancelling("f64")
    check = compiled.run().check
    assert check is not None and (check.verdict, check.unknown) == ("UNKNOWN", "Y")
    assert check.not_compared == check.elements == 12 and not check.passed
    assert "12 of 12 elements could not be compared" in check.details
    assert (
        check.problem == "nothing of output `Y` could be compared with dense interpreter: rounding may make more than its values"
    )


def differing(factor: str) -> Check:
    """The check of a difference of two tensors, which are rounded to 32 bits where they are stored between regions."""
    text = f"tensor A[9, 50]\nT[i] = sum(j) A[i, j]\nU[i] = T[i] * {factor}\nY[i] = U[i] - T[i]\noutput Y"
    data = {"A": np.random.default_rng(4).random((9, 50)).astype(np.float32)}
    machine = load_machine("ideal", {"arithmetic": "f64"})
    compiled = compile(parse(text), tensors=data, schedule=Schedule.fuse("none"), machine=machine)
    result = compiled.run()
    assert not check_outputs(result.tensors, compiled.interpret(), "").passed
    assert result.check is not None
    return result.check


def test_tensors_that_cancel_pass_with_their_error():
    check = differing("1.0001")
    assert check.passed and not check.not_compared and 1e-4 < check.max_rel_error < 1e-2


def test_tensors_of_which_nothing_is_left_do_not_pass():
    check = differing("1.0000001")
    assert not check.passed and check.unknown == "Y"


def test_a_command_whose_output_is_lost_in_rounding_has_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("p.ein").write_text("tensor T[4]\nU[i] = T[i] * 1.0000001\nY[i] = U[i] - T[i]\noutput Y\n")
    Path("t.yaml").write_text("T: {path: T.npy}\n")
    np.save("T.npy", np.array([3.3, 5.7, 7.1, 9.9], np.float32))
    words = ["run", "p.ein", "--tensors", "t.yaml", "--fuse", "none", "--set", "arithmetic=f64", "--json", "r.json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert "UNKNOWN" in result.stdout and "4 of 4 elements could not be compared" in result.stdout
    assert "nothing of output `Y` could be compared with dense interpreter" in result.stderr
    check = json.loads(Path("r.json").read_text())["check"]
    assert (check["passed"], check["unknown"], check["not_compared"], check["elements"]) == (False, "Y", 4, 4)


def test_elements_of_two_kinds_have_two_magnitudes():
    magnitudes = np.concatenate([np.full(500, 1e9), np.linspace(0.01, 3, 500), np.zeros(3)])
    assert sorted(set(like_magnitudes(magnitudes).tolist())) == [3.0, 1e9]
    one_small = np.concatenate([np.full(500, 2.0), [1e-9]])  # by chance, and no kind of its own
    assert set(like_magnitudes(one_small).tolist()) == {2.0}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_wrong_result_of_terms_that_cancel_is_found(dtype: str):
    """An error of a thousandth of one term is more than rounding makes."""
    compiled, signed = cancelling(dtype)
    tensors = compiled.run(check=False).tensors
    values = tensors["Y"].values.copy()
    values[5] += 1e-3 * np.abs(signed).max() * 9
    assert not compiled.compare({"Y": replace(tensors["Y"], values=values)}).passed


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("terms", [3, 400, 20_000])
def test_one_wrong_entry_is_found_beside_entries_that_cancel(dtype: str, terms: int):
    """The largest entry is wrong by a thousandth of its value, be its own terms of one sign or of both."""
    rng = np.random.default_rng(terms)
    a = rng.standard_normal((6, terms)).astype("f4" if dtype == "f32" else "f8")
    a[0, terms // 2 :] = -a[0, : terms - terms // 2]  # cancels, but for one term if their number is odd
    a[1] = np.abs(a[1])
    text = f"tensor A[6, {terms}] {dtype}\nY[i] = sum(j) A[i, j]\noutput Y"
    for rows in ([0, 1, 2], [0, 2, 3]):
        compiled = compile(parse(text.replace("6", "3", 1)), tensors={"A": a[rows]}, machine="ideal")
        result = compiled.run()
        assert result.check is not None and result.check.passed
        values = result.tensors["Y"].values.copy()
        values[np.abs(values).argmax()] *= 1.001
        assert not compiled.compare({"Y": replace(result.tensors["Y"], values=values)}).passed
