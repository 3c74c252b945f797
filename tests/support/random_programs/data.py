"""Random formats and packed tensors."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from fuseflow.tensors import Format, Tensor, from_coordinates

LEVELS = st.sampled_from(["dense", "compressed", "compressed"])
DENSITIES = (0.0, 0.3, 0.5, 0.5, 1.0)


def formats(rank: int, coo: bool = True) -> st.SearchStrategy[Format]:
    """Dense and compressed levels in any mode order, and lists of coordinates (which no result is stored in), alone or with other levels
    above or below."""
    orders = st.permutations(range(rank)).map(tuple)
    levels = st.lists(LEVELS, min_size=rank, max_size=rank)
    if coo and rank > 1:
        listed = st.lists(LEVELS, max_size=rank - 2).flatmap(lambda others: _with_list(rank, others))
        levels = st.integers(0, 4).flatmap(lambda kind, usual=levels: listed if kind == 4 else usual)
    return st.tuples(levels, orders).map(lambda f: Format.of(*f[0], order=f[1]))


def dense(rank: int) -> st.SearchStrategy[Format]:
    """Dense levels in any mode order."""
    return st.permutations(range(rank)).map(lambda order: Format.of(*["dense"] * rank, order=tuple(order)))


def coordinates(rank: int) -> st.SearchStrategy[Format]:
    """COO, with its dimensions in any order."""
    return st.permutations(range(rank)).map(lambda order: Format.of(*_coo(rank), order=tuple(order)))


def _with_list(rank: int, others: list[str]) -> st.SearchStrategy[list[str]]:
    """A list of coordinates, with these levels above and below it."""
    cuts = st.integers(0, len(others))
    return cuts.map(lambda cut: [*others[:cut], *_coo(rank - len(others)), *others[cut:]])


def _coo(rank: int) -> list[str]:
    return ["compressed(nonunique)", *["singleton(nonunique)"] * (rank - 2), "singleton"]


@st.composite
def tensors(
    draw: st.DrawFn, shape: tuple[int, ...], fill: float = 0.0, stored_as: st.SearchStrategy[Format] | None = None
) -> Tensor:
    """Small integers, or their halves, at random places: none, all, or some with the first, last or every row or column empty. Stored
    entries may equal the implicit value."""
    format = draw(formats(len(shape)) if stored_as is None else stored_as)
    density = draw(st.sampled_from(DENSITIES))
    unit = draw(st.sampled_from([1.0, 1.0, 0.5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    stored = np.asarray(rng.random(shape) < density)
    for axis in range(min(2, len(shape))):
        if shape[axis]:
            for row in draw(st.sampled_from([(), (), (0,), (-1,), (0, -1)])):
                np.moveaxis(stored, axis, 0)[row] = False
    values = unit * rng.integers(-2, 4, math.prod(shape)).reshape(shape).astype(np.float64)
    return from_coordinates(shape, np.argwhere(stored).T, values[stored].reshape(-1), format, fill)
