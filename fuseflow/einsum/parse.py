"""The parser of the text form of an Einsum program, which `fuseflow.einsum.text` prints. Each line holds one statement; a comment starts
with `#`.

    line       = "tensor" NAME "[" sizes "]" format? ("order" "(" dimensions ")")? "all"? ("block" BLOCK)? ("like" NAME)?
                 (DTYPE | "fill" number)*
               | "output" NAME ("," NAME)*  |  "program" NAME
               | NAME ("[" indices "]")? "=" keep? expression ("@" PATH)?
    keep       = "keep" "(" ("nonzero" | "threshold" number | largest) ")" | "mark" "(" largest ")"
    largest    = count ("of" count)? ("greatest" | "least")? "over" NAME ("," NAME)*
    expression = sum (COMPARISON sum)?
    sum        = term (("+" | "-") term)*
    term       = REDUCER "(" indices ")" term  |  unary (("*" | "/") unary)*
    unary      = "-" unary  |  number  |  NAME ("[" indices "]")?  |  OPERATOR "(" expressions ")"  |  "(" expression ")"
    indices    = index ("," index)*
    index      = NAME  |  NAME "*" size "+" NAME  |  "-"? part (("+" | "-") part)*
    part       = (size "*")? NAME  |  number

Parsing checks the form, and the names of operators and formats. `fuseflow.einsum.verify` checks the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Keep,
    Location,
    Program,
    Reduce,
    Split,
    TensorType,
    children,
)
from fuseflow.einsum.text import COMPARISON
from fuseflow.einsum.tokens import Token, TokenReader, is_number
from fuseflow.errors import TensorError, did_you_mean
from fuseflow.keep_rules import MAX_GROUP, NONZERO, SIGNED, By, Largest, Rule, Threshold, show_keep
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, parse_block
from fuseflow.tensors.dtypes import DTYPES

SYMBOLS: Final = {row.symbol: row for row in OPERATORS.values() if row.symbol}
_ADD: Final = OPERATORS["add"].precedence
_MUL: Final = OPERATORS["mul"].precedence

MAX_DEPTH: Final = 100
"""The number of levels of an expression, at most. That is far more than a model has, and far less than Python's stack holds."""


def parse(text: str, file: str = "<text>") -> Program:
    """Return the program that the text means. Raises `ProgramError` with the line and column of the first mistake.

    >>> program = parse("tensor A[3, 4] csr\\n tensor x[4]\\n y[i] = sum(j) A[i, j] * x[j]\\n output y")
    >>> program.einsums[0].operands
    ('A', 'x')
    """
    tensors: list[TensorType] = []
    einsums: list[Einsum] = []
    outputs: list[str] = []
    name = "program"
    for number, raw in enumerate(text.splitlines(), 1):
        line = _Line(raw.partition("#")[0], file, number)
        if line.peek().kind == "end":
            continue
        first = line.peek()
        keyword = line.take().text if line.peek(1).kind == "name" else ""
        match keyword:
            case "tensor":
                tensors.append(line.declaration())
            case "output":
                outputs += line.names("an output")
            case "program":
                name = line.take().text
            case "":
                einsums.append(line.statement())
            case _:
                hint = did_you_mean(keyword, ["tensor", "output", "program"])
                line.fail(f"a line cannot start with `{keyword} {line.peek().text}`", first, hint)
        line.finish()
    return Program(_with_roots(tensors), tuple(einsums), tuple(outputs), name)


