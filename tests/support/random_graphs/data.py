"""Random tensors: first what a graph must know of them, later their data. Empty fibers everywhere, stored zeros, odd numbers."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.samml.nodes import TensorDecl
from fuseflow.tensors import DTYPES, Format, Tensor, from_coordinates

INF = math.inf
FILLS = (0.0, 0.0, 0.0, 1.0, -INF)
DENSITIES = (0.0, 0.3, 0.4, 0.5, 0.5, 0.5, 0.6, 0.8, 0.8, 1.0)
ODD = (0.0, -0.0, INF, -INF, math.nan, 1e300, -5e-324, 1e-30, 2.5)
MOST = 60_000
"""Elements of the largest tensor, stored or not."""
WIDE = 2**53 + 1
"""An integer that a stream of floats cannot hold."""


@dataclass(frozen=True)
class Source:
    """An input: its declaration, how full it is, and the numbers it stores. `limit`: their largest magnitude, None if they may be
    infinite or NaN. `counts[p]`: expected number of references that the levels above level p give."""

    decl: TensorDecl
    density: float
    numbers: str
    limit: float | None
    counts: tuple[float, ...]

    def fiber(self, level: int) -> float:
        """Expected length of a fiber of a level."""
        return self.counts[level + 1] / self.counts[level] if self.counts[level] else 0.0

    def size(self, level: int) -> int:
        return self.decl.shape[self.decl.format.order[level]]


NUMBERS: dict[str, tuple[float | None, bool]] = {
    "small": (4.0, True),
    "wide": (float(WIDE), True),
    "real": (8.0, False),
    "odd": (None, False),
}
"""Kinds of numbers: their largest magnitude, and whether they are whole."""


def random_format(rng: random.Random, rank: int) -> Format:
    """Dense and compressed levels, and a list of coordinates among them."""
    levels = [rng.choice(("dense", "dense", "compressed", "compressed", "compressed")) for _ in range(rank)]
    if rank > 1 and rng.random() < 0.3:
        first = rng.randrange(rank - 1)
        last = rng.randrange(first + 1, rank)
        levels[first : last + 1] = ["compressed(nonunique)", *["singleton(nonunique)"] * (last - first - 1), "singleton"]
    order = list(range(rank))
    if rng.random() < 0.3:
        rng.shuffle(order)
    return Format.of(*levels, order=tuple(order))


def random_source(rng: random.Random, name: str, sizes: tuple[int, ...], rank: int) -> Source:
    shape = tuple(rng.choice(sizes) for _ in range(rank))
    while math.prod(shape) > MOST:
        shape = tuple(-(-size // 2) for size in shape)
    numbers = rng.choice(("small", "small", "small", "real", "real", "wide", "odd"))
    whole = NUMBERS[numbers][1]
    dtype = rng.choice(
        ("i32", "i64", "f32", "f64") if whole and numbers != "wide" else ("i64", "f64") if whole else ("f32", "f64")
    )
    fill = rng.choice(FILLS)
    fill = 0.0 if dtype[0] == "i" and fill == -INF else fill
    decl = TensorDecl(name, shape, random_format(rng, rank), dtype, fill)
    density = rng.choice(DENSITIES)
    return Source(decl, density, numbers, NUMBERS[numbers][0], _counts(decl, density))


def _counts(decl: TensorDecl, density: float) -> tuple[float, ...]:
    sizes = [decl.shape[d] for d in decl.format.order]
    counts, stored = [1.0], 1.0
    for p, (level, size) in enumerate(zip(decl.format.levels, sizes, strict=True)):
        below = math.prod(sizes[p + 1 :])
        stored = math.prod(sizes[: p + 1]) * (1 - (1 - density) ** below)
        counts.append(counts[-1] * size if level.full else min(stored, counts[-1] * size))
    return tuple(counts)


def tensor(source: Source, rng: np.random.Generator) -> Tensor:
    decl = source.decl
    mask = _stored(source, rng)
    where = np.array(np.nonzero(mask)) if decl.shape else np.zeros((0, int(mask)), dtype=np.int64)
    return from_coordinates(decl.shape, where, _values(source, where.shape[1], rng), decl.format, decl.fill)


def _stored(source: Source, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Where something is stored: at random, and then nothing in some slices of the outermost levels: first, last, all, any."""
    shape, order = source.decl.shape, source.decl.format.order
    mask = np.asarray(rng.random(shape) < source.density)
    if source.density == 1.0 or not shape:
        return mask
    for dimension in order[: max(1, len(shape) - 1)]:
        size = shape[dimension]
        if size:
            empty = (rng.random(size) < 0.25) & (rng.random() < 0.4)
            empty[[0, -1]] |= rng.random(2) < 0.15
            np.moveaxis(mask, dimension, 0)[empty] = False
    return mask


def _values(source: Source, count: int, rng: np.random.Generator) -> npt.NDArray[np.generic]:
    match source.numbers:
        case "small":
            values = rng.integers(-2, 5, count)
        case "wide":
            values = rng.choice(np.array([WIDE, -WIDE, 0, 1]), count)
        case "real":
            values = np.clip(rng.standard_normal(count), -8, 8)
        case _:
            values = rng.choice(np.array(ODD), count)
    with np.errstate(over="ignore"):
        return values.astype(DTYPES[source.decl.dtype].holder)
