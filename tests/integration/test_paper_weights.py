"""The weights of the published runs are drawn in pieces, and are what drawing them at once gives."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

WEIGHTS = runpy.run_path(str(Path(__file__).parents[2] / "models" / "paper" / "weights.py"))


@pytest.mark.parametrize(
    ("rows", "columns", "density"), [(5, 7, 0.4), (1, 3, 1.0), (4, 4, 0.0), (3000, 2000, 0.1), (2, 3_000_000, 0.2)]
)
def test_pieces_are_the_whole(rows: int, columns: int, density: float) -> None:
    pieces, whole = np.random.default_rng(3), np.random.default_rng(3)
    drawn = WEIGHTS["sparse_weights"](pieces, rows, columns, density)
    stored = whole.random((rows, columns)) < density
    values = whole.integers(1, 255, np.count_nonzero(stored)).astype(np.float32)
    assert drawn.shape == (rows, columns) and drawn.dtype == np.float32
    assert (drawn.indptr == np.append(0, np.cumsum(np.count_nonzero(stored, axis=1)))).all()
    assert (drawn.indices == np.nonzero(stored)[1]).all() and (drawn.data == values).all()
    assert pieces.bit_generator.state == whole.bit_generator.state
