"""Random features are drawn in pieces, and are what drawing them at once gives."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import DataError
from fuseflow.frontend.data import load_data
from fuseflow.frontend.datasets.built_in import bigbird_blocks, bigbird_mask, random_features

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


@pytest.mark.parametrize(("block", "blocks", "entries"), [(16, 549, 140_544), (32, 268, 274_432), (64, 118, 483_328)])
def test_published_counts(block: int, blocks: int, entries: int) -> None:
    assert bigbird_blocks(1024, block).sum() == blocks
    mask = bigbird_mask(1024, block)
    assert mask.nnz == entries and mask.has_canonical_format and set(mask.data) == {1.0}
    assert (mask.toarray() == np.kron(bigbird_blocks(1024, block), np.ones((block, block)))).all()


def test_the_generator_of_others_is_not_touched() -> None:
    np.random.seed(5)
    expected = np.random.random()
    np.random.seed(5)
    bigbird_blocks(64, 8)
    assert np.random.random() == expected


@given(st.integers(2, 20), st.integers(1, 9), st.integers(0, 3))
def test_window_and_global_blocks(count: int, block: int, seed: int) -> None:
    blocks = bigbird_blocks(count * block, block, seed)
    far = np.abs(np.subtract.outer(np.arange(count), np.arange(count))) > 1
    assert blocks[~far].all() and blocks[:2].all() and blocks[:, :2].all()
    assert (blocks[2:, 2:] & far[2:, 2:]).sum(axis=1).max(initial=0) <= 2


@pytest.mark.parametrize(("length", "block"), [(10, 3), (0, 1), (8, 0), (8, -2), (8, 8)])
def test_refused(length: int, block: int) -> None:
    with pytest.raises(DataError):
        bigbird_mask(length, block)


def test_as_data() -> None:
    data = load_data("bigbird:block=4,length=16,features=6")
    assert data.inputs.shape == (16, 6) and (data.edges != bigbird_mask(16, 4)).nnz == 0
    assert (data.matrix() != data.edges).nnz == 0 and "synthetic" in data.notice
    with pytest.raises(DataError, match="unknown option `adj`"):
        load_data("bigbird:adj=raw")
