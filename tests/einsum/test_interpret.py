"""The dense interpreter against loops over every point of the index space."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseflow.einsum import interpret
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Reduce, Split, index_names
from fuseflow.einsum.parse import parse
from fuseflow.einsum.rounding import converted, expression_precision
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import extents
from fuseflow.errors import ProgramError
from fuseflow.ops import operator, reducer
from fuseflow.tensors import DTYPES


def run(text, **arrays):
    program = parse(text)
    return evaluate(program, arrays)[program.outputs[0]]


def coordinates(indices, point):
    return tuple(point[i.outer] * i.size + point[i.inner] if isinstance(i, Split) else point[i] for i in indices)


def at_point(node: Expr, arrays, sizes, point) -> float:
    match node:
        case Const():
            return node.value
        case Access():
            return float(arrays[node.tensor][coordinates(node.indices, point)])
        case Apply():
            return operator(node.op).scalar(*(at_point(a, arrays, sizes, point) for a in node.args))
        case Reduce():
            result = reducer(node.op).identity
            for values in itertools.product(*(range(sizes[n]) for n in node.over)):
                inner = {**point, **dict(zip(node.over, values, strict=True))}
                result = reducer(node.op).scalar(result, at_point(node.body, arrays, sizes, inner))
            return result


def loops(einsum: Einsum, arrays, sizes, shape):
    out, names = np.full(shape, np.nan), index_names(einsum.indices)
    for values in itertools.product(*(range(sizes[n]) for n in names)):
        point = dict(zip(names, values, strict=True))
        out[coordinates(einsum.indices, point)] = at_point(einsum.body, arrays, sizes, point)
    return out


def assert_same(actual, expected, label):
    finite = expected[np.isfinite(expected)]
    scale = max(1.0, np.abs(finite).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * scale, equal_nan=True, err_msg=label)


@given(data=st.data(), seed=st.integers(0, 2**16), largest=st.sampled_from([1, 4, interpret.MAX_POINTS]))
@settings(max_examples=150)
def test_agrees_with_loops_on_random_programs(programs, random_array, data, seed, largest):
    program = data.draw(programs)
    rng = np.random.default_rng(seed)
    arrays = {t.name: random_array(rng, t) for t in program.inputs}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpret, "MAX_POINTS", largest)  # 1: every reduction is cut down to single points
        results = evaluate(program, arrays, wide=True)
    operands, precisions = dict(arrays), {t.name: DTYPES[t.dtype].precision for t in program.inputs}
    for einsum in program.einsums:
        operands[einsum.name] = results[einsum.name]
        said = converted(einsum, program.declared, precisions)
        precisions[einsum.name] = expression_precision(said.body, precisions)
        expected = loops(said, operands, extents(program)[einsum.name], results[einsum.name].shape)
        assert_same(results[einsum.name], expected, show(program))


def test_matmul_chain():
    rng = np.random.default_rng(0)
    A, B, C = rng.random((4, 5)), rng.random((5, 6)), rng.random((6, 3))
    text = "tensor A[4,5]\ntensor B[5,6]\ntensor C[6,3]\nT[i,j] = sum(k) A[i,k]*B[k,j]\nY[j,i] = sum(k) T[i,k]*C[k,j]\noutput Y"
    np.testing.assert_allclose(run(text, A=A, B=B, C=C), (A @ B @ C).T)


def test_zero_annihilates_infinities_in_a_product():
    text = "tensor a[2]\ntensor b[2]\ns = sum(i) a[i] * b[i]\noutput s"
    assert run(text, a=[0, 1], b=[np.inf, 2]) == 2


def test_overflow_inside_a_contraction_falls_back_to_the_operator_table():
    text = "tensor a[1]\ntensor b[1]\ntensor c[1]\ns = sum(i) a[i] * b[i] * c[i]\noutput s"
    assert run(text, a=[1e200], b=[1e200], c=[0.0]) == 0


def test_a_masked_row_softmax_leaves_masked_entries_zero():
    rng = np.random.default_rng(1)
    H, M = rng.normal(size=(3, 4)), np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]])
    text = """tensor H[3, 4]
              tensor M[3, 4]
              S[i, j] = where(M[i, j] == 0, -inf, H[i, j])
              m[i] = max(j) S[i, j]
              E[i, j] = exp(S[i, j] - m[i])
              Y[i, j] = E[i, j] / (sum(l) E[i, l])
              output Y"""
    expected = np.where(M, np.exp(H), 0) / np.maximum(np.where(M, np.exp(H), 0).sum(1, keepdims=True), 1e-300)
    np.testing.assert_allclose(run(text, H=H, M=M), expected)


def test_a_split_reads_and_writes_heads():
    Q = np.arange(24.0).reshape(2, 12)
    heads = run("tensor Q[2, 12]\nH[h, i, d] = Q[i, h*4 + d]\noutput H", Q=Q)
    np.testing.assert_array_equal(heads, Q.reshape(2, 3, 4).transpose(1, 0, 2))
    merged = run("tensor H[3, 2, 4]\nQ[i, h*4 + d] = H[h, i, d]\noutput Q", H=heads)
    np.testing.assert_array_equal(merged, Q)


def test_a_diagonal_can_be_read():
    A = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(run("tensor A[3, 3]\nd[i] = A[i, i]\noutput d", A=A), np.diag(A))


def test_a_result_broadcasts_over_a_declared_dimension():
    text = "tensor b[2]\ntensor Y[3, 2]\nY[i, j] = b[j]\noutput Y"
    np.testing.assert_array_equal(run(text, b=[1, 2]), [[1, 2]] * 3)


@pytest.mark.parametrize(("op", "identity"), [("sum", 0), ("max", -np.inf), ("min", np.inf), ("prod", 1)])
def test_an_empty_reduction_gives_the_identity(op, identity):
    assert run(f"tensor a[0]\ns = {op}(i) a[i]\noutput s", a=np.zeros(0)) == identity


def test_results_do_not_share_memory_with_inputs():
    a = np.ones(3)
    run("tensor a[3]\ny[i] = a[i]\noutput y", a=a)[0] = 5
    assert a[0] == 1


@pytest.mark.parametrize("largest", [100, 15, 1])
def test_a_large_index_space_is_cut_into_chunks(monkeypatch, largest):
    monkeypatch.setattr(interpret, "MAX_POINTS", largest)
    rng = np.random.default_rng(2)
    A, B = rng.random((3, 8)), rng.random((8, 5))
    results = run("tensor A[3,8]\ntensor B[8,5]\nY[i,j] = max(k) A[i,k] * B[k,j]\noutput Y", A=A, B=B)
    np.testing.assert_allclose(results, (A[:, :, None] * B[None]).max(1))


def test_a_graph_of_the_size_of_cora_takes_seconds():
    n, f, h = 2708, 1433, 16
    rng = np.random.default_rng(3)
    text = f"""tensor A[{n}, {n}] csr
               tensor X[{n}, {f}] csr
               tensor W[{f}, {h}]
               T[i, j] = sum(k) X[i, k] * W[k, j]
               Y[i, j] = relu(sum(k) A[i, k] * T[k, j])
               output Y"""
    arrays = {"A": rng.random((n, n)), "X": rng.random((n, f)), "W": rng.random((f, h))}
    start = time.perf_counter()
    results = run(text, **arrays)
    assert time.perf_counter() - start < 10
    np.testing.assert_allclose(results, arrays["A"] @ (arrays["X"] @ arrays["W"]))


def test_missing_and_misshapen_inputs_are_named():
    text = "tensor adj[2, 2]\ny[i] = sum(j) adj[i, j]\noutput y"
    with pytest.raises(ProgramError, match=r"no array for input `adj`\n  hint: did you mean `Adj`\?"):
        run(text, Adj=np.zeros((2, 2)))
    with pytest.raises(ProgramError, match=r"input `adj` has the shape \[2, 2\], its array \[2, 3\]"):
        run(text, adj=np.zeros((2, 3)))


def test_floats_of_32_bits_are_rounded_where_something_is_computed():
    """As NumPy does it in these floats, and with the constant as one. A sum is rounded once."""
    program = parse("tensor A[5]\nQ[i] = A[i] / 0.1\nS = sum(i) A[i] * A[i]\noutput Q\noutput S")
    a = np.array([0.3, 0.7, 1.0, -0.1, 1e-3], np.float32)
    results, wide = evaluate(program, {"A": a}), evaluate(program, {"A": a}, wide=True)
    np.testing.assert_array_equal(results["Q"], (a / np.float32(0.1)).astype(np.float64))
    assert results["Q"][0] == 3 > wide["Q"][0] - 1e-6 and wide["Q"][0] != 3
    assert results["S"] == np.float32((a.astype(np.float64) ** 2).sum())


def test_integers_and_floats_of_64_bits_are_not_rounded_to_32():
    program = parse(
        "tensor I[2] i64\ntensor D[2] f64\ntensor X[2]\ntensor W[2] f64\n"
        "J[i] = I[i] * 3\nE[i] = D[i] / 0.1\nW[i] = X[i] / 0.1\nF[i] = I[i] / 10\noutput J, E, W, F"
    )
    i, d, x = np.array([2**25 + 1, 1]), np.array([0.3, 0.7]), np.array([0.3, 0.7], np.float32)
    results = evaluate(program, {"I": i, "D": d, "X": x})
    assert results["J"].tolist() == (3 * i).tolist()
    assert results["E"].tolist() == (d / 0.1).tolist()
    assert results["W"].tolist() == (x.astype(np.float64) / 0.1).tolist()
    assert results["F"].tolist() == (i.astype(np.float32) / np.float32(10)).astype(np.float64).tolist()


@pytest.mark.parametrize("statement", ["sigmoid(T[i])", "T[i] / 10", "T[i] + 0.1"])
def test_an_intermediate_of_64_bits_made_of_integers_is_read_in_64_bits(statement: str):
    results = {}
    for dtype in ("i64", "f64"):
        program = parse(f"tensor I[2] {dtype}\ntensor T[2] f64\nT[i] = I[i] * 3\nY[i] = {statement}\noutput Y")
        results[dtype] = evaluate(program, {"I": np.array([5, 7])})["Y"].tolist()
    assert results["i64"] == results["f64"]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("number", ["1 / 3", "sigmoid(1)", "1 / (abs(-2) + 1)"])
def test_numbers_beside_floats_are_such_floats(number: str, dtype: str):
    """The implicit value, a program without declared results and one with inferred ones agree."""
    program = parse(f"tensor A[2, 2] coo {dtype}\nT[i, j] = {number} + A[i, j]\noutput T")
    typed = infer(program)
    values = {float(evaluate(p, {"A": np.zeros((2, 2))})["T"][0, 0]) for p in (program, typed)}
    assert values == {typed.declared["T"].fill}
