"""Programs whose sparsity depends on data: marks of what is chosen that route products, softmax over what is chosen, kept values in
products, masks in the statement of their product, and products of computed sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from fuseflow.einsum.blocks import propagate_blocks
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import (
    Access,
    Apply,
    Const,
    Expr,
    Keep,
    Program,
    Reduce,
    accesses,
    free_indices,
    walk,
)
from fuseflow.errors import ProgramError
from fuseflow.keep_rules import Largest
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format

from .bodies import unary
from .builder import Builder
from .case import Case
from .chains import read, softmax, statement
from .data import tensors
from .plans import partition, settings
from .views import ViewBuilder, in_elements, keeps_largest, may_keep

SIZES = ((4, 3), (3, 4), (3, 3), (4, 2), (2, 4), (4, 4), (3, 1), (1, 3), (3, 0))
KINDS = ("routing", "softmax", "softmax", "softmax", "kept", "kept", "kept", "mask", "computed")
FEATURES = (
    "a product routed by marks",
    "a softmax of what is chosen",
    "a kept value in a product",
    "a mask in its product",
    "a mask in blocks",
    "a product of computed sparse tensors",
)
SPARSE = st.sampled_from(
    [Format.of("dense", "compressed"), Format.of("dense", "compressed"), Format.of("compressed", "compressed")]
)


class ChosenBuilder(ViewBuilder):
    """Draws a program of matrices, mostly."""

    def __init__(self, draw: st.DrawFn) -> None:
        Builder.__init__(self, draw, SIZES)

    def add_input(self) -> str:
        rank = self.one((2, 2, 2, 2, 3, 1))
        return self.add(tuple(self.draw(st.lists(st.sampled_from("aab"), min_size=rank, max_size=rank))))

    def add(self, sorts: tuple[str, ...], stored_as: st.SearchStrategy[Format] | None = None) -> str:
        return self.give(sorts, self.draw(tensors(self.shape(sorts), 0.0, stored_as)))

    def at(self, *indices: str) -> Access:
        """A tensor at these indices, which may be a new input."""
        sorts = tuple(map(self.sort, indices))
        fits = [name for name, others in self.sorts.items() if others == sorts]
        return Access(self.one(fits) if fits and not self.chance(3) else self.add(sorts), indices)


def chosen_statement(b: ChosenBuilder, room: int, masks: bool) -> None:
    """Statements of one kind, or what every program has. `masks`: of kinds without a `keep` alone, which may be in blocks."""
    match b.one(("mask", "mask", "computed", "usual")) if masks else b.one((*KINDS, "usual")):
        case "routing" if room >= 2:
            routing(b, room)
        case "softmax" if room >= 4:
            mark, x = chosen(b, marks=True)
            inside = (mark, x, Const(-math.inf)) if b.chance(2) else (Apply("eq", (mark, Const(0.0))), Const(-math.inf), x)
            names = free_indices(Apply("add", (mark, x)))
            scores = read(b, b.state(names, Apply("where", inside)), names)
            softmax(b, scores, room - 2) if scores.names else statement(b, 2)
        case "kept" if room >= 2:
            kept, _ = chosen(b, marks=False)
            product(b, kept, b.access(b.operand(1), kept.names))
        case "mask":
            mask(b)
        case "computed" if room >= 3:
            product(b, computed(b), computed(b))
        case _:
            statement(b, 2)


def chosen(b: ChosenBuilder, marks: bool) -> tuple[Access, Expr]:
    """`P[t, e] = mark(2 greatest over e) g[t, e]`, or what is kept of a computed value, and that of which it is a part."""
    x: Expr = b.access(b.operand(2))
    if b.chance(3) or not marks:
        x = unary(b, x) if b.chance(2) else Apply("mul", (x, b.access(b.operand(1), free_indices(x))))
    names = b.shuffled(free_indices(x))[:3]
    wide = [v for v in names if b.size[b.sort(v)] > 1]
    if not wide:
        name = b.state(names, x)
        return read(b, name, names), x
    along = b.one(wide)
    by = b.one(("greatest", "least", "magnitude"))
    name = b.state(names, x, "sum", (Largest(b.one(range(1, b.size[b.sort(along)])), 0, by, marks), along))
    whole = x if set(names) == set(free_indices(x)) else Access(name, tuple(names))
    return read(b, name, names), whole


def routing(b: ChosenBuilder, room: int) -> None:
    """`Y[t, m] = sum(e, d) P[t, e] * X[t, d] * W[e, d, m]`, now and then with the products of each expert, that weights combine."""
    mark, gate = chosen(b, marks=True)
    if len(mark.names) < 2:
        return statement(b, 2)
    t, e = b.shuffled(mark.names)[:2]
    d = b.new(b.one("ab"), (*mark.names, *free_indices(gate)))
    m = b.new(b.one("ab"), (*mark.names, *free_indices(gate), d))
    x, w = b.at(t, d), b.at(e, d, m)
    factors = b.shuffled((mark, x, w))
    body = Apply("mul", (Apply("mul", (factors[0], factors[1])), factors[2]))
    if room < 3 or b.chance(2):
        b.state([t, m], body)
        return
    hidden = read(b, b.state([t, e, m], body), (t, e, m))
    weight: Expr = (
        mark if room < 4 or len(mark.names) > 2 else read(b, b.state(mark.names, Apply("mul", (mark, gate))), mark.names)
    )
    b.state([t, m], Apply("mul", (weight, unary(b, hidden))))


def mask(b: ChosenBuilder) -> None:
    """`Y[i, j] = M[i, j] * sum(d) Q[i, d] * K[j, d]`, or with -inf where nothing is stored."""
    sorts = (b.one("aab"), b.one("aab"))
    name = b.add(sorts, SPARSE)
    m = b.access(name)
    i, j = m.names
    d = b.new(b.one("ab"), m.names)
    product = Apply("mul", (b.at(i, d), b.at(j, d)))
    kept = [i, j] if b.chance(2) else [j, i]
    match b.one(("inside", "outside", "outside", "where")):
        case "inside":
            b.state(kept, Apply("mul", (m, product)))
        case "outside":
            pair = (m, Reduce("sum", (d,), product))
            b.state(kept, Apply("mul", pair if b.chance(2) else pair[::-1]))
        case _:
            absent = Const(b.one((-math.inf, 0.0)))
            b.state(kept, Apply("where", (Apply("eq", (m, Const(0.0))), absent, Reduce("sum", (d,), product))))


def computed(b: ChosenBuilder) -> Access:
    """A result that has entries where an input has some: `S[i, j] = A[i, j] * relu(B[i, j])`."""
    m = b.access(b.add((b.one("aab"), b.one("aab")), SPARSE))
    body = Apply("mul", (m, unary(b, b.access(b.operand(1), m.names))))
    names = m.names
    return read(b, b.state(names, body), names)


def product(b: ChosenBuilder, x: Access, y: Access) -> None:
    """A product that is summed over an index of both, where there is one."""
    shared = [v for v in x.names if b.sort(v) in b.sorts[y.tensor]][:1]
    at = b.sorts[y.tensor].index(b.sort(shared[0])) if shared else -1
    names: list[str] = []
    for dimension, sort in enumerate(b.sorts[y.tensor]):
        names.append(shared[0] if dimension == at else b.new(sort, (*x.names, *names)))
    y = Access(y.tensor, tuple(names))
    body = Apply("mul", (x, y) if b.chance(2) else (y, x))
    b.state(b.shuffled([v for v in free_indices(body) if v not in shared])[:4], body)


# What a program holds ----------------------------------------------------------------------------------------------------------


def chosen_features(program: Program, schedule: Schedule) -> dict[str, set[str]]:
    """The names of the Einsums that have each feature: seen in the program, not in what drew it."""
    kept = {e.name for e in program.einsums if isinstance(e.body, Keep)}
    marks = {e.name for e in program.einsums if isinstance(e.body, Keep) and e.body.marks}
    sparse = {t.name for t in infer(program).tensors if t.format is not None and not t.format.all_dense}
    raised = {
        a.tensor for e in program.einsums for n in walk(e.body) if isinstance(n, Apply) and n.op == "exp" for a in accesses(n)
    }
    results, blocks = {e.name for e in program.einsums}, {name for name, _ in schedule.blocks}
    having: dict[str, set[str]] = {feature: set() for feature in FEATURES}
    for einsum in program.einsums:
        operands, many = set(einsum.operands), len(accesses(einsum.body)) > 2
        masks = (sparse - results) & operands
        only = any(isinstance(n, Apply) and n.op == "where" and Const(-math.inf) in n.args for n in walk(einsum.body))
        held = {"a softmax of what is chosen": only and einsum.name in raised and bool(kept & operands)}
        for factors in _factors(einsum.body):
            held["a product routed by marks"] = len(factors) > 2 and bool(marks & set(factors))
            held["a kept value in a product"] = bool((kept - marks) & set(factors))
            held["a mask in its product"], held["a mask in blocks"] = many and bool(masks), many and bool(masks & blocks)
            held["a product of computed sparse tensors"] = len(factors) > 1 and set(factors) <= sparse & results
        for feature in (feature for feature, holds in held.items() if holds):
            having[feature].add(einsum.name)
    return having


def _factors(body: Expr) -> Iterator[tuple[str, ...]]:
    """The tensors that are read in each sum of products."""
    for node in walk(body):
        if isinstance(node, Reduce) and node.op == "sum" and isinstance(node.body, Apply) and node.body.op == "mul":
            yield tuple(access.tensor for access in accesses(node.body))


# Plans -----------------------------------------------------------------------------------------------------------------------


@st.composite
def chosen_programs(draw: st.DrawFn) -> Case:
    """Programs of up to seven statements whose sparsity depends on data, with everything that decides how they are compiled and run."""
    b = ChosenBuilder(draw)
    for _ in range(draw(st.integers(2, 3))):
        b.add_input()
    masks = b.chance(3)
    statements = draw(st.sampled_from((1, 2, 3) if masks else (2, 3, 4, 5, 6, 7)))
    while (room := statements - len(b.einsums)) > 0:
        chosen_statement(b, room, masks)
    program = b.program()
    assume(may_keep(program.tensors, program.einsums))
    schedule = settings(draw, partition(draw, program), program, b.reassociates)
    if masks:
        schedule = in_blocks(draw, program, schedule)
    schedule = in_elements(schedule) if keeps_largest(program) else schedule
    pick = draw(st.integers(1, 1000)) if b.chance(3) else 0
    limits = draw(st.sampled_from((0, 0, 0, 1, 2, 3)))
    return Case(program, b.tensors, schedule, "any", pick, limits, draw(st.integers(1, 1000)) if b.chance(3) else 0)


def in_blocks(draw: st.DrawFn, program: Program, schedule: Schedule) -> Schedule:
    """The schedule with the last mask in blocks, where what follows from it is possible."""
    matrices = [
        t
        for t in program.inputs
        if len(t.shape) == 2 and t.format in (Format.of("dense", "compressed"), Format.of("compressed", "compressed"))
    ]
    if not matrices:
        return schedule
    try:
        blocked = propagate_blocks(
            infer(program), {matrices[-1].name: draw(st.sampled_from([(2, 2), (2, 1), (1, 2), (4, 4), (2, 3)]))}
        )
    except ProgramError:
        return schedule
    return replace(schedule, vector=1, drop_zeros=(), blocks=tuple((t.name, t.block) for t in blocked.inputs if t.block))
