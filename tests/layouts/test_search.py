"""The layouts of training steps: what the compiler changes, what it leaves, and what that gains."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.costs import TensorStatistics
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show_einsum
from fuseflow.frontend.imported_program import Source
from fuseflow.layouts.changes import SecondCopy, StoredAs, WithoutZeros
from fuseflow.layouts.search import BY_COLUMN, Alternatives, Constants, StepFacts, stored_rows
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.array_files import pack_declared

Arrays = dict[str, np.ndarray]
SAMPLED = """
tensor W[128, 128] csr
tensor X[32, 128] dense
tensor G[32, 128] dense
next.W[i, j] = W[i, j] * (sum(k) X[k, i] * G[k, j])
output next.W
"""
"""A sampled gradient. The design of training steps has recorded its cycles: 133,927 by row, and 56,195 by column."""
TWO_PRODUCTS = """
tensor W[24, 24] csr
tensor X[32, 24] dense
tensor G[32, 24] dense
K[b, i] = sum(o) G[b, o] * W[o, i]
next.W[i, j] = W[i, j] * (sum(b) X[b, i] * K[b, j])
output next.W
"""
"""A gradient behind the product of another one with a sparse matrix, which has nearly all entries."""
FEATURES = """
tensor X[60, 90] csr
tensor W[90, 4] csr
tensor G[60, 4] dense
Y[j, h] = sum(f) X[j, f] * W[f, h]
next.W[f, h] = W[f, h] * (sum(j) X[j, f] * G[j, h])
output next.W
output Y
"""
"""A matrix that the forward reads by rows, and the gradient by columns."""
LABELS = """
tensor T[200, 4] csr
tensor P[200, 4] dense
tensor A[200, 200] csr
tensor W[4] dense
G[i, c] = T[i, c] - P[i, c] * (sum(d) T[i, d])
R[i, c] = sum(k) A[i, k] * G[k, c]
next.W[c] = W[c] - sum(i) R[i, c]
output next.W
"""
"""A target with labels for 20 of 200 rows, the gradient of a cross entropy, and what follows it."""

RELU = """
tensor W[40, 50] dense
tensor X[30, 50] dense
tensor D[30, 40] dense
Z[b, o] = sum(i) X[b, i] * W[o, i]
H[b, o] = relu(Z[b, o])
G[b, o] = where(H[b, o] <= 0, 0, D[b, o])
next.W[o, i] = W[o, i] - (sum(b) G[b, o] * X[b, i])
output next.W
"""
"""A gradient that passes a relu on its way to a weight."""


def sparse(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return a matrix in which a tenth of the entries is not zero."""
    return np.where(rng.random(shape) < 0.1, rng.standard_normal(shape), 0).astype(np.float32)


def sampled() -> Arrays:
    rng = np.random.default_rng(0)
    weight = (rng.random((128, 128)) < 0.1).astype(np.float32)
    return {"W": weight, **{name: rng.standard_normal((32, 128)).astype(np.float32) for name in "XG"}}


def two_products() -> Arrays:
    rng = np.random.default_rng(0)
    dense = {name: rng.standard_normal((32, 24)).astype(np.float32) for name in "XG"}
    return {"W": np.where(rng.random((24, 24)) < 0.2, 1, 0).astype(np.float32), **dense}


def features() -> Arrays:
    rng = np.random.default_rng(0)
    return {"X": sparse(rng, 60, 90), "W": sparse(rng, 90, 4), "G": rng.standard_normal((60, 4)).astype(np.float32)}


def relu() -> Arrays:
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in {"W": (40, 50), "X": (30, 50), "D": (30, 40)}.items()
    }


def labels() -> Arrays:
    rng = np.random.default_rng(0)
    target = np.zeros((200, 4), np.float32)
    target[np.arange(0, 200, 10), rng.integers(4, size=20)] = -0.05
    probabilities = rng.random((200, 4)).astype(np.float32)
    return {"T": target, "P": probabilities, "A": sparse(rng, 200, 200), "W": np.ones(4, np.float32)}


