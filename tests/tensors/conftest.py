"""Formats, shapes and arrays for random tests (a fixture, because test folders are not packages)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from fuseflow.tensors import Format, Tensor, pack


@st.composite
def _formats(draw, rank: int) -> Format:
    order = tuple(draw(st.permutations(range(rank))))
    names = [draw(st.sampled_from(["dense", "compressed", "bitmap", "nm(2:2)", "nm(3:3)"])) for _ in range(rank)]
    # some levels may be a coordinate list: one nonunique compressed level, then singletons; fibers or arrays may hang below it
    n = draw(st.integers(0, rank))
    if n > 1:
        first = draw(st.integers(0, rank - n))
        names[first : first + n] = ["compressed(nonunique)", *["singleton(nonunique)"] * (n - 2), "singleton"]
    return Format.of(*names, order=order)


@st.composite
def _packed(draw) -> tuple[np.ndarray, Tensor]:
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    fill = draw(st.sampled_from([0.0, 1.0, -np.inf]))
    stored = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    array = np.where(rng.random(shape) < stored, rng.integers(2, 9, shape), fill)
    return array, pack(array, draw(_formats(len(shape))), fill)


@pytest.fixture(scope="session")
def formats():
    """`formats(rank)`: every legal format of a tensor of this rank."""
    return _formats


@pytest.fixture(scope="session")
def packed() -> st.SearchStrategy[tuple[np.ndarray, Tensor]]:
    """Arrays of rank 0 to 3, empty dimensions included, packed in any format, any part of them stored."""
    return _packed()
