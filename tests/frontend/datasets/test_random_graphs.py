"""Random features are drawn in pieces, and are what drawing them at once gives."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fuseflow.frontend.datasets.random_graphs import random_features

SIZES = [(7, 5, 0.3), (0, 4, 0.5), (1, 1, 1.0), (3, 5_000_000, 0.2), (3000, 2000, 0.1), (9, 9, 0.0)]


@pytest.mark.parametrize(("nodes", "features", "density"), SIZES)
def test_pieces_are_the_whole(nodes: int, features: int, density: float) -> None:
    pieces, whole = np.random.default_rng(3), np.random.default_rng(3)
    drawn = random_features(nodes, features, density, pieces)
    stored = whole.random((nodes, features)) < density
    expected = np.zeros((nodes, features), dtype=np.float32)
    expected[stored] = (1.0 - whole.random(np.count_nonzero(stored))).astype(np.float32)
    assert drawn.shape == (nodes, features) and drawn.dtype == np.float32 and drawn.has_canonical_format
    assert drawn.nnz == np.count_nonzero(stored) and (drawn.toarray() == expected).all()
    assert pieces.bit_generator.state == whole.bit_generator.state


def test_features_take_little_memory() -> None:
    """It was some fifty bytes a feature when places were numbered in 64 bits."""
    tracemalloc.start()
    drawn = random_features(1 << 19, 100, 1.0, np.random.default_rng(0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert drawn.nnz == 100 << 19 and peak < 20 * drawn.nnz
