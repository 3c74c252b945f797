"""Programs with hard values: terms that cancel, NaN, infinities, magnitudes far apart, and dimensions of size 0."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
import torch_oracle
from hypothesis import strategies as st

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Reduce, accesses, index_names
from fuseflow.tensors import Tensor

from .builder import POINTS, Builder
from .case import Case
from .chains import chain, read, statement
from .data import tensors
from .plans import partition, settings

SIZES = ((3, 3), (3, 2), (2, 4), (4, 3), (3, 1), (1, 3), (3, 0), (0, 3), (2, 0), (0, 0))
LARGEST = 1e30
"""The largest finite magnitude: nothing overflows in one order of a reduction and not in another."""
FILLS = (0.0,) * 8 + (1.0, -math.inf, math.inf, math.nan)
KINDS = ("special", "special", "cancelling", "cancelling", "far apart", "usual")
SPECIAL = (math.nan, math.inf, -math.inf, -0.0)
OFFSETS = (1e4 + 0.1, 1e8 + 0.1, 1e9 + 0.1, 1e12 + 0.1)


class HardBuilder(Builder):
    """Draws a program whose entries need not be fair: each has a bound, and what rounding decides is not compared."""

    def __init__(self, draw: st.DrawFn) -> None:
        super().__init__(draw, SIZES)
        self.single = self.chance(2)
        """Whether inputs have 32-bit floats."""

    def add_input(self) -> str:
        if self.tensors and self.chance(2):
            sorts = self.sorts[self.one(list(self.tensors))]
        else:
            rank = self.one((2, 2, 2, 1, 1, 3, 0))
            sorts = tuple(self.draw(st.lists(st.sampled_from("aaab"), min_size=rank, max_size=rank)))
        return self.give(sorts, self.hardened(self.draw(tensors(self.shape(sorts), self.one(FILLS)))))

    def hardened(self, tensor: Tensor) -> Tensor:
        """The tensor with some of what it stores made hard."""
        rng, values = np.random.default_rng(self.draw(st.integers(0, 2**16))), tensor.values.copy()
        some = rng.random(values.shape) < self.one((0.1, 0.3, 0.6))
        kind = self.one(KINDS)
        if kind != "special" or self.chance(2):  # no small binary fractions, whose sums are exact
            values = values * rng.uniform(0.9, 1.1, values.shape)
        match kind:
            case "special":
                values[some] = rng.choice(self.some(SPECIAL, 1), values.shape)[some]
            case "cancelling":
                values[some] += (rng.choice([-1.0, 1.0], values.shape) * self.one(OFFSETS))[some]
            case "far apart":
                values = values * 10.0 ** rng.integers(-9, 10, values.shape)
            case _:
                pass
        return replace(tensor, values=values.astype(np.float32) if self.single else values)

    def fair(self, einsum: Einsum, shape: tuple[int, ...]) -> torch_oracle.Evaluated | None:
        """The value of a statement of which rounding decides little."""
        names = {*index_names(einsum.indices), *(v for a in accesses(einsum.body) for v in a.names)}
        if math.prod(self.shape(map(self.sort, sorted(names)))) > POINTS or len(einsum.indices) > 4:
            return None
        found = torch_oracle.evaluate_einsum(einsum, self.values, shape)
        values, error = found.value.values, found.value.error
        if found.span.largest > LARGEST:
            return None
        undecided = ~(error < 1e-3 * torch.clamp(values.abs(), min=1e-3)) & ~(error == 0)
        tiresome = undecided | values.isnan()
        return None if values.numel() and float(tiresome.double().mean()) > 0.7 else found

    @property
    def reassociates(self) -> bool:
        return False


def hard_statement(b: HardBuilder, room: int) -> None:
    """One statement or some that lose digits or divide by nothing, or what every program has."""
    x = b.access(b.operand(1))
    kind = b.one(("shift", "shift", "variance", "variance", "mask", "mean", *["usual"] * 5)) if x.names else "usual"
    match kind:
        case "shift":
            far = Const(b.one(OFFSETS))
            body: Expr = Apply("sub", (Apply("add", (x, far)), far))
            b.state(b.shuffled(x.names), body)
        case "variance":
            over = b.one(x.names)
            rest = [v for v in x.names if v != over]
            count = Const(float(max(1, b.size[b.sort(over)])))
            square = Apply("div", (Reduce("sum", (over,), Apply("mul", (x, x))), count))
            mean = Apply("div", (Reduce("sum", (over,), x), count))
            b.state(rest, Apply("sub", (square, Apply("mul", (mean, mean)))))
        case "mask" if room >= 3:
            masked_softmax(b, x)
        case "mean" if room >= 2:
            over = b.one(x.names)
            rest = [v for v in x.names if v != over]
            count = read(b, b.state(rest, Apply("ne", (x, Const(0.0)))), rest)
            total = Apply("div", (Reduce("sum", (over,), x), count))
            b.state(rest, x if over in count.names else total)  # the statement of the count may have been replaced
        case _ if room >= 2 and b.chance(3):
            chain(b, room)
        case _:
            statement(b, 3)


def masked_softmax(b: HardBuilder, x: Access) -> None:
    """The exponentials of scores to which a mask is added as a large negative number."""
    over = b.one(x.names)
    rest = tuple(v for v in x.names if v != over)
    mask = Apply("mul", (Apply("eq", (b.access(b.operand(1), x.names), Const(0.0))), Const(b.one((-1e4, -1e9, -math.inf)))))
    names = tuple(dict.fromkeys((*x.names, *(v for a in accesses(mask) for v in a.names))))[:4]
    scores = read(b, b.state(list(names), Apply("add", (x, mask))), names)
    top = read(b, b.state(list(rest), scores, "max"), rest)
    body = Apply("exp", (Apply("sub", (scores, top)),))
    b.state(list(dict.fromkeys((*scores.names, *top.names)))[:4], body)


@st.composite
def hard_programs(draw: st.DrawFn) -> Case:
    """Programs of one to five statements with hard values, and with everything that decides how they are compiled and run."""
    b = HardBuilder(draw)
    for _ in range(draw(st.integers(2, 3))):
        b.add_input()
    statements = draw(st.sampled_from((1, 2, 2, 3, 3, 4, 5)))
    while (room := statements - len(b.einsums)) > 0:
        hard_statement(b, room)
    program = b.program()
    schedule = settings(draw, partition(draw, program), program, b.reassociates)
    if not b.finite:  # in tiles, factors are multiplied to sums: where infinities meet in a sum, that is another program
        schedule = replace(schedule, blocks=())
    merge = draw(st.sampled_from(("any",) * 6 + ("early", "late", "never", "never")))
    pick = draw(st.integers(1, 1000)) if b.chance(3) else 0
    limits = draw(st.sampled_from((0, 0, 0, 1, 2, 3)))
    return Case(program, b.tensors, schedule, merge, pick, limits, draw(st.integers(1, 1000)) if b.chance(3) else 0)
