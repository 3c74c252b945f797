"""Programs with a divided operand, as texts: which tensors they have, in which blocks."""

from __future__ import annotations

import pytest

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import verify
from fuseflow.errors import PlanError
from fuseflow.plan.partition import Form
from fuseflow.plan.products import Stored, divide

INPUTS = "tensor A[64, 64] dense block 32x32\ntensor B[64, 64] csr\n"
PRODUCT = INPUTS + "Y[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y\n"


def divided(text: str, operand: str, *forms: str) -> list[str]:
    found = divide(parse(text), operand, [Form.parse(*form.split()) for form in forms], {})
    verify(found.program)
    return [" ".join(line.split()) for line in show(found.program).splitlines() if not line.startswith("output")]


@pytest.mark.parametrize(
    ("forms", "lines"),
    [
        (
            ("32x32", "elements"),
            ["A[64, 64] dense block 32x32", "A1[64, 64] dense block 32x1", "B1[64, 64] csr block 32x1", "B2[64, 64] csr"],
        ),
        (("32x32",), ["A[64, 64] dense block 32x32", "B[64, 64] csr block 32x32"]),
        (("elements",), ["A[64, 64] dense block 32x1", "B[64, 64] csr"]),
        (("nm(2:4)", "elements"), ["A[64, 64] dense block 32x1", "B1[64, 64] nm(2:4)", "B2[64, 64] csr"]),
        (
            ("32x32", "4x4"),
            [
                "A[64, 64] dense block 32x32",
                "A1[64, 64] dense block 32x4",
                "B1[64, 64] csr block 32x4",
                "B2[64, 64] csr block 4x4",
            ],
        ),
        (
            ("32x8 i8", "32x1"),
            ["A[64, 64] dense block 32x32", "B1[64, 64] csr block 32x1 i8", "B2[64, 64] csr block 32x1", "Y[64, 64]"],
        ),
    ],
    ids=" ".join,
)
def test_each_part_has_the_blocks_that_it_needs(forms: tuple[str, ...], lines: list[str]):
    assert [line.removeprefix("tensor ") for line in divided(PRODUCT, "B", *forms) if line.startswith("tensor")] == lines


@pytest.mark.parametrize(
    ("statement", "right"),
    [
        (
            "Y[i, j] = relu((sum(k) A[i, k] * B[j, k]) + 1)",
            "relu(sum(k) A[i, k] * B1[j, k] + sum(l) A1[i, l] * B2[j, l] + 1)",
        ),
        ("Y[i, l] = sum(k) B[k, l] * A[i, k]", "sum(k) B1[k, l] * A[i, k] + sum(j) B2[j, l] * A1[i, j]"),
        (
            "Y[i, j] = (sum(k) A[i, k] * B[k, j]) / (sum(k) A[i, k] * B[k, j])",
            "(sum(k) A[i, k] * B1[k, j] + sum(l) A1[i, l] * B2[l, j]) / (sum(k) A[i, k] * B1[k, j] + sum(l) A1[i, l] * B2[l, j])",
        ),
        ("Y[j] = sum(i, k) A[i, k] * B[k, j]", "sum(i, k) A[i, k] * B1[k, j] + sum(l, m) A1[l, m] * B2[m, j]"),
    ],
)
def test_the_products_stay_where_they_stand(statement: str, right: str):
    assert divided(f"{INPUTS}{statement}\noutput Y", "B", "32x32", "elements")[-1] == f"{statement.split(' = ')[0]} = {right}"


def test_an_operand_is_divided_wherever_it_is_read():
    """The weight is read along both dimensions, so that both are shared."""
    statements = "H[i, j] = relu(sum(k) X[i, k] * W[j, k])\nY[i, j] = sum(k) H[i, k] * W[k, j]"
    text = f"tensor X[8, 64] dense\ntensor W[64, 64] csr\n{statements}\noutput Y"
    assert divided(text, "W", "8x8", "4x2") == [
        "tensor X[8, 64] dense",
        "tensor W1[64, 64] csr block 4x2",
        "tensor W2[64, 64] csr block 4x2",
        "H[i, j] = relu(sum(k) X[i, k] * W1[j, k] + sum(l) X[i, l] * W2[j, l])",
        "Y[i, j] = sum(k) H[i, k] * W1[k, j] + sum(l) H[i, l] * W2[l, j]",
    ]


