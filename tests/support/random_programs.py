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

SIZES = ((3, 3), (3, 2), (2, 4), (3, 1), (1, 1), (3, 0))
UNARY = ("relu", "neg", "sigmoid", "abs", "copy", "exp2")
BINARY = ("mul", "mul", "mul", "mul", "add", "add", "sub", "max", "min", "ratio", "mask")


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


def formats(rank: int) -> st.SearchStrategy[Format]:
    """Dense and compressed levels in any mode order, and COO."""
    orders = st.permutations(range(rank)).map(tuple)
    plain = st.lists(st.sampled_from(["dense", "compressed", "compressed"]), min_size=rank, max_size=rank)
    found = st.tuples(plain, orders)
    if rank > 1:
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
    stored = rng.random(shape) < density
    if shape and shape[0]:
        for row in draw(st.sampled_from([(), (0,), (-1,), (0, -1)])):
            stored[row] = False
    values = rng.integers(-2, 4, size).reshape(shape).astype(np.float64)
    return from_coordinates(shape, np.array(np.nonzero(stored)).reshape(len(shape), -1), values[stored].reshape(-1), format, fill)


class _Builder:
    """Draws one program statement by statement."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        sizes = draw(st.sampled_from(SIZES))
        self.size = dict(zip("ab", sizes, strict=True))
        self.sorts: dict[str, tuple[str, ...]] = {}
        self.tensors: dict[str, Tensor] = {}

    def add_input(self, name: str) -> None:
        sorts = tuple(self.draw(st.lists(st.sampled_from("aaab"), min_size=1, max_size=3)))
        fill = self.draw(st.sampled_from([0.0] * 4 + [1.0, -math.inf]))
        self.sorts[name] = sorts
        self.tensors[name] = self.draw(tensors(tuple(self.size[s] for s in sorts), fill))

    def access(self) -> Access:
        name = self.draw(st.sampled_from(list(self.sorts)))
        free = {sort: list(self.draw(st.permutations(names))) for sort, names in INDICES.items()}
        return Access(name, tuple(free[sort].pop() for sort in self.sorts[name]))

    def expression(self, leaves: int) -> Expr:
        if leaves == 1:
            return self.access()
        if self.draw(st.integers(0, 3)) == 0:
            return self.unary(self.expression(leaves - 1))
        return self.binary(self.expression(leaves - 1), self.access())

    def unary(self, x: Expr) -> Expr:
        op = self.draw(st.sampled_from(UNARY))
        if op == "exp2":
            return Apply("exp", (Apply("min", (x, Const(2.0))),))
        return Apply(op, (x,))

    def binary(self, x: Expr, y: Expr) -> Expr:
        op = self.draw(st.sampled_from(BINARY))
        if self.draw(st.booleans()):
            x, y = y, x
        match op:
            case "ratio":
                return Apply("div", (x, Apply("add", (Apply("mul", (y, y)), Const(1.0)))))
            case "mask":
                return Apply("where", (Apply("eq", (y, Const(0.0))), Const(-math.inf), x))
            case _:
                return Apply(op, (x, y))

    def einsum(self, name: str, leaves: int) -> Einsum:
        body = self.expression(leaves)
        used = free_indices(body)
        kept = self.draw(st.lists(st.sampled_from(used), unique=True, max_size=3)) if used else []
        over = tuple(v for v in used if v not in kept)
        if over:
            body = Reduce(self.draw(st.sampled_from(["sum", "sum", "sum", "max", "min"])), over, body)
        self.sorts[name] = tuple("a" if v in INDICES["a"] else "b" for v in kept)
        return Einsum(name, tuple(kept), body)


@st.composite
def cases(draw: st.DrawFn, max_einsums: int = 3, max_leaves: int = 3) -> Case:
    """Programs of up to `max_einsums` statements over two or three tensors; every result is an output or read later."""
    builder = _Builder(draw)
    for k in range(draw(st.integers(2, 3))):
        builder.add_input(f"A{k}")
    einsums = [builder.einsum(f"T{k}", draw(st.integers(1, max_leaves))) for k in range(draw(st.integers(1, max_einsums)))]
    types = tuple(TensorType(n, t.shape, t.format, "f64", t.fill) for n, t in builder.tensors.items())
    read = {name for e in einsums for name in e.operands}
    outputs = tuple(e.name for e in einsums if e.name not in read)
    return Case(Program(types, tuple(einsums), outputs), builder.tensors)
