"""The verifier: every rule has a program that breaks it, and the message names what the user wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Program, Reduce, Split, TensorType
from fuseflow.einsum.parse import parse
from fuseflow.einsum.verify import extents, shapes, verify
from fuseflow.errors import ProgramError, Span
from fuseflow.tensors import Format

DECLARED = """tensor A[4, 6] csr
tensor B[6, 5] dense
tensor b[5]
"""

WRONG = {
    "extents": ("Y[i, j] = sum(k) A[i, k] * B[j, k]", "index `k` has the extent 6 in `A[i, k]` and 5 in `B[j, k]`"),
    "rank": ("Y[i] = A[i]", "`A[i]` has 1 indices, `A` has 2 dimensions: [4, 6]"),
    "unknown tensor": (
        "Y[i, j] = AA[i, j]",
        "tensor `AA` is not declared\n  note: in `Y[i, j] = AA[i, j]`\n  hint: did you mean `A`?",
    ),
    "use before definition": ("Y[i] = Z[i]\nZ[j] = b[j]", "tensor `Z` is used before it is defined"),
    "itself": ("Y[i] = Y[i] + b[i]", "tensor `Y` is used before it is defined"),
    "two definitions": ("Y[j] = b[j]\nY[j] = b[j]", "`Y` is defined 2 times"),
    "two declarations": ("tensor b[5]\nY[j] = b[j]", "tensor `b` is declared 2 times"),
    "repeated index": ("Y[i, i] = A[i, i]", "index `i` stands 2 times on the left side"),
    "unreduced": ("Y[i] = A[i, k] * 2", "index `k` of `A[i, k]` is neither on the left side nor reduced"),
    "out of the reduction": (
        "Y[i] = (sum(k) A[i, k]) * A[i, k]",
        "index `k` of `A[i, k]` is neither on the left side nor reduced",
    ),
    "reduced and kept": ("Y[i, k] = sum(k) A[i, k]", "`sum(k)` reduces `k`, which is on the left side"),
    "reduced twice": ("Y[i] = sum(k) (A[i, k] * (sum(k) A[i, k]))", "`sum(k)` reduces `k` inside a reduction over `k`"),
    "reduced, absent": ("Y[i, k] = sum(j) A[i, k]", "`sum(j)` reduces `j`, which its operand does not have"),
    "reduced in a list": ("Y = sum(i, i) A[i, i]", "`sum(i, i)` must name indices, each once"),
    "no extent": ("Y[i, j] = b[j]", "nothing gives index `i` of `Y[i, j]` an extent"),
    "declared shape": ("tensor Y[4, 4]\nY[i, j] = A[i, j]", "index `j` has the extent 6 in `A[i, j]` and 4 in `Y[i, j]`"),
    "declared rank": ("tensor Y[4]\nY[i, j] = A[i, j]", "`Y[i, j]` has 2 indices, `Y` has 1 dimensions: [4]"),
    "split": (
        "Y[i, h, d] = A[i, h*4 + d]",
        "dimension 1 of `A[i, h*4 + d]` has 6 entries, which the split size 4 does not divide",
    ),
    "split of a result": ("Y[h*4 + j] = A[h, j]", "index `j` has the extent 6 in `A[h, j]`, not that of the split `h*4 + j`"),
    "fill": ("tensor n[5] i32 fill -inf\nY[i] = n[i]", "tensor `n` has integers, its implicit value is -inf"),
    "output": ("Z[j] = b[j]", "output `Y` is not defined\n  hint: known: `Z`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_rule_refuses_a_program_that_breaks_it(case):
    text, message = WRONG[case]
    with pytest.raises(ProgramError) as error:
        verify(parse(DECLARED + text + "\noutput Y", "p.ein"))
    assert message in str(error.value)


def test_the_place_is_the_statement():
    with pytest.raises(ProgramError) as error:
        verify(parse(DECLARED + "  Y[i] = A[i, k]\noutput Y", "p.ein"))
    assert error.value.span == Span("p.ein", 4, 3)


def program(body, indices=(), **changes):
    tensors = (TensorType("A", (4, 6), Format.dense(2)), TensorType("s", ()))
    return replace(Program(tensors, (Einsum("Y", indices, body),), ("Y",)), **changes)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (program(Apply("rleu", (Const(1.0),))), "unknown operator `rleu`"),
        (program(Apply("relu", (Const(1.0), Const(1.0)))), "operator `relu` takes 1 operands, not 2"),
        (program(Reduce("mean", ("i", "j"), Access("A", ("i", "j")))), "unknown reduction `mean`"),
        (program(Reduce("sum", (), Const(1.0))), "`sum()` must name indices, each once"),
        (program(Access("A", ("i", "2")), ("i", "2")), "`2` cannot name an index"),
        (program(Access("A", ("i", Split("h", "d", 0))), ("i", "h", "d")), "the split `h*0 + d` has the size 0"),
        (program(Const(1.0), outputs=()), "the program has no outputs"),
        (program(Const(1.0), outputs=("A",)), "output `A` is an input: nothing computes it"),
        (program(Const(1.0), outputs=("Y", "Y")), "`Y` is an output 2 times"),
        (program(Const(1.0), tensors=(TensorType("A", (2, -1)),)), "tensor `A` has a negative size"),
        (program(Const(1.0), tensors=(TensorType("A", (2,), dtype="f46"),)), "unknown dtype `f46`\n  hint: did you mean `f64`?"),
        (program(Const(1.0), tensors=(TensorType("A", (2,), Format.dense(2)),)), "its format (dense, dense) has 2 levels"),
        (program(Const(1.0), tensors=(TensorType("a b", ()),)), "`a b` cannot name a tensor"),
        (program(Const(1.0), tensors=(TensorType("1e5", ()),)), "`1e5` cannot name a tensor"),
        (program(Const(1.0), einsums=(Einsum("y-z", (), Const(1.0)),)), "`y-z` cannot name a tensor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_programs_that_no_text_can_say_are_refused_too(wrong, message):
    with pytest.raises(ProgramError) as error:
        verify(wrong)
    assert message in str(error.value)


def test_the_same_index_may_be_reduced_in_two_places():
    verify(parse(DECLARED + "Y[i] = sum(k) A[i, k] + max(k) A[i, k]\noutput Y"))


def test_a_constant_fills_a_declared_shape():
    verify(parse("tensor Y[3, 2]\nY[i, j] = 1\noutput Y"))


def test_shapes_and_extents():
    text = DECLARED + "T[i, j] = sum(k) A[i, k] * B[k, j]\nH[h, d, j] = T[h*2 + d, j]\nY[j*2 + d, h] = H[h, d, j]\noutput Y"
    shape_by_tensor = shapes(parse(text))
    assert shape_by_tensor == {"A": (4, 6), "B": (6, 5), "b": (5,), "T": (4, 5), "H": (2, 2, 5), "Y": (10, 2)}
    assert list(shape_by_tensor) == ["A", "B", "b", "T", "H", "Y"]
    assert extents(parse(text))["T"] == {"i": 4, "k": 6, "j": 5}
    assert extents(parse(text))["H"] == {"h": 2, "d": 2, "j": 5}


@given(data=st.data())
@settings(max_examples=50)
def test_random_programs_verify(programs, data):
    program = data.draw(programs)
    verify(program)
    assert {e.name for e in program.einsums} <= set(shapes(program))
