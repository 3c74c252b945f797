"""Tensors that share their places: what is written and read again, refused, packed, and what a program with them means."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.parse import parse
from fuseflow.einsum.sparse_arrays import SparseArray
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import verify
from fuseflow.errors import FuseFlowError, ProgramError, TensorError
from fuseflow.frontend.sources import input_tensors
from fuseflow.tensors import Format, pack
from fuseflow.tensors.blocks import with_structure_of

MOMENTUM = """tensor W[3, 4] csr
tensor V[3, 4] like W
tensor G[3, 4]
tensor next_V[3, 4] like W
next_V[i, j] = 0.9 * V[i, j] + G[i, j]
output next_V
"""
WEIGHT = np.array([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])
HELD = np.array([[5.0, 0, 0, 0], [0, 0, 0, 0], [0, 2, 0, 0]])


def test_the_text_reads_back() -> None:
    program = parse(MOMENTUM)
    assert [t.like for t in program.tensors] == ["", "W", "", "W"]
    assert parse(show(program)) == program
    assert "tensor V[3, 4]       like W\n" in show(program)
    inferred = infer(program)
    assert parse(show(inferred)) == inferred
    assert {t.name: t.format for t in inferred.tensors}["next_V"] == Format.parse("csr", 2)


def test_the_mlir_form_reads_back() -> None:
    mlir = pytest.importorskip("fuseflow.einsum.mlir")
    for program in (parse(MOMENTUM), infer(parse(MOMENTUM))):
        assert mlir.from_mlir(mlir.to_mlir(program)) == program
    assert '"einsum.like"() {structure = "W", tensor = "V"}' in mlir.to_mlir(parse(MOMENTUM))


def test_a_chain_is_resolved_to_its_end() -> None:
    program = parse("tensor A[2, 2] like B\ntensor B[2, 2] like C\ntensor C[2, 2] csr\nY[i, j] = A[i, j] + B[i, j]\noutput Y")
    assert [t.like for t in program.tensors] == ["C", "C", ""]
    verify(program)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("tensor V[3, 4] like X", "tensor `V` is like `X`, which is not declared"),
        ("tensor V[3, 4] like V", "tensor `V` is like `V`, which is like `V`"),
        ("tensor V[3, 5] like W", r"tensor `V` is like `W`, whose shape is \[3, 4\], not \[3, 5\]"),
        ("tensor V[3, 4] like G", "tensor `V` is like `G`, which stores every entry"),
        ("tensor V[3, 4] like Y", "tensor `V` is like `Y`, which is computed: only an input has its places"),
        ("tensor V[3, 4] dcsr like W", "tensor `V` is like `W`, and has a format of its own"),
        ("tensor V[3, 4] block 1x2 like W", "tensor `V` is like `W`, and has a format of its own"),
        ("tensor V[3, 4] like W fill 1", "tensor `V` is like `W`, and the implicit value of one of them is not 0"),
        ("tensor Y[3, 4] like W\nY[i, j] = 2", "tensor `Y` is like `W`, and a number at all of its places"),
        ("tensor Z[3, 4] like W\nZ[i, j] = keep(1 over j) W[i, j]", "`Z` is like `W`, and a `keep` says which entries it has"),
        ("tensor Z[3, 4] like W\nZ[i, h*2 + d] = B[i, h, d]", "`Z` shares its places with other tensors, and cannot be seen"),
    ],
)
def test_what_cannot_share_places_is_refused(declaration: str, message: str) -> None:
    text = f"tensor W[3, 4] csr\ntensor G[3, 4]\ntensor B[3, 2, 2]\n{declaration}\n"
    text += "" if "Y[i, j]" in declaration else "Y[i, j] = W[i, j] * G[i, j]\n"
    with pytest.raises(ProgramError, match=message):
        verify(parse(f"{text}output Y"))


def test_a_result_has_its_places_alone() -> None:
    out = evaluate(parse(MOMENTUM), {"W": WEIGHT, "V": HELD, "G": np.ones((3, 4))})["next_V"]
    np.testing.assert_allclose(out, np.where(WEIGHT != 0, 0.9 * HELD + 1, 0), rtol=1e-6)


def test_a_stored_zero_is_a_place() -> None:
    """A weight that has become 0 keeps its place."""
    stored = SparseArray((3, 4), np.array([0, 2]), np.array([0.0, 7.0]))
    held = np.zeros((3, 4))
    held[0, 0] = 4
    out = evaluate(parse(MOMENTUM), {"W": stored, "V": held, "G": np.ones((3, 4))})["next_V"]
    assert np.argwhere(out).tolist() == [[0, 0], [0, 2]]


@pytest.mark.parametrize(
    ("format", "places"),
    [
        ("csr block 1x2", [[0, 0], [0, 1], [0, 2], [0, 3], [2, 0], [2, 1]]),
        ("nm(2:4)", [[0, 0], [0, 3], [1, 0], [1, 1], [2, 0], [2, 1]]),
    ],
)
def test_places_are_what_the_format_stores(format: str, places: list[list[int]]) -> None:
    program = parse(MOMENTUM.replace("csr", format))
    out = evaluate(program, {"W": WEIGHT, "V": np.zeros((3, 4)), "G": np.ones((3, 4))})["next_V"]
    assert np.argwhere(out).tolist() == places


def test_an_entry_elsewhere_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"input `V` has an entry at \(0, 1\), which is no place of `W`"):
        evaluate(parse(MOMENTUM), {"W": WEIGHT, "V": HELD + np.eye(3, 4, 1), "G": np.ones((3, 4))})


def test_given_arrays_are_packed_at_the_places() -> None:
    """A momentum that starts at 0 stores a 0 at each place, and shares the arrays of coordinates."""
    tensors = input_tensors({"W": WEIGHT, "V": np.zeros((3, 4))}, parse(MOMENTUM).inputs)
    assert tensors["V"].values.tolist() == [0, 0, 0]
    assert tensors["V"].levels is tensors["W"].levels
    with pytest.raises(FuseFlowError, match=r"tensor `V` is like `W`: its entry 1 at \(0, 1\) is at no place of the tensor"):
        input_tensors({"W": WEIGHT, "V": np.eye(3, 4, 1)}, parse(MOMENTUM).inputs)


@pytest.mark.parametrize("format", ["csr", "csc", "dcsr", "coo", "nm(2:4)"])
@pytest.mark.parametrize("seed", range(4))
def test_values_stand_at_the_places_of_any_format(format: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = (rng.random((5, 7)) < 0.5) & (np.arange(7) % 4 < 2)
    values: npt.NDArray[Any] = mask * rng.standard_normal((5, 7))
    root = pack(mask.astype(np.float32), Format.parse(format, 2))
    held = with_structure_of(root, pack(values, Format.dense(2)))
    np.testing.assert_array_equal(held.to_dense(), values)
    assert held.levels is root.levels
    with pytest.raises(TensorError, match="is at no place of the tensor that it is like"):
        with_structure_of(root, pack(values + (np.arange(7) == 2), Format.dense(2)))
