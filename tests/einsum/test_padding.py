import numpy as np

from fuseflow.einsum.blocks import guard_data, guard_padding, propagate_blocks
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show_expr


def bodies(text, **blocks):
    program = guard_padding(propagate_blocks(infer(parse(text)), blocks))
    return {e.name: show_expr(e.body) for e in program.einsums}, program


def test_padding_that_is_the_identity_needs_no_guard():
    body_by_einsum, program = bodies("tensor A[10, 10]\ntensor x[10]\ny[i] = sum(j) A[i, j] * x[j]\noutput y", A=(4, 4))
    assert body_by_einsum == {"y": "sum(j) A[i, j] * x[j]"}
    assert len(program.tensors) == 3


def test_a_maximum_is_guarded():
    body_by_einsum, _ = bodies("tensor A[10, 10]\nm[i] = max(j) A[i, j]\noutput m", A=(4, 4))
    assert body_by_einsum == {"m": "max(j) where(inside.10_4[j], A[i, j], -inf)"}


def test_blocks_that_divide_have_no_padding():
    body_by_einsum, _ = bodies("tensor A[12, 12]\nm[i] = max(j) A[i, j]\noutput m", A=(4, 4))
    assert body_by_einsum == {"m": "max(j) A[i, j]"}


def test_what_was_computed_in_the_padding_is_followed():
    text = """
    tensor A[10, 10]
    tensor b[10]
    T[i, j] = exp(A[i, j])
    U[i, j] = A[i, j] * b[j]
    t[i] = sum(j) T[i, j]
    u[i] = sum(j) U[i, j]
    output t, u
    """
    body_by_einsum, _ = bodies(text, A=(4, 4))
    assert body_by_einsum["t"] == "sum(j) where(inside.10_4[j], T[i, j], 0)"
    assert body_by_einsum["u"] == "sum(j) U[i, j]"


def test_one_factor_of_a_product_is_guarded_so_that_it_stays_one():
    text = "tensor A[10, 10]\nT[i, j] = exp(A[i, j])\nY[i, k] = sum(j) T[i, j] * T[j, k]\noutput Y"
    body_by_einsum, _ = bodies(text, A=(4, 4))
    assert body_by_einsum["Y"] == "sum(j) where(inside.10_4[j], T[i, j], 0) * T[j, k]"


def test_masked_attention_needs_no_guard():
    text = """
    tensor M[10, 10] csr
    tensor Q[10, 8]
    tensor V[10, 8]
    S[i, j] = where(M[i, j] == 0, -inf, sum(d) Q[i, d] * Q[j, d])
    m[i] = max(j) S[i, j]
    E[i, j] = exp(S[i, j] - m[i])
    s[i] = sum(j) E[i, j]
    Y[i, d] = sum(j) E[i, j] / s[i] * V[j, d]
    output Y
    """
    body_by_einsum, _ = bodies(text, M=(4, 4), Q=(4, 4))
    assert not any("inside" in body for body in body_by_einsum.values())


def test_the_guard_is_zero_in_the_padding_and_decides_nothing_where_nothing_is_stored():
    _, program = bodies("tensor A[10, 10]\nm[i] = max(j) A[i, j]\noutput m", A=(4, 4))
    tensor = guard_data(program.declared["inside.10_4"])
    assert tensor.fill == 1.0
    np.testing.assert_array_equal(tensor.values.reshape(-1), [1] * 10 + [0] * 2)


def test_a_guard_takes_no_name_that_the_program_has():
    text = "tensor inside.10_4[10]\ntensor A[10, 10]\nm[i] = max(j) (A[i, j] + inside.10_4[j])\noutput m"
    body_by_einsum, _ = bodies(text, A=(4, 4))
    assert body_by_einsum == {"m": "max(j) where(inside.10_4_[j], A[i, j] + inside.10_4[j], -inf)"}


def test_an_index_that_the_body_lacks_is_an_axis_of_its_tiles():
    text = "tensor x[12]\ntensor T[12, 12]\nT[i, j] = x[i]\nU[j, i] = T[i, j] * T[j, i]\noutput U"
    body_by_einsum, _ = bodies(text, x=(4,))
    assert body_by_einsum["T"] == "where(inside.12_4[j], x[i], 0)"
