"""Programs with what real models have beside products: slices with offsets and strides, windows, gathers and scatters by known positions,
concatenations, maxima over the neighbours that a pattern has, and the largest entries of each row."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch_oracle
from hypothesis import assume
from hypothesis import strategies as st

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Keep,
    Program,
    Reduce,
    TensorType,
    free_indices,
)
from fuseflow.einsum.selections import replace_affine
from fuseflow.errors import ProgramError
from fuseflow.keep_rules import Largest, Rule
from fuseflow.schedule import Schedule
from fuseflow.tensors import from_coordinates
from fuseflow.tensors.dtypes import dtype_name

from .bodies import REDUCTIONS, binary, unary
from .builder import Builder
from .case import Case
from .chains import chain, read, statement
from .data import formats, tensors
from .plans import partition, settings

SIZES = ((3, 2), (2, 3), (3, 3), (2, 4), (4, 2), (3, 1), (1, 1), (3, 0))
KINDS = ("offset", "stride", "window", "gather", "scatter", "concatenation", "pattern", "largest")
OFFSETS = (-2, -1, -1, 0, 1, 1, 2, 3)
FACTORS = (2, 2, 3, -1, -2)


class ViewBuilder(Builder):
    """Draws a program in which a third size is the sum of the two others: what a concatenation has, and a slice is taken of."""

    def __init__(self, draw: st.DrawFn) -> None:
        super().__init__(draw, SIZES)
        self.size["c"] = self.size["a"] + self.size["b"]

    def add_input(self) -> str:
        if self.tensors and self.chance(3):
            sorts = self.sorts[self.one(list(self.tensors))]
        else:
            rank = self.one((2, 2, 2, 1, 1, 3, 0))
            sorts = tuple(self.draw(st.lists(st.sampled_from("aaabbc"), min_size=rank, max_size=rank)))
        fill = self.one((0.0,) * 8 + (1.0, -math.inf))
        return self.give(sorts, self.draw(tensors(self.shape(sorts), fill)))

    def add_positions(self, rows: str, columns: str) -> str:
        """Add a selection: a matrix of ones, one in every row that takes something, in any format."""
        shape = self.shape((rows, columns))
        rng = np.random.default_rng(self.draw(st.integers(0, 2**16)))
        taken = np.arange(shape[0]) if self.chance(2) else np.nonzero(rng.random(shape[0]) < 0.7)[0]
        taken = taken if shape[1] else taken[:0]
        places = rng.integers(0, max(1, shape[1]), len(taken))
        ones = from_coordinates(shape, np.stack((taken, places)), np.ones(len(taken)), self.draw(formats(2)), 0.0)
        return self.give((rows, columns), ones)

    def state(self, kept: list[Index], body: Expr, op: str = "sum", rule: tuple[Rule, str] | None = None) -> str:  # type: ignore[override]
        """As every program does. The loops of selected coordinates, which the compiler adds, are loops of reductions too."""
        name = super().state(kept, body, op, rule)
        for access in self.einsums[-1].accesses:
            pairs = zip(access.indices, self.sorts[access.tensor], strict=True)
            self.space[name] *= math.prod(max(1, self.size[sort]) for index, sort in pairs if isinstance(index, Affine))
        return name

    def fair(self, einsum: Einsum, shape: tuple[int, ...]) -> torch_oracle.Evaluated | None:
        """As every program has it. What is kept is kept beside 0, which depends on the formats and the implicit values of operands."""
        if isinstance(einsum.body, Keep) and not may_keep(self.types, (*self.einsums, einsum)):
            return None
        return super().fair(einsum, shape)

    @property
    def types(self) -> tuple[TensorType, ...]:
        inputs = (TensorType(n, t.shape, t.format, dtype_name(t.dtype), t.fill) for n, t in self.tensors.items())
        return (*inputs, *self.declared)


def may_keep(types: tuple[TensorType, ...], einsums: tuple[Einsum, ...]) -> bool:
    """Whether the parts that the program keeps have a meaning. Raises `ProgramError` where anything else is wrong."""
    try:
        infer(replace_affine(Program(types, einsums, (einsums[-1].name,)))[0])
    except ProgramError as error:
        if "keeps entries beside the implicit value 0" not in error.message:
            raise
        return False
    return True


# Statements ------------------------------------------------------------------------------------------------------------------


def view_statement(b: ViewBuilder, room: int) -> None:
    """One statement that models have and products do not, or what every program has."""
    match b.one((*KINDS, *KINDS, "largest", "largest", "concatenation", *["usual"] * 5)):
        case "offset":
            sliced(b, 1)
        case "stride":
            sliced(b, b.one(FACTORS))
        case "window":
            window(b)
        case "gather":
            gather(b, turned=False)
        case "scatter":
            gather(b, turned=True)
        case "concatenation":
            concatenation(b)
        case "pattern":
            pattern(b)
        case "largest":
            largest(b)
        case _ if room >= 2 and b.chance(3):
            chain(b, room)
        case _:
            statement(b, 2)


def sliced(b: ViewBuilder, factor: int) -> None:
    """`T[i, j] = X[2*i + 1, j]`, one row `X[3, j]`, or an expression of such an access."""
    x = b.access(b.operand(1))
    if not x.names:
        return statement(b, 2)
    at = b.one(range(len(x.names)))
    others = tuple(v for v in x.names if v != x.names[at])
    extent = b.size[b.sort(x.names[at])]
    fresh = b.new(b.one("aabc"), x.names)
    offset = b.one(OFFSETS) if factor > 0 else extent - 1 + b.one((-1, 0, 0, 0, 1))
    index = Affine((), b.one(range(-1, extent + 1))) if b.chance(6) else Affine(((fresh, factor),), offset)
    shifted = Access(x.tensor, (*x.indices[:at], index, *x.indices[at + 1 :]))
    body = joined(b, shifted, (*others, *(v for v, _ in index.terms)))
    terms = [v for v, _ in index.terms]  # nothing else says how long they are: they are on the left side
    rest = b.shuffled([v for v in free_indices(body) if v not in terms])
    b.state(list(b.shuffled((*terms, *(rest if b.chance(2) else rest[:1])))), body, b.one(REDUCTIONS))


def window(b: ViewBuilder) -> None:
    """`T[p] = sum(r) W[r] * X[2*p + r - 1]`: a convolution, or a maximum over what a window holds."""
    x = b.access(b.operand(1))
    weights = [n for n, sorts in b.sorts.items() if sorts]
    if not x.names or not weights:
        return statement(b, 2)
    at = b.one(range(len(x.names)))
    others = tuple(v for v in x.names if v != x.names[at])
    w = b.access(b.one(weights), (), x.names)
    place = b.new(b.one("aabc"), (*x.names, *w.names))
    inner = b.one(w.names)
    index = Affine(((place, b.one((1, 1, 2, 2, 3))), (inner, b.one((1, 1, 1, 2, -1)))), b.one((-1, -1, 0, 0, 1)))
    shifted = Access(x.tensor, (*x.indices[:at], index, *x.indices[at + 1 :]))
    kept = b.shuffled((place, *b.some((*others, *(v for v in w.names if v != inner)))[:2]))
    if b.chance(3):
        outside = b.one((-math.inf, 0.0, 1.0))
        b.state(list(kept), Apply("where", (Apply("eq", (w, Const(0.0))), Const(outside), shifted)), b.one(("max", "max", "min")))
    else:
        b.state(list(kept), Apply("mul", (w, shifted) if b.chance(2) else (shifted, w)), b.one(("sum", "sum", "sum", "max")))


def gather(b: ViewBuilder, turned: bool) -> None:
    """`T[e, j] = sum(i) S[e, i] * X[i, j]`, or `T[i, j] = sum(e) S[e, i] * X[e, j]`, which adds up what goes to one place."""
    x = b.access(b.operand(1))
    if not x.names:
        return statement(b, 2)
    taken = b.one(x.names)
    sort, other = b.sort(taken), b.one("aabc")
    known = [n for n in positions(b) if b.sorts[n] == ((sort, other) if turned else (other, sort))]
    if not known or b.chance(2):
        known = [b.add_positions(sort, other) if turned else b.add_positions(other, sort)]
    place = b.new(other, x.names)
    s = Access(b.one(known), (taken, place) if turned else (place, taken))
    product = Apply("mul", (s, x) if b.chance(2) else (x, s))
    kept = tuple(place if v == taken else v for v in x.names)
    body: Expr = product
    if b.chance(3):  # what is taken meets another tensor in the same statement
        body = joined(b, Reduce("sum", (taken,), product), kept, (taken,))
    b.state(list(b.shuffled(kept)), body)


def positions(b: ViewBuilder) -> list[str]:
    """The selections that are inputs."""
    return [name for name, tensor in b.tensors.items() if is_selection(tensor.to_dense())]


def is_selection(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bool:
    """Whether a matrix has a one, and no row with more."""
    if array.ndim != 2 or not (array == 1).any():
        return False
    return bool(((array == 0) | (array == 1)).all() and ((array != 0).sum(1) <= 1).all())


def concatenation(b: ViewBuilder) -> None:
    """`T[i, j] = X[i + 0, j] + Y[i - 3, j]`: two parts, or a tensor and zeros at its end or its begin."""
    x = b.access(b.operand(1))
    if not x.names:
        return statement(b, 2)
    sorts = b.sorts[x.tensor]
    at = b.one([d for d, sort in enumerate(sorts) if sort != "c"] or [0])
    fits = [n for n, others in b.sorts.items() if _beside(sorts, others, at)]
    whole = b.new("c", x.names)
    second = b.one(fits) if fits and not b.chance(8) else None
    parts = [x.tensor, *([second] if second else [])]
    parts = list(b.shuffled(parts))
    offset, placed = 0 if second else b.one((0, 1)), list[Expr]()
    for name in parts:
        place = Affine(((whole, 1),), -offset)
        placed.append(Access(name, (*x.indices[:at], place, *x.indices[at + 1 :])))
        offset += b.size[b.sorts[name][at]]
    body = placed[0]
    for part in placed[1:]:
        body = Apply("add", (body, part))
    kept = (*x.names[:at], whole, *x.names[at + 1 :])
    b.state(list(kept if b.chance(2) else b.shuffled(kept)), unary(b, body) if b.chance(4) else body)


def _beside(sorts: tuple[str, ...], others: tuple[str, ...], at: int) -> bool:
    """Whether two tensors agree in all dimensions but one."""
    same = len(sorts) == len(others) and all(d == at or s == o for d, (s, o) in enumerate(zip(sorts, others, strict=True)))
    return same and "c" not in (sorts[at], others[at])


def pattern(b: ViewBuilder) -> None:
    """`T[i, j] = max(k) where(A[i, k] == 0, -inf, X[k, j])`: the largest of the neighbours that a pattern has."""
    a = b.access(b.operand(1))
    if not a.names:
        return statement(b, 2)
    over = b.one(a.names)
    candidates = [n for n, sorts in b.sorts.items() if b.sort(over) in sorts]
    x = b.access(b.one(candidates), a.names)
    op, absent = b.one((("max", -math.inf), ("max", -math.inf), ("min", math.inf)))
    value: Expr = b.one((x, a, Apply("add", (a, x)), Apply("mul", (a, x))))
    body = Apply("where", (Apply("eq", (a, Const(0.0))), Const(absent), value))
    kept = [v for v in free_indices(body) if v != over][:3]
    name = b.state(list(b.shuffled(kept)), body, op)
    if b.chance(3):  # a row without neighbours is 0
        t = read(b, name, tuple(b.einsums[-1].indices))  # type: ignore[arg-type]
        b.state(list(t.indices), Apply("where", (Apply("eq", (t, Const(absent))), Const(0.0), t)))


def largest(b: ViewBuilder) -> None:
    """`T[i, j] = keep(2 over j) X[i, j]`, of a tensor, an expression or a product."""
    x = b.access(b.operand(1))
    body = joined(b, x, x.names)
    kept = b.shuffled(free_indices(body))[: b.one((1, 2, 3))]
    wide = [v for v in kept if b.size[b.sort(v)] > 1]
    if not wide:
        return statement(b, 2)
    along = b.one(wide)
    extent = b.size[b.sort(along)]
    every = b.one((0, 0, 0, 2, extent))
    count = b.one(range(1, every or extent))
    b.state(list(kept), body, b.one(REDUCTIONS), (Largest(count, every), along))


def joined(b: ViewBuilder, x: Expr, near: tuple[str, ...], without: tuple[str, ...] = ()) -> Expr:
    """An expression alone, under an operator, or with another tensor at some of its indices."""
    match b.one(("alone", "alone", "unary", "binary", "product")):
        case "alone":
            return x
        case "unary":
            return unary(b, x)
        case "binary":
            return binary(b, x, b.access(b.operand(), near, without))
        case _:
            return Apply("mul", (x, b.access(b.operand(1), near, without)))


# Plans -----------------------------------------------------------------------------------------------------------------------


@st.composite
def view_programs(draw: st.DrawFn) -> Case:
    """Programs of one to six statements with views, and with everything that decides how they are compiled and run."""
    b = ViewBuilder(draw)
    for _ in range(draw(st.integers(2, 3))):
        b.add_input()
    statements = draw(st.sampled_from((1, 2, 3, 3, 4, 4, 5, 6)))
    while (room := statements - len(b.einsums)) > 0:
        view_statement(b, room)
    program = b.program()
    assume(may_keep(program.tensors, program.einsums))  # a declared format may still make another value implicit
    compiled, _ = replace_affine(program)
    schedule = settings(draw, partition(draw, compiled), compiled, b.reassociates)
    schedule = in_elements(schedule) if keeps_largest(program) else schedule
    pick = draw(st.integers(1, 1000)) if b.chance(3) else 0
    limits = draw(st.sampled_from((0, 0, 0, 1, 2, 3)))
    return Case(program, b.tensors, schedule, "any", pick, limits, draw(st.integers(1, 1000)) if b.chance(2) else 0)


def keeps_largest(program: Program) -> bool:
    return any(isinstance(e.body, Keep) for e in program.einsums)


def in_elements(schedule: Schedule) -> Schedule:
    """Without vectors and blocks: what is kept is compared element by element."""
    return replace(schedule, vector=1, blocks=())
