"""Statements, and chains of statements that models are full of. Each draws into a builder and takes at most the room it is given."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Reduce, accesses, free_indices

from .bodies import REDUCTIONS, aligned, binary, branches, contraction, free_body, inside_and_outside, pointwise, unary
from .builder import SPREAD, Builder

KINDS = ("free", "contraction", "pointwise")


def statement(b: Builder, leaves: int) -> None:
    """One statement: any expression, a product, an operator of two tensors, a reduction, a tensor joined with its transpose, in two
    branches, or with a reduction of itself."""
    kind = b.one((*KINDS, *KINDS, "reduction", "transpose", *["branches"] * 3, "inside", "inside"))
    match kind:
        case "contraction":
            body = contraction(b)
            shared = meeting(body)
            keep = [v for v in free_indices(body) if v not in shared or b.chance(4)]
            b.state(b.shuffled(keep)[:4], unary(b, body) if b.chance(8) else body, b.one(REDUCTIONS) if b.chance(4) else "sum")
        case "pointwise":
            body = pointwise(b)
            b.state(b.shuffled(free_indices(body)), unary(b, body) if b.chance(3) else body)
        case "reduction":
            x = b.access(b.operand(1))
            keep = b.some(x.names)[: max(0, len(x.names) - 1)]
            b.state(keep, unary(b, x) if b.chance(2) else x, b.one(REDUCTIONS))
        case "branches" | "inside":
            body = branches(b) if kind == "branches" else inside_and_outside(b)
            b.state(b.shuffled(free_indices(body))[: b.one((2, 4))], body, b.one(REDUCTIONS))
        case "transpose":
            x = b.access(b.operand(2))
            pairs = [(u, v) for u in x.names for v in x.names if u < v and b.sort(u) == b.sort(v)]
            swap = {p: q for u, v in pairs[:1] for p, q in ((u, v), (v, u))}
            body = binary(b, x, Access(x.tensor, tuple(swap.get(v, v) for v in x.names)))
            b.state(b.shuffled(free_indices(body)), body)
        case _:
            body = free_body(b, b.one(range(1, leaves + 1)))
            keep = b.some(free_indices(body))[:3]
            if b.chance(10):
                keep.insert(b.one(range(len(keep) + 1)), SPREAD)
            b.state(keep, body, b.one(REDUCTIONS))


def chain(b: Builder, room: int) -> None:
    """A softmax, masked or not, a norm, a diamond, a tensor multiplied twice or a reduction whose absent entries count: three statements
    or more if there is room."""
    kinds = [k for k, least in (("softmax", 3), ("norm", 3), ("diamond", 3), ("twice", 2), ("absent", 2)) if least <= room]
    x = b.access(b.operand(1))
    if not kinds or not x.names:
        return statement(b, 2)
    match b.one(kinds):
        case "softmax":
            softmax(b, x, room)
        case "norm":
            norm(b, x, room)
        case "diamond":
            diamond(b, x, room)
        case "absent":
            absent(b)
        case _:
            twice(b, x)


def softmax(b: Builder, x: Access, room: int) -> None:
    """Over any axis, masked or not; the sum in a statement of its own or inside the quotient."""
    v = b.one(x.names)
    rest = tuple(w for w in x.names if w != v)
    mask = b.access(b.operand(1), x.names)
    if room >= 4 and set(mask.names) <= set(x.names) and b.chance(2):
        x = read(b, b.state(x.names, Apply("where", (Apply("eq", (mask, Const(0.0))), Const(-math.inf), x))), x.names)
        room -= 1
    top = read(b, b.state(rest, x, "max"), rest)
    exp = read(b, b.state(x.names, Apply("exp", (Apply("sub", (x, top)),))), x.names)
    total: Expr
    if room >= 4 and b.chance(2):
        total = read(b, b.state(rest, exp), rest)
    else:
        u = b.new(b.sort(v), (*x.names, *exp.names))
        total = Reduce("sum", (u,), Access(exp.tensor, tuple(u if w == v else w for w in exp.names))) if v in exp.names else exp
    b.state(b.shuffled(x.names), Apply("div", (exp, total)))


def norm(b: Builder, x: Access, room: int) -> None:
    """Mean and variance over any axis."""
    v = b.one(x.names)
    rest = [w for w in x.names if w != v]
    count = Const(float(max(1, b.size[b.sort(v)])))
    mean = read(b, b.state(rest, Apply("div", (Reduce("sum", (v,), x), count))), rest)
    centred = read(b, b.state(x.names, Apply("sub", (x, mean))), x.names)
    if room < 4:
        b.state(rest, Apply("mul", (centred, centred)))
        return
    variance = read(b, b.state(rest, Apply("mul", (centred, centred))), rest)
    scale = Apply("rsqrt", (Apply("add", (variance, Const(1.0))),))
    b.state(b.shuffled(x.names), Apply("mul", (centred, scale)))


def diamond(b: Builder, x: Access, room: int) -> None:
    """A tensor, often a product, that two statements read whose results meet."""
    if room >= 4 and b.chance(2):
        body = contraction(b)
        keep = [v for v in free_indices(body) if v not in meeting(body)][:3]
        x = read(b, b.state(keep, body), keep)
    left = read(b, b.state(x.names, unary(b, x)), x.names)
    other = b.access(b.operand(), x.names)
    right = read(b, b.state(x.names, binary(b, x, other), b.one(REDUCTIONS)), x.names)
    body = binary(b, left, right)
    b.state(b.shuffled(free_indices(body)), body)


def twice(b: Builder, x: Access) -> None:
    """B (A B), A (A X): one matrix in two products."""
    y = b.access(b.operand(1), x.names)
    body = Apply("mul", (x, y))
    product = b.state([v for v in free_indices(body) if v not in meeting(body)][:3], body)
    again = b.access(product)
    factor = b.access(b.one((x.tensor, y.tensor)), again.names)
    body = Apply("mul", (factor, again))
    b.state([v for v in free_indices(body) if v not in meeting(body)][:4], body)


def absent(b: Builder) -> None:
    """A reduction whose absent entries are not 0, met by a tensor that stores others."""
    x = b.access(b.operand(2))
    keep = b.shuffled(x.names)[: max(1, len(x.names) - 1)]
    f: Expr = Apply(b.one(("cos", "sigmoid")), (x,)) if b.chance(2) else Apply("add", (x, Const(b.one((1.0, -1.0)))))
    t = read(b, b.state(keep, f, b.one(REDUCTIONS)), keep)
    other = aligned(b, b.one([n for n in b.sorts if len(b.sorts[n]) <= len(keep)] or [t.tensor]), t)
    body = Apply(b.one(("add", "sub", "max", "min")), (t, other) if b.chance(2) else (other, t))
    b.state(b.shuffled(free_indices(body)), body)


def read(b: Builder, name: str, at: Sequence[str]) -> Access:
    """A result at these indices if it has their sizes (a statement may have been replaced), else anywhere."""
    return Access(name, tuple(at)) if b.sorts[name] == tuple(map(b.sort, at)) else b.access(name, at)


def meeting(body: Expr) -> set[str]:
    """The indices that several operands of a product share: what it is reduced over."""
    counts = Counter(v for access in accesses(body) for v in access.names)
    return {v for v, count in counts.items() if count > 1}
