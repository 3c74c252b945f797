"""Index names that a model file fixes."""

from __future__ import annotations

import pytest

from fuseflow.einsum.indices import rename_left_side
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show_einsum
from fuseflow.errors import ProgramError

PROGRAM = parse("tensor A[4, 5]\ntensor B[5, 6]\nS[i, j] = sum(k) A[i, k] * B[k, j]\noutput S")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("n c", "S[n, c] = sum(k) A[n, k] * B[k, c]"),
        ("j i", "S[j, i] = sum(k) A[j, k] * B[k, i]"),
        ("k i", "S[k, i] = sum(j) A[k, j] * B[j, i]"),
        ("k j", "S[k, j] = sum(i) A[k, i] * B[i, j]"),
    ],
)
def test_reductions_make_way(names, expected):
    assert show_einsum(rename_left_side(PROGRAM, {"S": names}).einsums[0]) == expected


@pytest.mark.parametrize(("names", "message"), [("i", "do not fit"), ("i i", "do not fit"), ("i 2", "do not fit")])
def test_names_must_fit(names, message):
    with pytest.raises(ProgramError, match=message):
        rename_left_side(PROGRAM, {"S": names})


def test_an_unknown_einsum_is_refused():
    with pytest.raises(ProgramError, match="no such Einsum"):
        rename_left_side(PROGRAM, {"T": "i j"})
