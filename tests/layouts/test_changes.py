"""Changes of layouts: the outputs of a program stay the same, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show_einsum
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.sources import input_tensors
from fuseflow.layouts.changes import LayoutChange, SecondCopy, StoredAs, WithoutZeros, from_json
from fuseflow.tensors import Format

STEP = """
tensor A[3, 3] csr
tensor G[3, 2] dense
R[k, c] = sum(i) A[i, k] * G[i, c]
S[i, c] = sum(k) A[i, k] * R[k, c]
output S
"""
CHANGES = [StoredAs((("R", Format.dense(2)),)), SecondCopy("R", "A"), WithoutZeros("R", Format.parse("csc", 2))]
ADJACENCY = np.array([[0, 2, 0], [2, 1, 0], [0, 0, 3]], np.float32)


@pytest.fixture
def source() -> Source:
    program = parse(STEP)
    arrays: Mapping[str, np.ndarray] = {"A": ADJACENCY, "G": np.arange(6, dtype=np.float32).reshape(3, 2)}
    return Source("step", program, input_tensors(arrays, program.inputs), constants=("A",))


def test_a_result_is_declared_in_its_new_format(source: Source) -> None:
    changed = StoredAs((("R", Format.dense(2)),)).applied(source)
    assert changed.program.declared["R"].format == Format.dense(2)
    assert changed.program.einsums == source.program.einsums


def test_a_result_keeps_what_is_not_zero(source: Source) -> None:
    changed = WithoutZeros("R", Format.parse("csc", 2)).applied(source)
    assert show_einsum(changed.program.einsums[0]) == "R[k, c] = keep(nonzero) sum(i) A[i, k] * G[i, c]"
    assert changed.program.declared["R"].format == Format.parse("csc", 2)


def test_one_reader_reads_a_copy_by_columns_of_the_same_numbers(source: Source) -> None:
    changed = SecondCopy("R", "A").applied(source)
    assert [show_einsum(e) for e in changed.program.einsums] == [
        "R[k, c] = sum(i) A.by_columns[i, k] * G[i, c]",
        "S[i, c] = sum(k) A[i, k] * R[k, c]",
    ]
    assert changed.program.declared["A.by_columns"].format == Format.parse("csc", 2)
    assert changed.copies == {"A.by_columns": "A"}
    assert changed.constants == ("A", "A.by_columns")
    assert changed.tensors["A.by_columns"].to_dense().tolist() == ADJACENCY.tolist()


def test_two_readers_share_a_copy_and_names_are_not_taken_twice(source: Source) -> None:
    twice = SecondCopy("S", "A").applied(SecondCopy("R", "A").applied(source))
    assert list(twice.copies) == ["A.by_columns"]
    taken = parse(STEP.replace("R[k, c]", "A.by_columns[k, c]"))
    assert SecondCopy("S", "A").copy(taken).name == "A.by_columns_2"


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_read_again_from_plain_values(source: Source, change: LayoutChange) -> None:
    assert from_json(json.loads(json.dumps(change.to_json())), source.program) == change


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_says_what_it_does_in_one_line(change: LayoutChange) -> None:
    assert change in {change}
    assert "`" in str(change) and "\n" not in str(change)
