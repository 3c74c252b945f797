"""Random programs that verify, for the tests of this folder (a fixture, because test folders are not packages)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import strategies as st

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Index, Program, Reduce, Split, TensorType, free_indices
from fuseflow.tensors import Format

KEPT, REDUCED = "ijhd", "klmn"
DEPTH = 3
FILLS = (0.0, 1.0, -math.inf)


@dataclass
class Author:
    """Writes one program: every index letter has one extent, so that all accesses agree."""

    draw: Callable
    extent: dict[str, int]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    tensors: list[TensorType] = field(default_factory=list)

    def program(self) -> Program:
        einsums = [self.einsum(f"T{n}") for n in range(self.draw(st.integers(1, 3)))]
        outputs = self.draw(st.lists(st.sampled_from([e.name for e in einsums]), unique=True, min_size=1))
        return Program(tuple(self.tensors), tuple(einsums), tuple(outputs), self.draw(st.sampled_from(["program", "gcn"])))

    def einsum(self, name: str) -> Einsum:
        left = self.indices(list(KEPT))
        names = [n for i in left for n in ((i.outer, i.inner) if isinstance(i, Split) else (i,))]
        body = self.expr(names, list(REDUCED), DEPTH)
        if any(n not in free_indices(body) for n in names):
            body = Apply("add", (body, self.access(left)))
        shape = tuple(self.size(i) for i in left)
        if self.draw(st.integers(0, 3)) == 0:
            self.tensors.append(TensorType(name, shape, self.format(len(shape))))
        self.shapes[name] = shape
        return Einsum(name, left, body)

    def expr(self, names: list[str], fresh: list[str], depth: int) -> Expr:
        leaves, composed = ["access", "access", "const"], ["binary", "reduce", "product", "unary", "where", "binary", "reduce"]
        kind = self.draw(st.sampled_from(composed if depth == DEPTH else leaves + composed if depth else leaves))
        if kind == "const":
            return Const(self.draw(st.sampled_from([0.0, 1.0, -2.0, 0.5, -math.inf])))
        if kind == "access":
            return self.leaf(names)
        if kind == "unary":
            op = self.draw(st.sampled_from(["neg", "relu", "abs", "sigmoid", "exp"]))
            # exp of a leaf only: a tower of them overflows
            return Apply(op, (self.leaf(names) if op == "exp" else self.expr(names, fresh, depth - 1),))
        if kind == "where":
            test = Apply(self.draw(st.sampled_from(["eq", "ne", "lt", "ge"])), (self.leaf(names), Const(0.0)))
            return Apply("where", (test, self.expr(names, fresh, depth - 1), self.expr(names, fresh, depth - 1)))
        if kind == "binary":
            return self.binary(names, fresh, depth)
        return self.reduction(names, fresh, depth, kind == "product")

    def binary(self, names: list[str], fresh: list[str], depth: int) -> Expr:
        op = self.draw(st.sampled_from(["add", "sub", "mul", "mul", "div", "max", "min"]))
        a, b = self.expr(names, fresh, depth - 1), self.expr(names, fresh, depth - 1)
        # a zero divisor has a sign, on which evaluations may differ
        return Apply(op, (a, Apply("add", (Apply("abs", (b,)), Const(1.0))) if op == "div" else b))

    def reduction(self, names: list[str], fresh: list[str], depth: int, product: bool) -> Expr:
        if not fresh:
            return self.leaf(names)
        over, rest = fresh[: self.draw(st.integers(1, 2))], fresh[2:]
        op = "sum" if product else self.draw(st.sampled_from(["sum", "max", "min", "prod"]))
        body = self.expr(names + over, rest, depth - 1)
        body = Apply("mul", (self.leaf(names + over), body)) if product else body
        missing = [n for n in over if n not in free_indices(body)]
        if missing:
            body = Apply("mul" if product else "sub", (self.access(tuple(missing)), body))
        return Reduce(op, tuple(over), body)

    def leaf(self, names: list[str]) -> Access:
        """An existing tensor, read with indices of the same extents, or a new input."""
        fitting = [(t, s) for t, s in self.shapes.items() if all(any(self.extent[n] == size for n in names) for size in s)]
        if fitting and self.draw(st.booleans()):
            tensor, shape = self.draw(st.sampled_from(fitting))
            choose = [st.sampled_from([n for n in names if self.extent[n] == size]) for size in shape]
            return Access(tensor, tuple(self.draw(c) for c in choose))
        return self.access(self.indices(names))

    def access(self, indices: tuple[Index, ...]) -> Access:
        shape = tuple(self.size(i) for i in indices)
        name = f"A{len(self.shapes)}.w"
        fill = self.draw(st.sampled_from(FILLS))
        self.tensors.append(TensorType(name, shape, self.format(len(shape)), self.draw(st.sampled_from(["f32", "f64"])), fill))
        self.shapes[name] = shape
        return Access(name, indices)

    def indices(self, names: list[str]) -> tuple[Index, ...]:
        chosen = self.draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
        if len(chosen) > 1 and self.extent[chosen[-1]] and self.draw(st.booleans()):
            *chosen, outer, inner = chosen
            return (*chosen, Split(outer, inner, self.extent[inner]))
        return tuple(chosen)

    def size(self, index: Index) -> int:
        return self.extent[index.outer] * index.size if isinstance(index, Split) else self.extent[index]

    def format(self, rank: int) -> Format:
        if rank > 1 and self.draw(st.integers(0, 5)) == 0:
            return Format.parse("coo", rank)
        levels = [self.draw(st.sampled_from(["dense", "compressed"])) for _ in range(rank)]
        return Format.of(*levels, order=tuple(self.draw(st.permutations(range(rank)))))


@st.composite
def _programs(draw: Callable) -> Program:
    sizes = {letter: draw(st.sampled_from([2, 1, 3, 4, 0])) for letter in KEPT + REDUCED}
    return Author(draw, sizes).program()


@pytest.fixture(scope="session")
def programs() -> st.SearchStrategy[Program]:
    """Programs of one to three Einsums over inputs of any format and implicit value."""
    return _programs()


@pytest.fixture(scope="session")
def random_array() -> Callable[[np.random.Generator, TensorType], np.ndarray]:
    """`random_array(rng, type)`: about half of the entries have the implicit value, the others are small."""

    def make(rng: np.random.Generator, tensor: TensorType) -> np.ndarray:
        return rng.choice([tensor.fill, tensor.fill, tensor.fill, -1.0, 0.5, 2.0], size=tensor.shape)

    return make