def test_a_copy_serves_several_operands():
    text = (
        "tensor X[8, 64] dense\ntensor V[64, 4] csr\ntensor W[64, 4] csr\n"
        "P[i, j] = sum(k) X[i, k] * V[k, j]\nQ[i, j] = sum(k) X[i, k] * W[k, j]\noutput P, Q"
    )
    forms = [Form((16, 1)), Form()]
    first = divide(parse(text), "V", forms, {})
    second = divide(first.program, "W", forms, first.stored)
    assert first.stored == second.stored == {"X": Stored("X", ()), "X1": Stored("X", (1, 16))}
    assert [tensor.name for tensor in second.program.tensors] == ["X", "X1", "V1", "V2", "W1", "W2"]


def test_copies_of_an_input_that_is_gone_have_names_of_their_own():
    text = PRODUCT.replace("block 32x32", "block 32x8")
    assert divided(text, "B", "32x32", "4x4")[:2] == ["tensor A1[64, 64] dense block 32x32", "tensor A2[64, 64] dense block 32x4"]


def test_an_only_copy_leaves_the_name_to_an_input_that_is_read_elsewhere():
    text = PRODUCT.replace("output Y", "Z[i, k] = A[i, k] + 1\noutput Y, Z")
    lines = divided(text, "B", "4x4")
    assert lines[:2] == ["tensor A[64, 64] dense block 32x32", "tensor A1[64, 64] dense block 32x4"]
    assert lines[-2:] == ["Y[i, j] = sum(k) A1[i, k] * B[k, j]", "Z[i, k] = A[i, k] + 1"]


def test_a_name_that_is_taken_is_not_given_again():
    text = INPUTS + "tensor B1[64, 64]\nB2[i, j] = sum(k) B1[i, k] * B[k, j]\nY[i, j] = sum(k) A[i, k] * B2[k, j]\noutput Y"
    assert "B2[i, j] = sum(k) B1[i, k] * B3[k, j] + sum(l) B1[i, l] * B4[l, j]" in divided(text, "B", "1x4", "elements")


def test_a_declared_result_is_in_the_blocks_of_its_parts():
    assert "tensor Y[64, 64] dense block 32x1" in divided(
        INPUTS + "tensor Y[64, 64] dense block 32x32\n" + PRODUCT.splitlines()[2] + "\noutput Y", "B", "32x32", "elements"
    )


def test_narrow_parts_leave_the_type_of_the_result():
    text = "tensor A[8, 8] i8\ntensor B[8, 8] csr\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
    found = divide(parse(text), "B", [Form(dtype="i4"), Form(dtype="i8")], {})
    assert infer(found.program).declared["Y"].dtype == infer(parse(text)).declared["Y"].dtype == "f32"


def test_a_tensor_that_is_computed_has_blocks_of_one_size():
    text = INPUTS + "T[i, k] = relu(A[i, k])\nY[i, j] = sum(k) T[i, k] * B[k, j]\noutput Y"
    with pytest.raises(
        PlanError, match=r"`T` is computed, and would be needed in blocks of 1x32 and single elements\n  hint: give all parts"
    ):
        divided(text, "B", "32x32", "elements")
    assert divided(text, "B", "32x4", "32x1")[-1] == "Y[i, j] = sum(k) T[i, k] * B1[k, j] + sum(l) T[i, l] * B2[l, j]"


def test_an_only_copy_in_other_blocks_is_known_to_be_in_them():
    """Without a declaration of its blocks, `X` looks like a tensor of single elements."""
    text = "tensor X[8, 64] dense\ntensor W[64, 4] csr\nY[i, j] = sum(k) X[i, k] * W[k, j]\noutput Y"
    first = divide(parse(text), "W", [Form((16, 1))], {})
    assert show(first.program).splitlines()[-2] == "Y[i, j] = sum(k) X[i, k] * W[k, j]"
    second = divide(first.program, "W", [Form((16, 1)), Form()], first.stored)
    assert show(second.program).splitlines()[-2] == "Y[i, j] = sum(k) X[i, k] * W1[k, j] + sum(l) X1[i, l] * W2[l, j]"
    assert second.stored == {"X": Stored("X", (1, 16)), "X1": Stored("X", ())}


def test_a_tensor_of_groups_has_no_blocks():
    text = PRODUCT.replace("dense block 32x32", "nm(2:4)")
    with pytest.raises(PlanError, match=r"`A` is stored nm\(2:4\), and needed in blocks of 1x32"):
        divided(text, "B", "32x32", "elements")
