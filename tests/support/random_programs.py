"""Random Einsum programs with random data and formats, as a hypothesis strategy: what property tests and fuzzing draw from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Program, Reduce, TensorType, free_indices
from fuseflow.einsum.text import show
from fuseflow.tensors import Format, Tensor, from_coordinates

INDICES = {"a": ("i", "j", "k"), "b": ("p", "q", "r")}
"""Indices of each of the two dimension sizes of a program."""
SPARE = {"a": ("x", "y", "z"), "b": ("u", "v", "w")}
"""What is taken where an inner reduction has used the others up."""
SPREAD = "s"
"""An index of a left side that the body lacks."""

SIZES = ((3, 3), (3, 2), (2, 4), (3, 1), (1, 1), (3, 0))
EXACT = ("relu", "neg", "abs", "copy", "square", "shift", "test", "power")
SMOOTH = ("relu", "neg", "abs", "copy", "square", "sigmoid", "exp2")
BINARY = ("mul", "mul", "mul", "mul", "add", "add", "sub", "max", "min")
"""A program has exact operators and comparisons, or smooth operators: a comparison of rounded numbers may fall either way."""

REDUCTIONS = ("sum", "sum", "sum", "max", "min", "prod")
LEVELS = st.sampled_from(["dense", "compressed", "compressed"])


@dataclass(frozen=True, repr=False)
class Case:
    """A program and the packed tensors it reads."""

    program: Program
    tensors: dict[str, Tensor]

    @property
    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        return {name: tensor.to_dense() for name, tensor in self.tensors.items()}

    def __repr__(self) -> str:
        """The program as text and its numbers: what to make a named test of."""
        numbers = "".join(f"{name} = {array.tolist()}\n" for name, array in self.arrays.items())
        return f"\n{show(self.program)}{numbers}"


def formats(rank: int, coo: bool = True) -> st.SearchStrategy[Format]:
    """Dense and compressed levels in any mode order, and COO (which no result is stored in)."""
    orders = st.permutations(range(rank)).map(tuple)
    found = st.tuples(st.lists(LEVELS, min_size=rank, max_size=rank), orders)
    if coo and rank > 1:
        coo = ["compressed(nonunique)", *["singleton(nonunique)"] * (rank - 2), "singleton"]
        found |= st.tuples(st.just(coo), orders)
    return found.map(lambda f: Format.of(*f[0], order=f[1]))


@st.composite
def tensors(draw: st.DrawFn, shape: tuple[int, ...], fill: float = 0.0) -> Tensor:
    """Small integers at random places; often the first, last or every row is empty; stored entries may equal the implicit value."""
    format = draw(formats(len(shape)))
    size = math.prod(shape)
    density = draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    stored = np.asarray(rng.random(shape) < density)
    if shape and shape[0]:
        for row in draw(st.sampled_from([(), (0,), (-1,), (0, -1)])):
            stored[row] = False
    values = rng.integers(-2, 4, size).reshape(shape).astype(np.float64)
    return from_coordinates(shape, np.argwhere(stored).T, values[stored].reshape(-1), format, fill)


class _Builder:
    """Draws one program statement by statement."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.size = dict(zip("ab", draw(st.sampled_from(SIZES)), strict=True))
        self.exact = draw(st.booleans())
        self.sorts: dict[str, tuple[str, ...]] = {}
        self.tensors: dict[str, Tensor] = {}
        self.declared: list[TensorType] = []
        self.bound: set[str] = set()  # indices reduced inside the body that is being drawn

    def chance(self, of: int) -> bool:
        return self.draw(st.integers(1, of)) == of

    def add_input(self, name: str) -> None:
        rank = self.draw(st.sampled_from([0, 1, 1, 2, 2, 2, 3]))
        sorts = tuple(self.draw(st.lists(st.sampled_from("aaab"), min_size=rank, max_size=rank)))
        fill = self.draw(st.sampled_from([0.0] * 4 + [1.0, -math.inf]))
        self.sorts[name] = sorts
        self.tensors[name] = self.draw(tensors(self.shape(sorts), fill))

    def shape(self, sorts: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.size[sort] for sort in sorts)

    def access(self) -> Access:
        name = self.draw(st.sampled_from(list(self.sorts)))
        free = {sort: list(self.draw(st.permutations(names))) for sort, names in INDICES.items()}
        free = {sort: [*SPARE[sort], *(v for v in names if v not in self.bound)] for sort, names in free.items()}
        return Access(name, tuple(free[sort].pop() for sort in self.sorts[name]))

    def expression(self, leaves: int) -> Expr:
        if leaves == 1:
            return self.access()
        kind = self.draw(st.integers(0, 11))
        if kind < 3:
            return self.unary(self.expression(leaves - 1))
        if kind == 3:
            return self.binary(self.inner_reduction(self.expression(leaves - 1)), self.access())
        if kind == 4 and leaves > 2:
            return Apply("where", (self.access(), self.expression(leaves - 2), self.access()))
        return self.binary(self.expression(leaves - 1), self.access())

    def inner_reduction(self, x: Expr) -> Expr:
        used = free_indices(x)
        over = tuple(self.draw(st.lists(st.sampled_from(used), unique=True, min_size=1, max_size=2))) if used else ()
        self.bound |= set(over)
        return Reduce(self.draw(st.sampled_from(REDUCTIONS)), over, x) if over else x

    def unary(self, x: Expr) -> Expr:
        op = self.draw(st.sampled_from(EXACT if self.exact else SMOOTH))
        number = Const(self.draw(st.sampled_from([0.0, 1.0, 2.0])))
        match op:
            case "exp2":
                return Apply("exp", (Apply("min", (x, Const(2.0))),))
            case "square":
                return Apply("mul", (x, x))
            case "shift":
                return Apply(self.draw(st.sampled_from(["add", "sub", "max", "min"])), (number, x))
            case "test":
                return Apply(self.draw(st.sampled_from(["lt", "ge", "ne"])), (x, number))
            case "power":
                return Apply("pow", (x, number))
            case _:
                return Apply(op, (x,))

    def binary(self, x: Expr, y: Expr) -> Expr:
        op = self.draw(st.sampled_from((*BINARY, *(("mask", "le") if self.exact else ("ratio",)))))
        if self.draw(st.booleans()):
            x, y = y, x
        match op:
            case "ratio":
                return Apply("div", (x, Apply("add", (Apply("mul", (y, y)), Const(1.0)))))
            case "mask":
                return Apply("where", (Apply("eq", (y, Const(0.0))), Const(-math.inf), x))
            case _:
                return Apply(op, (x, y))

    def body(self, leaves: int) -> Expr:
        """An expression in which no index is both reduced inside and used outside."""
        self.bound = set()
        body = self.expression(leaves)
        return body if not self.bound & set(free_indices(body)) else self.access()

    def einsum(self, name: str, leaves: int) -> Einsum:
        body = self.body(leaves)
        used = free_indices(body)
        kept = self.draw(st.lists(st.sampled_from(used), unique=True, max_size=3)) if used else []
        over = tuple(v for v in used if v not in kept)
        if over:
            body = Reduce(self.draw(st.sampled_from(REDUCTIONS)), over, body)
        spread = self.chance(15)
        if spread:
            kept.insert(self.draw(st.integers(0, len(kept))), SPREAD)
        self.sorts[name] = tuple("b" if v in (*INDICES["b"], *SPARE["b"]) else "a" for v in kept)
        if spread or self.chance(6):
            format = self.draw(formats(len(kept), coo=False))
            self.declared.append(TensorType(name, self.shape(self.sorts[name]), format, "f64"))
        return Einsum(name, tuple(kept), body)


@st.composite
def cases(draw: st.DrawFn, max_einsums: int = 3, max_leaves: int = 3) -> Case:
    """Programs of up to `max_einsums` statements over two or three tensors.

    Results are declared now and then, in any format, or spread along an index that their body lacks; results that are read may be
    outputs too, and some that are not read are not.
    """
    builder = _Builder(draw)
    for k in range(draw(st.integers(2, 3))):
        builder.add_input(f"A{k}")
    einsums = [builder.einsum(f"T{k}", draw(st.integers(1, max_leaves))) for k in range(draw(st.integers(1, max_einsums)))]
    types = [TensorType(n, t.shape, t.format, "f64", t.fill) for n, t in builder.tensors.items()]
    read = {name for e in einsums for name in e.operands}
    outputs = tuple(e.name for e in einsums if (e.name not in read) != builder.chance(4)) or (einsums[-1].name,)
    return Case(Program((*types, *builder.declared), tuple(einsums), outputs), builder.tensors)
