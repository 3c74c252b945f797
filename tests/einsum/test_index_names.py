"""Index names that a model file fixes, and those of the parts of split dimensions."""

from __future__ import annotations

import pytest

from fuseflow.einsum.index_names import name_split_indices, rename_left_side
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show, show_einsum
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


def renamed(text: str) -> list[str]:
    lines = show(name_split_indices(parse(text))).splitlines()
    return [" ".join(line.split()) for line in lines if " = " in line]


def test_heads_are_h_and_d_wherever_they_are_used() -> None:
    text = """
    tensor P[5, 6]
    Q[i, j, k] = P[i, j*3 + k]
    S[i, j, k] = sum(l) Q[j, i, l] * Q[k, i, l]
    R[i] = sum(j, k) S[i, j, k]
    O[i, j*3 + k] = Q[i, j, k]
    output R, O
    """
    assert renamed(text) == [
        "Q[i, h, d] = P[i, h*3 + d]",
        "S[h, i, j] = sum(d) Q[i, h, d] * Q[j, h, d]",
        "R[h] = sum(i, j) S[h, i, j]",
        "O[i, h*3 + d] = Q[i, h, d]",
    ]


def test_a_batch_is_b() -> None:
    text = "tensor X[2, 4, 3]\nA[i*4 + j, k] = X[i, j, k]\nB[i, j] = relu(A[i, j])\nC[i, j, k] = B[i*4 + j, k]\noutput C"
    assert renamed(text) == ["A[b*4 + i, j] = X[b, i, j]", "B[i, j] = relu(A[i, j])", "C[b, i, j] = B[b*4 + i, j]"]


def test_a_program_without_reshapes_keeps_its_names() -> None:
    program = parse("tensor X[2, 4]\nY[r, s] = X[r, s] + 1\noutput Y")
    assert name_split_indices(program) is program


def test_two_indices_over_heads_have_two_names() -> None:
    text = "tensor P[6]\nQ[i, j] = P[i*3 + j]\nR[i, j] = sum(k) Q[i, k] * Q[j, k]\noutput R"
    assert renamed(text)[1] == "R[h, i] = sum(d) Q[h, d] * Q[i, d]"