def compiled(text: str, arrays: Arrays, schedule: Schedule | None = None) -> Compiled:
    return ff.compile(parse(text), tensors=arrays, schedule=schedule or Schedule.fuse("none"))


def declared(program: Compiled) -> dict[str, str]:
    return {t.name: str(t.format) for t in program.source.program.tensors}


def test_a_sampled_gradient_reads_its_operands_by_column() -> None:
    program = compiled(SAMPLED, sampled())
    assert declared(program) == {"W": "(dense, compressed)", "X": str(BY_COLUMN), "G": str(BY_COLUMN)}
    result = program.run()
    assert result.check is not None and result.check.passed
    assert result.cycles == 56_195


def test_a_result_with_nearly_all_entries_is_stored_dense() -> None:
    program = compiled(TWO_PRODUCTS, two_products())
    assert declared(program)["K"].startswith("(dense, dense)")


def test_a_gradient_reads_a_second_copy_of_the_features_by_column() -> None:
    program = compiled(FEATURES, features())
    assert program.source.copies == {"X.by_columns": "X"}
    assert declared(program)["X.by_columns"] == str(Format.parse("csc", 2))
    assert any(notice.startswith("`X.by_columns` is a copy of `X`, made once, which takes about") for notice in program.notices)
    alone = compiled(FEATURES, features(), Schedule.fuse("none").lower(copies=False))
    assert not alone.source.copies
    assert program.run().cycles < 0.6 * alone.run().cycles


def test_a_relu_is_stored_without_its_zeros_and_by_column() -> None:
    program = compiled(RELU, relu())
    assert declared(program)["H"] == str(Format.parse("csc", 2))
    assert str(program.program.declared["G"].format) == "(compressed, dense)"
    assert [show_einsum(e) for e in program.source.program.einsums if e.name == "H"] == ["H[b, o] = keep(nonzero) relu(Z[b, o])"]
    as_stated = compiled(RELU, relu(), Schedule.fuse("none").format("H", "dense"))
    assert program.run().cycles < 0.8 * as_stated.run().cycles


def test_gradients_of_few_labels_store_few_rows() -> None:
    program = compiled(LABELS, labels())
    assert declared(program)["T"] == "(compressed, compressed)"
    assert str(program.program.declared["G"].format) == "(compressed, dense)"
    as_stated = compiled(LABELS, labels(), Schedule.fuse("none").format("T", "csr"))
    assert program.run().cycles < 0.5 * as_stated.run().cycles


@pytest.mark.parametrize(("text", "arrays"), [(TWO_PRODUCTS, two_products), (FEATURES, features), (LABELS, labels), (RELU, relu)])
@pytest.mark.parametrize("fuse", ["none", "best", "full"])
def test_a_step_computes_the_same_in_other_layouts(text: str, arrays: Callable[[], Arrays], fuse: str) -> None:
    program = compiled(text, arrays(), Schedule.fuse(fuse))
    check = program.run().check
    assert check is not None and check.passed
    assert any(notice.startswith("layouts of the step") for notice in program.notices)


def test_the_schedule_wins() -> None:
    program = compiled(SAMPLED, sampled(), Schedule.fuse("none").format("X", "dense").format("G", "dense"))
    assert not program.source.notices
    assert program.run().cycles == 133_927


def test_steps_are_compared_in_the_lanes_of_an_index_but_not_of_a_region() -> None:
    def expected(schedule: Schedule) -> float:
        [notice] = compiled(RELU, relu(), schedule).source.notices
        numbers = re.findall(r"[\d,]+(?= cycles)", notice)
        return float(numbers[0].replace(",", ""))

    alone = expected(Schedule.fuse("none"))
    assert expected(Schedule.fuse("none").par(b=4)) < 0.5 * alone
    assert expected(Schedule.fuse("none").par(**{"Z.b": 4})) == alone


