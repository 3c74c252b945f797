"""Wide programs have what the others lack: dimensions that are merged and split, scalars beside sparse tensors, integers, lists of
coordinates of rank 3, vectors, primitives of the public schema, and machines on which a run takes time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import Access, Apply, Expr, Index, Program, Split, TensorType, free_indices
from fuseflow.errors import FuseFlowError
from fuseflow.lower.partition import partition_program
from fuseflow.schedule import Schedule
from fuseflow.tensors import DTYPES, Format

from .bodies import REDUCTIONS, binary, unary
from .builder import Builder
from .case import Case
from .chains import chain, read, statement
from .data import coordinates, dense, tensors
from .plans import droppable, in_blocks, partition

SIZES = ((2, 3), (3, 2), (2, 2), (2, 4), (4, 2), (3, 1), (1, 3))
TYPES = (("f64",), ("i32", "i64", "f64"))
"""The element types that the inputs of a program have."""
MACHINES = ("ideal", "ideal", "comal", "rda", "rda comal_fixed")


class WideBuilder(Builder):
    """Draws a program in which a third size is the product of the two others."""

    def __init__(self, draw: st.DrawFn) -> None:
        super().__init__(draw, SIZES)
        self.size["c"] = self.size["a"] * self.size["b"]
        self.types = self.one(TYPES)

    def add_input(self) -> str:
        if self.tensors and self.chance(3):
            sorts = self.sorts[self.one(list(self.tensors))]
        else:
            rank = self.one((2, 2, 2, 1, 1, 3, 3, 0))
            sorts = tuple(self.draw(st.lists(st.sampled_from("aaabb"), min_size=rank, max_size=rank)))
            if rank and self.chance(3):
                sorts = tuple(self.shuffled(("c", *sorts[1:])))
        dtype = self.one(self.types)
        fill = self.one((0.0,) * 6 + (1.0, 1.0 if dtype.startswith("i") else -math.inf))
        tensor = self.draw(tensors(self.shape(sorts), fill, self.stored_as(sorts)))
        return self.give(sorts, replace(tensor, values=tensor.values.astype(DTYPES[dtype].holder)))

    def stored_as(self, sorts: tuple[str, ...]) -> st.SearchStrategy[Format] | None:
        """A tensor of rank 3 is often a list of coordinates; a dimension that may be split is often in a tensor that is dense."""
        if len(sorts) == 3 and self.chance(2):
            return coordinates(3)
        return dense(len(sorts)) if "c" in sorts and not self.chance(3) else None

    def splits_easily(self, name: str) -> bool:
        """Whether a tensor is stored dense. A result that is not declared yet is mostly made so."""
        if name in self.tensors:
            return self.tensors[name].format.all_dense
        if all(t.name != name for t in self.declared) and not self.chance(6):
            shape = self.shape(self.sorts[name])
            self.declared.append(TensorType(name, shape, self.draw(dense(len(shape))), "f64"))
        return any(t.name == name and t.format is not None and t.format.all_dense for t in self.declared)

    def program(self) -> Program:
        """What was drawn. Results of integers that have fractions are declared in 64 bits, so that all levels round alike."""
        program = super().program()
        while narrow := [t for t in infer(program).tensors if t.dtype == "f32"]:
            first = narrow[0]
            declared = program.declared.get(first.name, TensorType(first.name, first.shape))
            others = (t for t in program.tensors if t.name != first.name)
            program = replace(program, tensors=(*others, replace(declared, dtype="f64")))
        return program


# Statements ------------------------------------------------------------------------------------------------------------------


def wide_statement(b: WideBuilder, room: int) -> None:
    """One or two statements: a dimension that is merged or split, a scalar beside a sparse tensor, or what every program has."""
    kind = b.one((*["merged"] * 3, "split", "split", "scalar", "scalar", *["usual"] * 4))
    split = [n for n, sorts in b.sorts.items() if "c" in sorts and (b.splits_easily(n) or b.chance(8))]
    merged = [n for n, sorts in b.sorts.items() if {"a", "b"} <= set(sorts)]
    if kind == "split" and split:
        split_dimension(b, b.one(split))
    elif kind == "merged" and merged:
        merged_dimension(b, b.one(merged))
    elif kind == "scalar" and room >= 2:
        scalar_beside(b)
    elif room >= 2 and b.chance(3):
        chain(b, room)
    else:
        statement(b, 3)


def merged_dimension(b: WideBuilder, name: str) -> None:
    """`T[a*2 + b] = X[b, a]`, or of an expression."""
    x = b.access(name)
    body = joined(b, x)
    names = free_indices(body)
    pair = [b.one([v for v in names if b.sort(v) == sort]) for sort in b.shuffled("ab")]
    others: Sequence[Index] = b.some([v for v in names if v not in pair])[:2]
    b.splits_easily(b.state(b.shuffled((*others, parts(b, *pair))), body, b.one(REDUCTIONS)))


def split_dimension(b: WideBuilder, name: str) -> None:
    """`T[i, h, d] = X[i, h*2 + d]`, or an expression of such an access."""
    x = b.access(name)
    at = next(d for d, v in enumerate(x.names) if b.sort(v) == "c")
    pair = [b.new(sort, x.names) for sort in b.shuffled("ab")]
    indices = (*x.indices[:at], parts(b, *pair), *x.indices[at + 1 :])
    body = joined(b, Access(name, indices))
    kept = b.shuffled(free_indices(body))
    b.state(kept if b.chance(2) else kept[: b.one((1, 2, 3))], body, b.one(REDUCTIONS))


def parts(b: WideBuilder, outer: str, inner: str) -> Split:
    return Split(outer, inner, b.size[b.sort(inner)])


def joined(b: WideBuilder, x: Access) -> Expr:
    """An access alone, under an operator, or with another tensor at some of its indices."""
    match b.one(("alone", "alone", "unary", "binary", "product")):
        case "alone":
            return x
        case "unary":
            return unary(b, x)
        case "binary":
            return binary(b, x, b.access(b.operand(), x.names))
        case _:
            return Apply("mul", (x, b.access(b.operand(1), x.names)))


def scalar_beside(b: WideBuilder) -> None:
    """`T = sum(i, j) W[i, j]` and `Y[i, j] = B[i, j] + T`, or a scalar that is there already."""
    scalars = [n for n, sorts in b.sorts.items() if not sorts]
    x = b.access(b.operand(1))
    total = b.one(scalars) if scalars and b.chance(2) else b.state((), unary(b, x) if b.chance(3) else x, b.one(REDUCTIONS))
    y = b.access(b.operand(1))
    body = binary(b, y, read(b, total, ()))
    b.state(b.shuffled(free_indices(body))[:4], body)


# Plans -----------------------------------------------------------------------------------------------------------------------


@st.composite
def wide_programs(draw: st.DrawFn) -> Case:
    """Wide programs of one to five statements with everything that decides how they are compiled and run."""
    b = WideBuilder(draw)
    for _ in range(draw(st.integers(2, 3))):
        b.add_input()
    statements = draw(st.sampled_from((1, 2, 2, 3, 3, 4, 5)))
    while (room := statements - len(b.einsums)) > 0:
        wide_statement(b, room)
    program = b.program()
    schedule = partition(draw, program)
    if not accepts(program, schedule):  # a reshape stands inside of a group
        schedule = Schedule.fuse("layerwise")
    schedule = settings(draw, schedule, program, b)
    pick = draw(st.integers(1, 1000)) if b.chance(3) else 0
    limits = draw(st.sampled_from((0, 0, 0, 1, 2, 3)))
    deal = draw(st.integers(1, 1000)) if b.chance(5) else 0
    return Case(program, b.tensors, schedule, "any", pick, limits, deal, draw(st.sampled_from(MACHINES)))


def settings(draw: st.DrawFn, schedule: Schedule, program: Program, b: WideBuilder) -> Schedule:
    """What else a schedule says: vectors where there can be some, and blocks now and then. Public primitives select finite values only."""
    blocks = in_blocks(draw, program) if draw(st.integers(1, 6)) == 6 else ()
    vector = draw(st.sampled_from((1, 2, 2, 3))) if not blocks else 1
    blocks = blocks if accepts(program, Schedule(fuse_regions=("none",), blocks=blocks)) else ()
    vector = vector if accepts(program, Schedule(fuse_regions=("none",), vector=vector)) else 1
    tiles = bool(blocks) or vector > 1
    drawn = replace(
        schedule,
        blocks=blocks,
        vector=vector,
        iteration=draw(st.sampled_from(["factored"] * 5 + ["global"])) if b.reassociates else "factored",
        copies=draw(st.sampled_from([True] * 11 + [False])),
        locate=draw(st.sampled_from(["auto", "always", "never", "never"])),
        repeat=draw(st.sampled_from(["value", "value", "reference"])),
        primitives=draw(st.sampled_from(["auto", "public", "public"])) if b.selects_finite else "own",
        drop_zeros=() if tiles else draw(st.sampled_from([(), (), (), droppable(program)])),
    )
    return replace(drawn, rescan="every" if drawn.locate == "always" else "auto")  # nothing more is drawn


def accepts(program: Program, schedule: Schedule) -> bool:
    """Whether a program can be in the blocks of a schedule."""
    try:
        partition_program(program, schedule)
    except FuseFlowError:
        return False
    return True
