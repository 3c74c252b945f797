"""The parser: what it accepts beyond what is printed, and where it says that a text is wrong."""

from __future__ import annotations

import pytest

from fuseflow.einsum.nodes import Access, Apply, Const, Reduce, Split
from fuseflow.einsum.parse import parse, parse_expr
from fuseflow.errors import ProgramError, Span


def test_scalars_need_no_brackets():
    program = parse("tensor s[]\nt = s * 2\noutput t")
    assert program.einsums[0].indices == ()
    assert program.einsums[0].body == Apply("mul", (Access("s", ()), Const(2.0)))


def test_outputs_may_stand_in_one_line_or_several():
    assert parse("output Y, Z\noutput a.b").outputs == ("Y", "Z", "a.b")


def test_comments_and_empty_lines_are_skipped():
    assert parse("# nothing\n\n   # more\noutput Y # last\n").outputs == ("Y",)


def test_a_statement_keeps_its_place_and_module_path():
    location = parse("\n  y[i] = x[i]   @layer1.lin  # here", "model.ein").einsums[0].location
    assert location.path == "layer1.lin"
    assert location.span == Span("model.ein", 2, 3)


@pytest.mark.parametrize("word", ["tensor", "output", "program", "sum", "max", "inf", "f32", "fill", "order"])
def test_keywords_are_also_names(word):
    program = parse(f"tensor {word}[2]\n{word}.x[i] = {word}[i]\n{word} = sum(i) {word}[i]\noutput {word}")
    assert program.tensors[0].name == program.einsums[1].name == program.outputs[0] == word


def test_max_of_indices_is_a_reduction_and_max_of_operands_is_pointwise():
    reduced = parse_expr("max(a, b) x[a, b]")
    assert isinstance(reduced, Reduce)
    assert reduced.over == ("a", "b")
    assert parse_expr("max(a, b)") == Apply("max", (Access("a", ()), Access("b", ())))
    assert parse_expr("max(a, b) - x") == Apply("sub", (parse_expr("max(a, b)"), Access("x", ())))
    assert parse_expr("max(j) (x[j])") == Reduce("max", ("j",), Access("x", ("j",)))
    assert parse_expr("max(x[j], 2)") == Apply("max", (Access("x", ("j",)), Const(2.0)))


def test_a_reduction_binds_one_product_term():
    assert parse_expr("sum(k) a[k] * b[k] + c") == Apply("add", (parse_expr("sum(k) (a[k] * b[k])"), Access("c", ())))


def test_operators_with_a_symbol_have_names_too():
    assert parse_expr("add(a, mul(b, c))") == parse_expr("a + b * c")


def test_splits():
    assert parse_expr("Q[i, h*64 + d]") == Access("Q", ("i", Split("h", "d", 64)))


WRONG = {
    "a character": ("y[i] = x[i] ? 2", 13, "unexpected character `?`"),
    "an unclosed parenthesis": ("y[i] = (x[i] + 2", 17, "expected `)` to close a parenthesis, found the end of the line"),
    "an unclosed bracket": ("y[i = x[i]", 5, "expected `,` or `]` after an index, found `=`"),
    "two operands": ("y[i] = x[i] x[i]", 13, "unexpected `x`"),
    "no operand": ("y[i] = x[i] *", 14, "expected an operand, found the end of the line"),
    "no equals sign": ("y[i]", 5, "expected `=` after the left side of `y`, found the end of the line"),
    "a number on the left": ("2 = x", 1, "expected a statement, a declaration or an output, found `2`"),
    "an operator": ("y[i] = rleu(x[i])", 8, "unknown operator `rleu`\n  hint: did you mean `relu`?"),
    "a reduction": ("y[i] = summ(k) x[i, k]", 8, "unknown operator `summ`\n  hint: did you mean `sum`?"),
    "an arity": ("y[i] = where(x[i], 2)", 8, "operator `where` takes 3 operands, not 2"),
    "a negated reduction": ("y = max(i) - x[i]", 5, "parenthesise it: `max(i) (-A[i])`"),
    "a reduction in a product": ("y[i] = a[i] / sum(k) x[k]", 15, "parenthesise the reduction: `(sum(...) ...)`"),
    "a chain of comparisons": ("y[i] = a[i] < b[i] < c[i]", 20, "comparisons do not chain"),
    "a keyword": ("tensr A[2]", 1, "a line cannot start with `tensr A`\n  hint: did you mean `tensor`?"),
    "a size": ("tensor A[n]", 10, "expected a size of `A`, found `n`"),
    "a fractional size": ("tensor A[2.5]", 10, "expected a size of `A`, found `2.5`"),
    "a format": ("tensor A[2, 2] crs", 16, "unknown format `crs`\n  hint: did you mean `csr`?"),
    "a level": ("tensor A[2] (compresed)", 13, "unknown level format `compresed`\n  hint: did you mean `compressed`?"),
    "a rank": ("tensor A[2, 2] (dense)", 16, "format `(dense)` has 1 level, the tensor 2 dimensions"),
    "an order": ("tensor A[2, 2] (dense, dense) order (0, 0)", 16, "mode order (0, 0) is not a permutation"),
    "an order without dimensions": ("tensor A[2] (dense) order 0", 27, "expected the dimensions in storage order"),
    "an unclosed format": ("tensor A[2] (dense", 13, "this `(` is not closed"),
    "a dtype": (
        "tensor A[2] dense f46",
        19,
        "expected one dtype and one `fill` at most, found `f46`\n  hint: did you mean `f64`?",
    ),
    "a fill": ("tensor A[2] fill x", 18, "expected a number, found `x`"),
    "a second fill": ("tensor A[2] fill 1 f32 fill 2", 24, "expected one dtype and one `fill` at most, found `fill`"),
    "a split size": ("y[i] = x[h*d + i]", 12, "expected the size of the inner index of a split such as `h*64 + d`, found `d`"),
    "half a split": ("y[i] = x[h*4]", 13, "expected `+` and the inner index"),
    "an empty reduction": ("y = sum() x", 9, "expected a reduced index, found `)`"),
    "an empty output": ("output Y,", 10, "expected an output, found the end of the line"),
    "an empty program name": ("program a b", 11, "unexpected `b`"),
}


@pytest.mark.parametrize("body", ["(" * 5000 + "x" + ")" * 5000, "-" * 5000 + "x", " + ".join(["x"] * 5000)])
def test_expressions_that_would_exhaust_the_stack_are_refused(body):
    with pytest.raises(ProgramError, match="more than 100 operators one inside the other") as error:
        parse("y = " + body)
    assert error.value.span == Span("<text>", 1, 5)


def test_a_long_sum_is_fine():
    parse("y = " + " + ".join(["x"] * 99))


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_shown_at_their_place(case):
    text, column, message = WRONG[case]
    with pytest.raises(ProgramError) as error:
        parse("# a program\n" + text, "p.ein")
    assert error.value.span == Span("p.ein", 2, column)
    assert message in str(error.value)