def _with_roots(tensors: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Return declarations in which a tensor that is like one that is like W is like W itself."""
    above = {t.name: t.like for t in tensors if t.like}
    for _ in above:
        above = {name: above.get(other, other) for name, other in above.items()}
    return tuple([replace(t, like=above[t.name]) if t.like else t for t in tensors])


def parse_expr(text: str, file: str = "<text>") -> Expr:
    """Return the expression that the text means, such as `sum(k) A[i, k] * B[k, j]`. Raises `ProgramError` as `parse` does."""
    line = _Line(text, file, 1)
    body = line.body()
    line.finish()
    return body


class _Line(TokenReader):
    """A line of a program. There is one method for each rule of the grammar."""

    def names(self, description: str) -> tuple[str, ...]:
        """Read names between commas. In errors, `description` is a name."""
        names = [self.expect_name(description)]
        while self.accept(","):
            names.append(self.expect_name(description))
        return tuple(names)

    def declaration(self) -> TensorType:
        span = self.span()
        name = self.expect_name("a tensor name")
        shape = self.shape(name)
        format = self.format(len(shape))
        block = self.block(len(shape)) if self.accept("block") else ()
        like = self.expect_name("the tensor that it is like") if self.accept("like") else ""
        dtype, fill = None, None
        while self.peek().kind == "name":
            if dtype is None and self.peek().text in DTYPES:
                dtype = self.take().text
            elif fill is None and self.accept("fill"):
                fill = self.signed_number()
            else:
                hint = did_you_mean(self.peek().text, [*DTYPES, "block", "like", "fill"])
                self.fail(f"expected one dtype and one `fill` at most, found {self.show_next()}", hint=hint)
        return TensorType(name, shape, format, dtype or "f32", fill or 0.0, span, block, like)

    def shape(self, name: str) -> tuple[int, ...]:
        self.expect("[", f"and the sizes of `{name}`")
        sizes: list[int] = []
        while not self.accept("]"):
            sizes.append(self.expect_integer(f"a size of `{name}`"))
            if self.peek().text != "]":
                self.expect(",", f"or `]` after a size of `{name}`")
        return tuple(sizes)

    def format(self, rank: int) -> Format | None:
        """Read the format, as a slice of the line that `Format.parse` reads."""
        first = self.peek()
        if first.text == "(":
            self.skip_group()
        elif first.kind == "name" and first.text not in (*DTYPES, "block", "like", "fill"):
            self.take()
            if self.peek().text == "(":
                self.skip_group()
        else:
            return None
        if self.accept("order"):
            if self.peek().text != "(":
                self.fail(f"expected the dimensions in storage order, as in `order (1, 0)`, found {self.show_next()}")
            self.skip_group()
        self.accept("all")
        last = self.tokens[self.at - 1]
        try:
            return Format.parse(self.text[first.start : last.start + len(last.text)], rank)
        except TensorError as error:
            self.fail(error.message, first, error.hint)

    def block(self, rank: int) -> Block:
        token = self.take()
        try:
            return parse_block(token.text, rank)
        except TensorError as error:
            self.fail(error.message, token, error.hint)

    def skip_group(self) -> None:
        """Take all tokens up to the parenthesis that closes the next one."""
        opened, depth = self.peek(), 0
        while True:
            token = self.take()
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0:
                return
            if token.kind == "end":
                self.fail("this `(` is not closed", opened)

    def signed_number(self) -> float:
        sign = -1.0 if self.accept("-") else 1.0
        if not is_number(self.peek()):
            self.fail(f"expected a number, found {self.show_next()}")
        return sign * float(self.take().text)

    def statement(self) -> Einsum:
        span = self.span()
        name = self.expect_name("a statement, a declaration or an output")
        indices = self.indices()
        self.expect("=", f"after the left side of `{name}`")
        body = self.body()
        path = self.take().text[1:] if self.peek().kind == "path" else ""
        return Einsum(name, indices, body, Location(path, span))

    def body(self) -> Expr:
        """Read a whole expression, which must not be so deep that functions over it exhaust the stack."""
        first = self.peek()
        try:
            body = self.keep() if self.at_keep() else self.expression()
        except RecursionError:
            body = None
        if body is None or _depth(body) > MAX_DEPTH:
            self.fail(f"an expression of more than {MAX_DEPTH} operators one inside the other", first, "split it into statements")
        return body

    def at_keep(self) -> bool:
        return self.peek().text in ("keep", "mark") and self.peek(1).text == "("

    def keep(self) -> Keep:
        verb = self.take().text
        self.take()
        if verb == "keep" and self.peek().text in ("nonzero", "threshold"):
            rule: Rule = NONZERO if self.take().text == "nonzero" else Threshold(self.signed_number())
            self.expect(")", f"after {rule}")
            return Keep(rule, (), self.expression())
        others = "`nonzero`, `threshold`, or " * (verb == "keep")
        count, every = self.expect_integer(f"{others}how many entries to {verb}"), self.expect_group()
        by: By = next((by for by in SIGNED if self.accept(by)), "magnitude")
        rule = Largest(count, every, by, verb == "mark")
        self.expect("over", f"and the indices in which {rule} are kept, as in `{show_keep(rule, 'j')}`")
        over = self.names("an index")
        self.expect(")", "after the indices")
        return Keep(rule, over, self.expression())

    def expect_group(self) -> int:
        """Read the size of a group, if there is one. 0 is the whole fiber, so it is refused as a size."""
        if not self.accept("of"):
            return 0
        token = self.peek()
        size = self.expect_integer("the number of coordinates of a group, as in `2 of 4`")
        if size == 0:
            self.fail("a group cannot have 0 coordinates", token, f"groups have between 1 and {MAX_GROUP}")
        return size

    def indices(self) -> tuple[Index, ...]:
        """Read an index list in brackets; a scalar may have none."""
        parsed: list[Index] = []
        if not self.accept("["):
            return ()
        while not self.accept("]"):
            parsed.append(self.index())
            if self.peek().text != "]":
                self.expect(",", "or `]` after an index")
        return tuple(parsed)

    def index(self) -> Index:
        if self.peek().kind == "name" and self.peek(1).text == "*":
            return self.split()
        if self.peek().kind == "name" and self.peek(1).text not in ("+", "-"):
            return self.take().text
        terms, offset, sign = list[tuple[str, int]](), 0, -1 if self.accept("-") else 1
        while True:
            size, name = self.index_part()
            terms += [(name, sign * size)] if name else []
            offset += 0 if name else sign * size
            if self.peek().text not in ("+", "-"):
                return Affine(tuple(terms), offset)
            sign = 1 if self.take().text == "+" else -1

    def index_part(self) -> tuple[int, str]:
        """Read a term of an affine index, or its offset, which has no name."""
        if self.peek().kind == "name":
            name = self.take()
            if self.peek().text == "*":
                hint = f"write `2*{name.text}`; a split such as `h*64 + d` stands alone"
                self.fail("the factor of a term stands before it", name, hint)
            return 1, name.text
        size = self.expect_integer("an index, such as `i`, `h*64 + d`, `2*p + r - 1` or `3`")
        return (size, self.expect_name("an index after its factor")) if self.accept("*") else (size, "")

    def split(self) -> Split:
        outer = self.take().text
        self.expect("*", "and the size of the inner index of a split")
        size = self.expect_integer("the size of the inner index of a split such as `h*64 + d`")
        self.expect("+", "and the inner index of a split such as `h*64 + d`")
        inner = self.expect_name("the inner index")
        if self.peek().text in ("+", "-"):
            hint = f"write `{size}*{outer} + {inner} ...` for an index with an offset"
            self.fail(f"expected the end of the split `{outer}*{size} + {inner}`, found {self.show_next()}", hint=hint)
        return Split(outer, inner, size)

    # Expressions

    def expression(self) -> Expr:
        left = self.sum()
        row = SYMBOLS.get(self.peek().text)
        if row is None or row.precedence != COMPARISON:
            return left
        self.take()
        result = Apply(row.name, (left, self.sum()))
        next_row = SYMBOLS.get(self.peek().text)
        if next_row is not None and next_row.precedence == COMPARISON:
            self.fail("comparisons do not chain", hint="parenthesise one of them")
        return result

    def sum(self) -> Expr:
        left = self.term()
        while (row := SYMBOLS.get(self.peek().text)) and row.precedence == _ADD:
            self.take()
            left = Apply(row.name, (left, self.term()))
        return left

    def term(self) -> Expr:
        if self.at_reduction():
            op = self.take().text
            self.expect("(", "and the reduced indices")
            over = self.names("a reduced index")
            self.expect(")", "after the reduced indices")
            return Reduce(op, over, self.term())
        left = self.unary()
        while (row := SYMBOLS.get(self.peek().text)) and row.precedence == _MUL:
            self.take()
            left = Apply(row.name, (left, self.unary()))
        return left

    def at_reduction(self) -> bool:
        """Return whether a reduction starts here. `max` and `min` are operators too; they are reductions where names in parentheses are
        directly followed by an operand.
        """
        name = self.peek().text
        if name not in REDUCERS or self.peek(1).text != "(":
            return False
        if name not in OPERATORS:
            return True
        ahead = 2
        while self.peek(ahead).kind == "name" and self.peek(ahead + 1).text == ",":
            ahead += 2
        operand = self.peek(ahead + 2)
        closed = self.peek(ahead).kind == "name" and self.peek(ahead + 1).text == ")"
        return closed and (operand.kind in ("name", "number") or operand.text == "(")

    def unary(self) -> Expr:
        token = self.peek()
        if token.text == "-":
            self.take()
            if is_number(self.peek()):
                return Const(-float(self.take().text))
            return Apply("neg", (self.unary(),))
        if self.at_reduction():
            hint = f"parenthesise the reduction: `({token.text}(...) ...)`"
            self.fail(f"`{token.text}(...)` inside a product or after a minus", hint=hint)
        if self.accept("("):
            inner = self.expression()
            self.expect(")", "to close a parenthesis")
            return inner
        if is_number(token) and self.peek(1).text != "[":
            return Const(float(self.take().text))
        if self.at_keep():
            hint = "a `keep` stands at the head of a right side: give it a statement of its own"
            self.fail("`keep(...)` inside an expression", hint=hint)
        name = self.expect_name("an operand")
        if self.peek().text == "(":
            return self.call(token)
        return Access(name, self.indices())

    def call(self, token: Token) -> Expr:
        row = OPERATORS.get(token.text)
        if row is None:
            self.fail(f"unknown operator `{token.text}`", token, did_you_mean(token.text, [*OPERATORS, *REDUCERS]))
        self.take()
        args = [self.expression()]
        while self.accept(","):
            args.append(self.expression())
        self.expect(")", f"to close `{token.text}(`")
        if len(args) != row.arity:
            hint = f"to reduce a negated operand, parenthesise it: `{token.text}(i) (-A[i])`" if token.text in REDUCERS else ""
            self.fail(f"operator `{token.text}` takes {row.arity} operands, not {len(args)}", token, hint)
        return Apply(token.text, tuple(args))


def _depth(node: Expr) -> int:
    depth, row = 0, [node]
    while row:
        depth, row = depth + 1, [child for above in row for child in children(above)]
    return depth
