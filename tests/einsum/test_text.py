"""The text form: goldens, and what is printed reads back as the same program. And the places of Einsums in messages."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Location, Program, Reduce, Split, TensorType
from fuseflow.einsum.parse import parse, parse_expr
from fuseflow.einsum.text import places_of, show, show_expr
from fuseflow.errors import Span
from fuseflow.number_literals import show_number
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.tensors import Format
from fuseflow.tensors.dtypes import DTYPES

GCN = """\
# GCN layer with a masked row softmax
tensor A[2708, 2708]  (dense, compressed)            # CSR; same as `csr`
tensor X[2708, 1433]  csr
tensor W[1433, 16]    dense
tensor b[16]          dense
tensor M[2708, 16]    (compressed, compressed) order (1, 0)
T[i, j] = sum(k) X[i, k] * W[k, j]
H[i, j] = relu(sum(k) A[i, k] * T[k, j] + b[j])
S[i, j] = where(M[i, j] == 0, -inf, H[i, j])
m[i]    = max(j) S[i, j]
E[i, j] = exp(S[i, j] - m[i])
Y[i, j] = E[i, j] / (sum(l) E[i, l])
output Y
"""


def test_gcn_prints_as_in_the_design(golden):
    golden("einsum/gcn.ein", show(parse(GCN)))


def test_gcn_with_inferred_formats(golden):
    golden("einsum/gcn_inferred.ein", show(infer(parse(GCN))))


def test_every_construct(golden):
    text = """program every.construct
    tensor layer1.weight[4, 8] csr f64 fill -inf
    tensor 0.bias[8] (compressed) fill 1e-5
    tensor B[4,4,8] (dense, compressed(nonunique), singleton) order (2,0,1) i32
    tensor s[]
    tensor untyped[4]
    H[h, i, d] = layer1.weight[i, h*4 + d] - -1 * (2 - s)      @layer1.attn
    Y[i, h*4 + d] = -(max(j) (-H[h, i, d] * untyped[j])) / 2.5e-7
    r = sum(i, k) max(layer1.weight[i, k], inf) + prod(i) untyped[i]
    output Y
    output r
    """
    golden("einsum/every_construct.ein", show(parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "a[] - b[] - c[]",
        "a[] - (b[] - c[])",
        "a[] * (b[] * c[])",
        "a[] / b[] * c[]",
        "(a[] + b[]) * c[]",
        "-a[] * b[]",
        "-(a[] * b[])",
        "-(-a[])",
        "-(-1)",
        "-(1)",
        "a[] - -1",
        "a[] * -1",
        "(a[] < b[]) == c[]",
        "a[] + 1 < b[] * 2",
        "sum(k) x[k] * y[k] + c[]",
        "sum(k) (x[k] + c[])",
        "c[] - sum(k) x[k]",
        "(sum(k) x[k]) * c[]",
        "sum(k) max(j) x[j, k]",
        "max(j) (-x[j])",
        "max(a[], b[]) - c[]",
        "max(max(j) x[j], min(k) y[k])",
        "where(a[] == 0, -inf, b[])",
        "sum(k) (x[k] == 0)",
        "(sum(k) x[k]) == 0 + c[]",
    ],
)
def test_expressions_print_with_the_parentheses_they_need(text):
    expected = text.replace("(sum(k) x[k]) ==", "sum(k) x[k] ==")
    assert show_expr(parse_expr(text)) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.0, "0"),
        (-0.0, "-0"),
        (-2.5, "-2.5"),
        (1e-5, "1e-5"),
        (1e16, "1e16"),
        (1.5e300, "1.5e300"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_numbers(value, text):
    assert show_number(value) == text
    assert parse_expr(text) == Const(value)


words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,3}", fullmatch=True)
indices = st.lists(words | st.builds(Split, words, words, st.integers(1, 64)), max_size=3).map(tuple)
names = st.lists(words, min_size=1, max_size=3).map(".".join)
numbers = st.floats(allow_nan=False)


def nested(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    applied = st.sampled_from(sorted(OPERATORS)).flatmap(
        lambda op: st.tuples(*[inner] * OPERATORS[op].arity).map(lambda args: Apply(op, args))
    )
    reduced = st.builds(Reduce, st.sampled_from(sorted(REDUCERS)), st.lists(words, min_size=1, max_size=2).map(tuple), inner)
    return applied | reduced


exprs = st.recursive(st.builds(Access, names, indices) | st.builds(Const, numbers), nested, max_leaves=12)
paths = st.from_regex(r"([A-Za-z0-9_-]{1,4}(\.[A-Za-z0-9_-]{1,4}){0,2})?", fullmatch=True)


@st.composite
def declarations(draw):
    shape = tuple(draw(st.lists(st.integers(0, 5000), max_size=3)))
    levels = draw(st.lists(st.sampled_from(["dense", "compressed"]), min_size=len(shape), max_size=len(shape)))
    format = Format.of(*levels, order=tuple(draw(st.permutations(range(len(shape))))))
    chosen = draw(st.sampled_from([None, format, Format.parse("coo", len(shape)) if len(shape) > 1 else format]))
    return TensorType(draw(names), shape, chosen, draw(st.sampled_from(sorted(DTYPES))), draw(numbers))


programs_of_any_kind = st.builds(
    Program,
    st.lists(declarations(), max_size=3).map(tuple),
    st.lists(st.builds(Einsum, names, indices, exprs, st.builds(Location, paths)), max_size=3).map(tuple),
    st.lists(names, max_size=2).map(tuple),
    names,
)


@given(programs_of_any_kind)
@settings(max_examples=200)
def test_printing_and_parsing_is_the_identity(program):
    text = show(program)
    reparsed = parse(text)
    assert reparsed == program
    assert [e.location.path for e in reparsed.einsums] == [e.location.path for e in program.einsums]
    assert show(reparsed) == text


@given(data=st.data())
@settings(max_examples=50)
def test_programs_with_inferred_formats_read_back(programs, data):
    program = infer(data.draw(programs))
    assume(not any(math.isnan(t.fill) for t in program.tensors))  # NaN is not equal to itself
    assert parse(show(program)) == program


def test_places_are_each_line_once_and_not_too_many() -> None:
    einsums = [Einsum(f"T{n}", (), Const(1.0), Location(span=Span("m.mlir", 3 + n // 2, n + 1))) for n in range(10)]
    assert places_of(einsums[:4]) == "m.mlir:3, m.mlir:4"
    assert places_of(einsums) == "m.mlir:3, m.mlir:4, m.mlir:5 and 2 other places"
    assert places_of([Einsum("T", (), Const(1.0))]) == "the program"