def test_other_values_of_an_input_are_those_of_its_copy() -> None:
    program, other = compiled(FEATURES, features()), features()
    other["X"] = np.roll(other["X"], 1, axis=0)
    result = program.run(tensors={"X": other["X"]})
    assert result.check is not None and result.check.passed
    np.testing.assert_allclose(result.outputs["next.W"].toarray(), other["W"] * (other["X"].T @ other["G"]), rtol=1e-5, atol=1e-6)


def test_a_batch_of_a_step_reaches_the_copy() -> None:
    program, batch = compiled(FEATURES, features()), np.roll(features()["X"], 1, axis=0)
    run = program.run(steps=2, batches=[{}, {"X": batch}])
    assert run.check is not None and run.check.passed
    first, second = features(), features()["G"]
    weight = first["W"] * (first["X"].T @ first["G"])
    np.testing.assert_allclose(run.state["W"].to_dense(), weight * (batch.T @ second), rtol=1e-5, atol=1e-6)


STEP = """
tensor X[4, 6] dense
tensor W[5, 6] csr
tensor P[5, 6] csr
tensor A[4, 4] csr
tensor T[4, 5] csr
tensor D[4, 5] dense
K[b, i] = sum(o) T[b, o] * W[o, i]
Q[b, i] = sum(c) A[b, c] * X[c, i]
R[b, i] = sum(c) A[c, b] * X[c, i]
G[b, o] = D[b, o] + 1
next.W[o, i] = W[o, i] - P[o, i] * (sum(b) G[b, o] * Q[b, i])
output next.W
output K
output R
"""


def candidates(constants: str = "XPATD", copies: bool = True, fixed: str = "", few_rows: str = "") -> list[Alternatives]:
    """Return the candidates for `STEP` with these constants. Nothing is known of what results store."""
    program = parse(STEP)
    known = Constants(frozenset(constants), frozenset(few_rows))
    return list(StepFacts(program, infer(program).declared, {}, known, frozenset(fixed), copies).candidates())


def columns(*names: str) -> StoredAs:
    return StoredAs(tuple((name, BY_COLUMN) for name in names))


def test_operands_of_a_sum_with_a_sparse_result_are_read_by_column_together_or_alone() -> None:
    assert candidates("PAT", copies=False) == [(columns("G", "Q"), columns("G"), columns("Q"))]
    assert candidates("PAT", copies=False, fixed="G") == [(columns("Q"),)]
    assert candidates(copies=False)[0] == (columns("X"),)  # of the sum with the sparse result `R`


def test_a_constant_is_stored_twice_only_where_copies_are_allowed() -> None:
    assert (SecondCopy("R", "A"),) in candidates()
    assert (SecondCopy("R", "A"),) not in candidates(copies=False)
    assert (SecondCopy("R", "A"),) not in candidates(constants="XPTD")


def test_rows_of_a_constant_are_compressed_if_few_store_something() -> None:
    assert candidates(few_rows="T")[0] == (StoredAs((("T", Format.parse("dcsr", 2)),)),)


def test_a_relu_may_be_stored_without_its_zeros_unless_it_is_an_output() -> None:
    text = "tensor X[4, 6] dense\nH[i, j] = relu(X[i, j])\nnext.X[i, j] = X[i, j] - H[i, j]\noutput next.X\n"

    def changes(text: str) -> list[Alternatives]:
        program, none = parse(text), Constants(frozenset(), frozenset())
        return list(StepFacts(program, infer(program).declared, {}, none, frozenset(), True).candidates())

    assert changes(text) == [(WithoutZeros("H", Format.parse("csc", 2)), WithoutZeros("H", Format.parse("csr", 2)))]
    assert not changes(text + "output H\n") and not changes(text.replace("relu", "exp"))


