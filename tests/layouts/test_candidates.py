"""The changes of layouts that are compared for a training step."""

from __future__ import annotations

from dataclasses import replace

from fuseflow.costs import TensorStatistics
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.layouts.candidates import BY_COLUMN, Alternatives, StepFacts
from fuseflow.layouts.changes import SecondCopy, StoredAs, WithoutZeros
from fuseflow.layouts.constants import Constants
from fuseflow.tensors import Format

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
