"""The text form of an Einsum program. `show` prints what `fuseflow.einsum.parse` reads, without loss.

    tensor X[34, 8]  csr
    tensor W[8, 4]   dense
    T[i, j] = relu(sum(k) X[i, k] * W[k, j])  @layer1
    output T

A reduction takes one product as its body: it binds tighter than `+` and looser than `*`. Everything else is parenthesised. A `keep` stands
at the head of a right side, and is about all of it: `H[i, j] = keep(2 of 4 over j) T[i, j] + B[j]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Index, Keep, Program, Reduce, TensorType
from fuseflow.number_literals import show_number
from fuseflow.ops import OPERATORS
from fuseflow.tensors.blocks import block_text

HEAD: Final = 0
"""The precedence of a `keep`, which is about a whole right side."""
COMPARISON: Final = 1
TERM: Final = 2.5
"""The precedence of a reduction, which lies between `+` (2) and `*` (3)."""
UNARY: Final = 4
ATOM: Final = 5

_WIDEST = 40  # names longer than this do not push the others' columns


def show(program: Program) -> str:
    """Return the program as text, with a newline at its end."""
    lines = [] if program.name == "program" else [f"program {program.name}"]
    lines += _columns([(f"tensor {t.name}[{', '.join(map(str, t.shape))}]", show_type(t)) for t in program.tensors], "  ")
    lines += _columns([(show_left(e), show_right(e)) for e in program.einsums], " = ")
    if program.outputs:
        lines.append(f"output {', '.join(program.outputs)}")
    return "".join(line + "\n" for line in lines)


def show_type(tensor: TensorType) -> str:
    """Return the part of a declaration after the shape: `csr block 16x16 f64 fill -inf`, `like W`."""
    words = [tensor.format.short()] if tensor.format is not None else []
    words += [f"block {block_text(tensor.block)}"] if tensor.block else []
    words += [f"like {tensor.like}"] if tensor.like else []
    words += [tensor.dtype] if tensor.dtype != "f32" else []
    words += [f"fill {show_number(tensor.fill)}"] if tensor.fill != 0 else []
    return " ".join(words)


def show_einsum(einsum: Einsum) -> str:
    """Return one statement on one line."""
    return f"{show_left(einsum)} = {show_right(einsum)}"


def show_left(einsum: Einsum) -> str:
    """Return the left side of a statement: `T[i, j]`."""
    return f"{einsum.name}[{show_indices(einsum.indices)}]"


def show_right(einsum: Einsum) -> str:
    """Return the right side of a statement, with the module path that it comes from: `relu(A[i, j]) @layer1`."""
    path = "_".join(einsum.location.path.split())  # a module may be called anything; the text ends a path at a space
    return show_expr(einsum.body) + (f"  @{path}" if path else "")


def show_indices(indices: tuple[Index, ...]) -> str:
    """Return an index list without its brackets: `i, h*64 + d`."""
    return ", ".join(map(str, indices))


def show_expr(node: Expr) -> str:
    """Return an expression with no more parentheses than it needs."""
    return _show(node)[0]


def _show(node: Expr) -> tuple[str, float]:
    """Return the text of an expression, and its precedence."""
    match node:
        case Const():
            text = show_number(node.value)
            return text, UNARY if text.startswith("-") else ATOM
        case Access():
            return f"{node.tensor}[{show_indices(node.indices)}]", ATOM
        case Reduce():
            body = _within(node.body, TERM)
            # `max(i, j) -x` would read as the pointwise maximum of two scalars, minus x.
            body = f"({body})" if body.startswith("-") else body
            return f"{node.op}({', '.join(node.over)}) {body}", TERM
        case Apply():
            return _show_apply(node)
        case Keep():
            return f"{node} {show_expr(node.body)}", HEAD
        case unknown:
            assert_never(unknown)


def _show_apply(node: Apply) -> tuple[str, float]:
    row = OPERATORS.get(node.op)
    if node.op == "neg" and len(node.args) == 1:
        return f"-{_within(node.args[0], ATOM, number=True)}", UNARY
    if row is None or not row.symbol or len(node.args) != 2:
        return f"{node.op}({', '.join(map(show_expr, node.args))})", ATOM
    left, right = node.args
    above = row.precedence + 0.25  # binds tighter than this operator
    first = _within(left, above if row.precedence == COMPARISON else row.precedence)
    return f"{first} {row.symbol} {_within(right, above)}", row.precedence


def _within(node: Expr, least: float, number: bool = False) -> str:
    """Return the text of an operand that must bind at least as tightly as `least`. With `number`, a number is parenthesised, because `-`
    and `1` would be read as one number.
    """
    text, precedence = _show(node)
    return f"({text})" if precedence < least or (number and isinstance(node, Const)) else text


def _columns(rows: list[tuple[str, str]], between: str) -> list[str]:
    width = max((len(left) for left, _ in rows if len(left) <= _WIDEST), default=0)
    return [f"{left:<{width}}{between}{right}".rstrip() for left, right in rows]


SHOWN_PLACES = 3
"""The places that a message lists, at most."""


def places_of(einsums: Iterable[Einsum]) -> str:
    """Return the files and lines of some Einsums, each once: `m.mlir:13, m.mlir:19`."""
    spans = [e.location.span for e in einsums if e.location.span is not None]
    places = list(dict.fromkeys(f"{span.file}:{span.line}" for span in spans))
    more = f" and {len(places) - SHOWN_PLACES} other places" if len(places) > SHOWN_PLACES else ""
    return ", ".join(places[:SHOWN_PLACES]) + more or "the program"
