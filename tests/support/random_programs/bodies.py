"""Expressions: operators of one or two operands, and bodies of a few leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Reduce, free_indices

from .builder import Builder, reduced

UNARY = ("copy", "neg", "abs", "relu", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid")
BINARY = ("add", "sub", "mul", "div", "pow", "max", "min", "eq", "ne", "lt", "le", "gt", "ge")
USUAL = ("mul", "mul", "mul", "add", "add", "sub", "max", "min", "div")
REDUCTIONS = ("sum", "sum", "sum", "max", "min", "prod")
NUMBERS = (0.0, 1.0, 2.0, -1.0, 0.5)


def unary(b: Builder, x: Expr) -> Expr:
    """A function of one expression, where it needs it at a tame argument; or an operator with a number on either side."""
    if b.chance(3):
        op, number = b.one(BINARY), Const(b.one(NUMBERS))
        if op == "pow":
            return Apply(op, (x, Const(b.one((0.0, 1.0, 2.0, 3.0))))) if b.chance(2) else Apply(op, (Const(2.0), tame(x)))
        return Apply(op, (x, number) if b.chance(2) else (number, x))
    op = b.one((*UNARY, "square", "mask"))
    match op:
        case "square":
            return Apply("mul", (x, x))
        case "mask":
            number, inside = Const(b.one((-math.inf, 0.0, 1.0))), Apply("eq", (x, Const(0.0)))
            return Apply("where", (inside, number, x) if b.chance(2) else (inside, x, number))
        case "exp":
            return Apply(op, (tame(x),))
        case "log" | "sqrt" | "rsqrt" if not b.chance(4):
            return Apply(op, (Apply("add", (Apply("abs", (x,)), Const(1.0))),))
        case _:
            return Apply(op, (x,))


def tame(x: Expr) -> Expr:
    return Apply("min", (x, Const(2.0)))


def binary(b: Builder, x: Expr, y: Expr) -> Expr:
    """An operator of two expressions; divisors mostly positive, exponents small."""
    op = b.one((*USUAL, *USUAL, *BINARY, "mask", "choose"))
    if b.chance(2):
        x, y = y, x
    match op:
        case "mask":
            return Apply("where", (Apply("eq", (y, Const(0.0))), Const(-math.inf), x))
        case "choose":
            return Apply("where", (x, y, Const(b.one(NUMBERS))) if b.chance(2) else (x, Const(b.one(NUMBERS)), y))
        case "div" if not b.chance(4):
            return Apply("div", (x, Apply("add", (Apply("mul", (y, y)), Const(1.0)))))
        case "pow":
            return Apply("pow", (x, Apply("relu", (tame(y),))))
        case _:
            return Apply(op, (x, y))


def expression(b: Builder, leaves: int, near: Sequence[str], bound: set[str]) -> Expr:
    """An expression of so many leaves; `bound` collects the indices that it reduces inside, which nothing outside may use."""
    if leaves == 1:
        return b.access(b.operand(), near, bound)
    kind = b.one(range(12))
    if kind < 3:
        return unary(b, expression(b, leaves - 1, near, bound))
    if kind == 3:
        inside = inner_reduction(b, expression(b, leaves - 1, near, bound), bound)
        return binary(b, inside, b.access(b.operand(), near, bound))
    first = expression(b, leaves - 1, near, bound)
    second = b.access(b.operand(), (*near, *(v for v in free_indices(first) if v not in near)), bound)
    if kind == 4 and leaves > 2:
        return Apply("where", (second, first, b.access(b.operand(), free_indices(first), bound)))
    return binary(b, first, second)


def inner_reduction(b: Builder, x: Expr, bound: set[str]) -> Expr:
    over = tuple(b.some(free_indices(x), 1)[:2])
    bound |= set(over)
    return Reduce(b.one(REDUCTIONS), over, x) if over else x


def free_body(b: Builder, leaves: int) -> Expr:
    """An expression in which no index is both reduced inside and used outside."""
    body = expression(b, leaves, (), set())
    return body if not reduced(body) & set(free_indices(body)) else b.access(b.operand())


def contraction(b: Builder) -> Expr:
    """A product of two or three tensors that share indices, in any order of modes."""
    x = b.access(b.operand(1))
    y = b.access(b.operand(1), x.names)
    product = Apply("mul", (x, y))
    if b.chance(5):
        product = Apply("mul", (product, b.access(b.operand(1), free_indices(product))))
    return product


def pointwise(b: Builder) -> Expr:
    """An operator of two tensors on the indices of one of them."""
    x = b.access(b.operand(1))
    wanted = sorted(b.sorts[x.tensor])
    like = [n for n, sorts in b.sorts.items() if sorted(sorts) == wanted] if b.chance(2) else list(b.sorts)
    return binary(b, x, aligned(b, b.one(like), x))


def branches(b: Builder) -> Expr:
    """One tensor in two branches that may hide its entries from each other: x*q + x*r, x*q + x, behind a mask now and then."""
    x = b.access(b.operand(1))
    like = [n for n in b.sorts if set(b.sorts[n]) <= set(b.sorts[x.tensor])]

    def branch() -> Expr:
        other = aligned(b, b.one(like), x)
        return Apply("mul", (x, other)) if b.chance(2) else binary(b, x, other)

    body = Apply(b.one(("add", "add", "max", "sub", "mul")), (branch(), x if b.chance(4) else branch()))
    if b.chance(3):
        body = Apply("where", (Apply("eq", (aligned(b, b.one(like), x), Const(0.0))), Const(-math.inf), body))
    return body


def inside_and_outside(b: Builder) -> Expr:
    """A tensor with a reduction of itself, over an index of its own or across two: A[i, j] + sum(k) A[i, k] * B[k, j]."""
    x = b.access(b.operand(1))
    if not x.names:  # there are only scalars
        return unary(b, x)
    index = b.one(x.names)
    u = b.new(b.sort(index), x.names)
    inner = Access(x.tensor, tuple(u if v == index else v for v in x.names))
    body: Expr = inner
    if b.chance(2):
        body = Apply("mul", (inner, b.access(b.operand(1), (u, *x.names))))
    over = (u, *(v for v in free_indices(body) if v not in x.names and v != u))
    return binary(b, x, Reduce(b.one(REDUCTIONS), over, body))


def aligned(b: Builder, name: str, to: Access) -> Access:
    """A tensor at the indices of an access, in their order where the sizes allow it: equal tensors are the same view, mostly."""
    taken: list[str] = []
    for sort in b.sorts[name]:
        fits = [v for v in to.names if b.sort(v) == sort and v not in taken]
        taken.append(fits[0] if fits else b.new(sort, (*to.names, *taken)))
    return Access(name, tuple(taken))