def test_a_result_is_dense_if_most_entries_are_expected_unless_it_is_an_output() -> None:
    program = STEP.replace("output K\n", "Z[b] = sum(i) K[b, i]\noutput Z\n")
    types = infer(parse(program))
    constants = Constants(frozenset("XPATD"), frozenset())

    def dense(stored: float) -> list[Alternatives]:
        statistics = {"K": TensorStatistics((4, 6), (4.0, stored))}
        return list(StepFacts(parse(program), types.declared, statistics, constants, frozenset(), False).candidates())[:1]

    assert str(types.declared["K"].format) == "(dense, compressed)"
    assert dense(3.1) == [(StoredAs((("K", Format.dense(2)),)),)]
    assert dense(2.9) == [(columns("X"),)]


def test_what_is_updated_together_is_stored_by_column_where_its_gradient_is() -> None:
    text = """
tensor X[4, 6] dense
tensor G[4, 5] dense
tensor W[6, 5] dense
tensor M[6, 5] dense
tensor V[6, 5] dense
Y[b, o] = sum(i) X[b, i] * W[i, o]
D[i, o] = sum(b) X[b, i] * G[b, o]
next.M[i, o] = 0.9 * M[i, o] + D[i, o]
next.W[i, o] = W[i, o] - next.M[i, o]
next.V[i, o] = V[i, o] * V[i, o]
output Y, next.M, next.W, next.V
"""
    program, none = parse(text), Constants(frozenset(), frozenset())
    types = infer(program).declared

    def changes(gradient: Format, fixed: str = "") -> list[Alternatives]:
        stored = {**types, "D": replace(types["D"], format=gradient)}
        return list(StepFacts(program, types, {}, none, frozenset(fixed), False, stored).candidates())

    ((turned,),) = changes(BY_COLUMN)
    assert isinstance(turned, StoredAs)
    assert {name for name, _ in turned.formats} == {"W", "M", "next.W", "next.M"} and {f for _, f in turned.formats} == {
        BY_COLUMN
    }
    assert changes(Format.parse("csc", 2)) == [(turned,)]
    assert not changes(Format.dense(2)) and not changes(BY_COLUMN, fixed="M")


SMALL_STEP = """
tensor A[3, 3] csr
tensor T[3, 2] csr
tensor W[3, 2] csr
tensor x[3] dense
G[i, j] = T[i, j] + (sum(k) A[i, k] * W[k, j]) * x[i]
next.W[i, j] = W[i, j] - G[i, j]
output next.W
"""
ADJACENCY = np.array([[0, 2, 0], [2, 1, 0], [0, 0, 0]], np.float32)
TARGET = np.array([[0, 0], [0, 1], [0, 0]], np.float32)


def packed(array: np.ndarray, text: str) -> Tensor:
    program = parse(f"tensor A[{', '.join(map(str, array.shape))}] {text}\nB[i, j] = A[i, j]\noutput B")
    return pack_declared(array, program.declared["A"])


def test_a_step_does_not_change_inputs_without_a_new_value() -> None:
    program = parse(SMALL_STEP)
    tensors = {"A": packed(ADJACENCY, "csr"), "T": packed(TARGET, "csr"), "W": packed(np.zeros((3, 2), np.float32), "csr")}
    constants = Constants.of(Source("step", program, tensors), fixed=())
    assert constants == Constants(frozenset("ATx"), frozenset("T"))


def test_the_user_decides_about_a_fixed_input() -> None:
    source = Source("step", parse(SMALL_STEP), {"A": packed(ADJACENCY, "csr"), "T": packed(TARGET, "csr")})
    assert Constants.of(source, fixed=("A", "T")) == Constants(frozenset("x"), frozenset())


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_rows_that_store_something_are_counted_in_every_format(format: str) -> None:
    assert stored_rows(packed(ADJACENCY, format)) == np.count_nonzero(ADJACENCY.any(1)) == 2
    assert Format.parse(format, 2) == packed(ADJACENCY, format).format
