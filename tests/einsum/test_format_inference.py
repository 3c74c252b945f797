"""Format inference: the join table by example, and its soundness on random programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fuseflow.einsum import format_inference
from fuseflow.einsum.format_inference import Presence, Scope, TypedProgram, fill_of, infer, presence
from fuseflow.einsum.interpret import evaluate_einsum
from fuseflow.einsum.nodes import Split, TensorType, accesses, index_names
from fuseflow.einsum.parse import parse, parse_expr
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import extents
from fuseflow.errors import ProgramError
from fuseflow.tensors.dtypes import DTYPES

INPUTS = """tensor A[4, 4] csr
tensor C[4, 4] dcsr
tensor K[4, 4] csc
tensor D[4, 4] dense
tensor P[4, 4] dcsr fill 1
tensor L[4, 4] dcsr fill -inf
tensor d[4] dense
tensor c[4] (compressed)
tensor n[4] dense i32
tensor w[4] dense f64
tensor s[] dense
"""

DENSE, CSR, DCSR, CD = "dense", "csr", "dcsr", "(compressed, dense)"


def inferred(statement):
    return infer(parse(f"{INPUTS}{statement}\noutput Y")).declared["Y"]


# A row for every cell of the table of joins; `fill` counts only where something is left out.
@pytest.mark.parametrize(
    ("body", "format", "fill"),
    [
        ("A[i, j] * C[i, j]", DCSR, 0),  # intersect
        ("A[i, j] + C[i, j]", CSR, 0),  # union, below a range
        ("C[i, j] + C[j, i]", DCSR, 0),  # union
        ("A[i, j] * K[i, j]", DCSR, 0),
        ("A[i, j] * D[i, j]", CSR, 0),  # a side and a total operand that cannot add to it
        ("C[i, j] * d[j]", DCSR, 0),
        ("C[i, j] * s", DCSR, 0),
        ("C[i, j] * 2", DCSR, 0),
        ("C[i, j] + 1", DCSR, 1),  # constants are no operands
        ("C[i, j] + d[j]", DENSE, 0),  # a broadcast partner that nothing annihilates
        ("C[i, j] + c[j]", CSR, 0),
        ("C[i, j] * c[j]", DCSR, 0),
        ("C[i, j] + s", DENSE, 0),
        ("C[i, j] / D[i, j]", DCSR, 0),
        ("D[i, j] / C[i, j]", DENSE, 0),  # 0 in the divisor fixes nothing
        ("exp(C[i, j])", DCSR, 1),
        ("exp(C[i, j]) * D[i, j]", DENSE, 0),
        ("exp(D[i, j])", DENSE, 0),
        ("exp(L[i, j])", DCSR, 0),
        ("L[i, j] - d[i]", DCSR, -np.inf),
        ("d[i] - L[i, j]", DENSE, 0),
        ("P[i, j] * C[i, j]", DCSR, 0),
        ("P[i, j] * D[i, j]", DENSE, 0),
        ("where(C[i, j] == 0, -inf, D[i, j])", DCSR, -np.inf),  # masked_fill
        ("where(C[i, j] != 0, D[i, j], -inf)", DCSR, -np.inf),
        ("where(C[i, j] == 0, D[i, j], -inf)", DENSE, 0),
        ("where(C[i, j] == 0, neg(2), D[i, j])", DCSR, -2),  # a constant expression
        ("sum(k) A[i, k] * C[k, j]", CSR, 0),
        ("sum(k) C[i, k] * C[k, j]", DCSR, 0),
        ("sum(k) C[i, k] * D[k, j]", CD, 0),
        ("sum(k) K[i, k] * C[k, j]", DCSR, 0),
        ("sum(k) exp(C[i, k]) * P[k, j]", DENSE, 0),
        ("(sum(k) C[i, k] * D[k, j]) + d[j]", DENSE, 0),
        ("relu(sum(k) C[i, k] * C[k, j]) * D[i, j]", DCSR, 0),
        ("1", DENSE, 0),
    ],
)
def test_the_joins_of_an_expression_give_its_format(body, format, fill):
    tensor = inferred(f"tensor Y[4, 4]\nY[i, j] = {body}")
    assert (tensor.format.short(), tensor.fill) == (format, fill)


@pytest.mark.parametrize(
    ("statement", "format", "fill"),
    [
        ("Y[i] = sum(j) C[i, j]", "(compressed)", 0),
        ("Y[i] = max(j) C[i, j]", "(compressed)", 0),
        ("Y[i] = max(j) L[i, j]", "(compressed)", -np.inf),
        ("Y[i] = sum(j) P[i, j]", "(compressed)", 4),
        ("Y[i] = prod(j) exp(L[i, j])", "(compressed)", 0),
        ("Y[j] = sum(i) A[i, j]", "(compressed)", 0),
        ("Y = sum(i, j) C[i, j]", "dense", 0),
        ("Y[h, d, j] = C[h*2 + d, j]", "csf", 0),
        ("Y[j, i] = C[i, j]", "dcsr", 0),
        ("Y[i] = C[i, i]", "(compressed)", 0),
    ],
)
def test_reductions_splits_and_permutations(statement, format, fill):
    tensor = inferred(statement)
    assert (tensor.format.short(), tensor.fill) == (format, fill)


def test_merged_heads_are_dense_only_if_both_indices_are():
    text = "tensor H[2, 3] {}\nY[h*3 + d] = H[h, d] * 2\noutput Y"
    levels = {f: infer(parse(text.format(f))).declared["Y"].format.levels[0].text for f in (DENSE, CSR, CD, DCSR)}
    assert levels == {DENSE: "dense", CSR: "compressed", CD: "compressed", DCSR: "compressed"}


@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        ("n[i] * 2", "i32"),
        ("n[i] * 0.5", "f32"),
        ("n[i] / 2", "f32"),
        ("n[i] + w[i]", "f64"),
        ("n[i] + d[i]", "f32"),
        ("exp(n[i])", "f32"),
        ("where(n[i] == 0, -inf, n[i])", "f32"),
        ("relu(n[i])", "i32"),
        ("w[i] <= w[i]", "f32"),
        ("where(w[i] > 0, n[i], 0)", "i32"),
        ("saturate(w[i], -inf, inf)", "i64"),
    ],
)
def test_the_dtype_is_the_widest_operand(body, dtype):
    assert inferred(f"Y[i] = {body}").dtype == dtype


def test_an_empty_maximum_of_integers_is_a_float():
    program = infer(parse("tensor n[3, 0] i32\nY[i] = max(j) n[i, j]\nZ[i] = sum(j) n[i, j]\noutput Y, Z"))
    assert (program.declared["Y"].dtype, program.declared["Z"].dtype) == ("f32", "i32")


def test_what_is_declared_stays():
    tensor = inferred("tensor Y[4, 4] csc f64\nY[i, j] = exp(C[i, j])")
    assert (tensor.format.short(), tensor.dtype, tensor.fill) == ("csc", "f64", 1)


def test_the_declared_format_counts_for_the_statements_that_follow():
    program = infer(parse(INPUTS + "tensor T[4, 4] dense\nT[i, j] = C[i, j] * 2\nY[i, j] = T[i, j] * 3\noutput Y"))
    assert program.declared["Y"].format.short() == DENSE


def test_a_declared_implicit_value_must_be_the_right_one():
    assert inferred("tensor Y[4, 4] dcsr fill 1\nY[i, j] = exp(C[i, j])").fill == 1
    with pytest.raises(ProgramError, match="`Y` is declared with the implicit value 2, it has 1"):
        inferred("tensor Y[4, 4] dcsr fill 2\nY[i, j] = exp(C[i, j])")


def test_inputs_without_a_format_are_dense():
    assert infer(parse("tensor a[3]\nY[i] = a[i]\noutput Y")).declared["a"].format.short() == "dense"


def test_fill_of_counts_the_entries_of_a_reduction():
    assert fill_of(parse_expr("sum(k, l) P[k, l] * 3"), {"P": 2.0}, {"k": 2, "l": 5}) == 60
    assert fill_of(parse_expr("max(k) P[k]"), {"P": 2.0}, {"k": 0}) == -np.inf


@given(data=st.data())
@settings(max_examples=60)
def test_inference_is_complete_and_idempotent(programs, data):
    program = infer(data.draw(programs))
    assert all(t.format is not None for t in program.tensors)
    assert set(program.declared) >= set(program.defined)
    assume(not any(np.isnan(t.fill) for t in program.tensors))  # NaN is not equal to itself
    assert infer(program) == program


@given(data=st.data(), seed=st.integers(0, 2**16))
@settings(max_examples=250)
def test_where_no_operand_stores_anything_the_result_has_its_implicit_value(programs, random_array, data, seed):
    """Empty every operand at one coordinate of an index; if the index is sparse in the result, the result has its fill there."""
    program = infer(data.draw(programs))
    einsum = data.draw(st.sampled_from(program.einsums))
    sizes, types = extents(program)[einsum.name], program.declared
    sparse = [
        i
        for i in index_names(einsum.indices)
        if presence(einsum.body, i, Scope(types, {name: type.fill for name, type in types.items()}, sizes)) is Presence.PATTERN
    ]
    rng = np.random.default_rng(seed)
    for index in (i for i in sparse if sizes[i]):
        at = int(rng.integers(sizes[index]))
        arrays = {name: random_array(rng, types[name]) for name in einsum.operands}
        for access in accesses(einsum.body):
            empty(arrays[access.tensor], access, types[access.tensor], index, at)
        result = evaluate_einsum(einsum, arrays, sizes)
        slice_ = np.take(in_indices(result, einsum.indices), at, axis=index_names(einsum.indices).index(index))
        held = DTYPES[types[einsum.name].dtype].hold(slice_)
        np.testing.assert_array_equal(held, types[einsum.name].fill, err_msg=f"{index}={at} in\n{show(program)}")


REWRITTEN = """tensor A[4, 4] csr
tensor B[4, 4] dense
T[i, j] = A[i, j] * 2
U[i, j] = B[i, j] * 2
Y[i, j] = T[i, j] * U[i, j]
output Y
"""


@pytest.mark.parametrize(
    ("before", "after", "inferred_again"),
    [
        ("A[4, 4] csr", "A[4, 4] dcsr", ["T", "Y"]),  # what reads it, directly or not
        ("T[i, j] = A[i, j] * 2", "T[i, j] = A[i, j] + 2", ["T", "Y"]),
        ("T[i, j] = A[i, j] * 2", "T[i, j] = A[i, j] * 3", ["T"]),  # its type stays what it was
        ("T[i, j] =", "tensor T[4, 4] dense\nT[i, j] =", ["T", "Y"]),
        ("output Y", "Z[i, j] = Y[i, j]\noutput Z", ["Z"]),
        ("output Y", "output Y, T", []),
    ],
)
def test_after_a_rewriting_only_what_it_changed_is_inferred(monkeypatch, before, after, inferred_again):
    typed, written = TypedProgram.of(parse(REWRITTEN)), parse(REWRITTEN.replace(before, after))
    expected, names = infer(written), []
    plain = format_inference.result_format
    monkeypatch.setattr(
        format_inference, "result_format", lambda einsum, scope: names.append(einsum.name) or plain(einsum, scope)
    )
    assert typed.rewritten(written).program == expected
    assert names == inferred_again


def test_what_a_rewriting_adds_is_verified():
    typed = TypedProgram.of(parse(REWRITTEN))
    with pytest.raises(ProgramError, match="index `k`"):
        typed.rewritten(parse(REWRITTEN.replace("A[i, j] * 2", "A[i, k] * 2")))
    with pytest.raises(ProgramError, match="negative size"):
        typed.rewritten(replace(typed.source, tensors=(*typed.source.tensors, TensorType("W", (-1,)))))


def in_indices(array, indices):
    """Return the array with one axis for each index: splits are taken apart."""
    shape = [n for i, size in zip(indices, array.shape, strict=True) for n in parts(i, size)]
    return array.reshape(shape)


def parts(index, size):
    return (size // index.size, index.size) if isinstance(index, Split) else (size,)


def empty(array, access, tensor, index, at):
    """Make the operand implicit at coordinate `at` of `index`, in the dimensions whose levels are not dense."""
    for dimension, i in enumerate(access.indices):
        level = tensor.format.levels[tensor.format.order.index(dimension)]
        if level.full or index not in index_names((i,)):
            continue
        view = np.moveaxis(array, dimension, 0).reshape(*parts(i, array.shape[dimension]), *np.delete(array.shape, dimension))
        np.moveaxis(view, index_names((i,)).index(index), 0)[at] = tensor.fill
        array[...] = np.moveaxis(view.reshape(array.shape[dimension], *np.delete(array.shape, dimension)), 0, dimension)


INTEGERS = "tensor x[4] i32\ntensor z[4] f32\ntensor y[4] i32\n"


@pytest.mark.parametrize(
    "body", ["x[i] / 2", "x[i] + 0.5", "z[i]", "x[i] * z[i]", "sqrt(x[i])", "pow(x[i], -1)", "pow(x[i], 0.5)"]
)
def test_declared_integers_that_need_not_be_integers(body):
    with pytest.raises(ProgramError, match=r"`y` is declared i32, and its values need not be integers") as raised:
        infer(parse(f"{INTEGERS}y[i] = {body}\noutput y\n"))
    assert raised.value.hint == "declare it `f32`"


@pytest.mark.parametrize(
    "body", ["x[i] * 2", "pow(x[i], 2)", "z[i] > 0", "where(z[i], x[i], 3)", "max(x[i], -x[i])", "relu(x[i])"]
)
def test_declared_integers_that_are_integers(body):
    assert infer(parse(f"{INTEGERS}y[i] = {body}\noutput y\n")).declared["y"].dtype == "i32"
