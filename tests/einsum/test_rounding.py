"""Programs with narrow types: their text and MLIR, what is inferred, and what they mean."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.mlir import from_mlir, to_mlir
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import ProgramError

NARROW = ("i4", "u4", "i8", "u8", "i16", "f16", "bf16")


@pytest.mark.parametrize("name", NARROW)
def test_text_and_mlir_say_the_type(name: str):
    program = parse(f"tensor A[4, 5] csr {name}\ntensor Y[4] {name}\nY[i] = sum(j) A[i, j]\noutput Y")
    assert f"tensor A[4, 5] csr {name}" in " ".join(show(program).split())
    assert parse(show(program)) == program
    text = to_mlir(program)
    assert ("ui4" if name == "u4" else "ui8" if name == "u8" else name) in text
    assert from_mlir(text) == program


def test_an_unknown_type_gets_the_nearest_name():
    with pytest.raises(ProgramError, match=r"one dtype .*found `bf61`\n  hint: did you mean `bf16`"):
        parse("tensor A[4] dense bf61\nY = sum(i) A[i]\noutput Y")


@pytest.mark.parametrize(
    ("a", "b", "body", "wanted"),
    [
        ("i8", "i8", "A[i] * B[i]", "i32"),
        ("i4", "u8", "A[i] + B[i]", "i32"),
        ("i8", "f16", "A[i] * B[i]", "f32"),
        ("bf16", "bf16", "A[i] * B[i]", "f32"),
        ("i8", "f64", "A[i] * B[i]", "f64"),
        ("i8", "i64", "A[i] * B[i]", "i64"),
        ("i8", "i8", "A[i]", "i8"),
        ("bf16", "i8", "A[i]", "bf16"),
        ("i8", "i8", "A[i] * 0.5", "f32"),
    ],
)
def test_what_is_computed_from_narrow_operands_is_wide(a: str, b: str, body: str, wanted: str):
    program = parse(f"tensor A[4] {a}\ntensor B[4] {b}\nY[i] = {body}\noutput Y")
    assert infer(program).declared["Y"].dtype == wanted


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tensor A[4] csf i8 fill 0.5", "its implicit value is 0.5"),
        ("tensor A[4] csf u4 fill 16", "the implicit value 16, .* no number of u4"),
        ("tensor A[4] csf u8 fill -1", "the implicit value -1, .* no number of u8"),
        ("tensor A[4] csf f16 fill 0.1", "the implicit value 0.1, .* no number of f16"),
    ],
)
def test_an_implicit_value_is_a_number_of_the_type(line: str, message: str):
    with pytest.raises(ProgramError, match=message):
        infer(parse(f"{line}\nY = sum(i) A[i]\noutput Y"))


def test_results_are_rounded_where_they_are_declared():
    """PyTorch computes the same in 64 bits, and casts."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(6, 7)) * 60
    text = "tensor X[6, 7] f64\ntensor {0} {1}\n{0}[i, j] = X[i, j] + 0.25\nY[i] = sum(j) {0}[i, j]\noutput Y"
    wide = torch.from_numpy(x) + 0.25
    for name, held in (
        ("i8", wide.round().clamp(-128, 127)),
        ("u4", wide.round().clamp(0, 15)),
        ("f16", wide.half().double()),
        ("bf16", wide.bfloat16().double()),
    ):
        results = evaluate(parse(text.replace("{0} {1}", f"H[6, 7] {name}").replace("{0}", "H")), {"X": x})
        assert np.array_equal(results["H"], held.numpy())
        assert np.allclose(results["Y"], held.sum(1).numpy(), rtol=1e-12)


def test_a_keep_compares_what_is_rounded():
    program = parse("tensor X[3]\ntensor H[3] i8\nH[i] = keep(1 over i) X[i]\noutput H")
    assert evaluate(program, {"X": [1.2, 1.4, 0.9]})["H"].tolist() == [1, 0, 0]  # of equal ones the first


def test_wide_integers_still_need_integers():
    text = "tensor X[3]\ntensor H[3] {}\nH[i] = X[i] * 0.5\noutput H"
    with pytest.raises(ProgramError, match="declared i32, and its values need not be integers"):
        infer(parse(text.format("i32")))
    assert infer(parse(text.format("i8"))).declared["H"].dtype == "i8"
