"""Bandwidth at saturation: 16 transactions offered a cycle, 8 channels. Bytes a cycle, of 256."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.memory.mapping import MAPPINGS
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram

N = 60_000


def bandwidth(mapping: str, units: np.ndarray) -> float:
    memory = Memory(Dram(8, MAPPINGS[mapping]), ports=1)
    memory.issue_all(0, units * 32, 32, 0, np.arange(len(units)) // 16)
    memory.drain()
    return 32 * len(units) / int(memory.requests(0)["done"].max())


def random_pieces(size: int) -> np.ndarray:
    """Pieces of `size` bytes anywhere in the memory."""
    units = size // 32
    return (np.random.default_rng(0).integers(0, (1 << 34) // size, N // units)[:, None] * units + np.arange(units)).ravel()


def test_the_default_mapping_reaches_85_percent_on_sequential_lines() -> None:
    assert bandwidth("BGint_xor", np.arange(N)) >= 0.85 * 256


def test_random_lines_get_at_most_55_percent() -> None:
    assert bandwidth("BGint_xor", random_pieces(64)) <= 0.55 * 256


@pytest.mark.parametrize(
    ("mapping", "sequential", "random_32", "random_64", "stride_4k"),
    [("RoBaRaCoCh", 131.8, 76.3, 135.0, 19.2), ("MOP4CLXOR", 223.9, 76.2, 75.6, 12.9), ("BGint_xor", 228.0, 76.1, 132.5, 57.9)],
)
def test_the_mappings(mapping: str, sequential: float, random_32: float, random_64: float, stride_4k: float) -> None:
    """The published values, within 2 % where addresses are random."""
    assert bandwidth(mapping, np.arange(N)) == pytest.approx(sequential, abs=0.1)
    assert bandwidth(mapping, random_pieces(32)) == pytest.approx(random_32, rel=0.02)
    assert bandwidth(mapping, random_pieces(64)) == pytest.approx(random_64, rel=0.02)
    assert bandwidth(mapping, np.arange(N) * 128 % (1 << 29)) == pytest.approx(stride_4k, abs=0.1)
