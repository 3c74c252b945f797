"""The engine and the reference are the same simulator: two thousand random graphs of all primitives say the same on both."""

from __future__ import annotations

import pytest
from engines import LIMITS, disagreements
from random_graphs import random_case

GRAPHS, CHUNK = 2000, 50


@pytest.mark.parametrize("first", range(0, GRAPHS, CHUNK))
def test_random_graphs_agree_token_for_token(first: int) -> None:
    """Outputs, cycles, statistics, streams and deadlocks; on the engine with its usual limits and with tiny ones."""
    for seed in range(first, first + CHUNK):
        limits = LIMITS[seed % len(LIMITS)]
        found = list(disagreements(random_case(seed), limits))
        assert not found, f"seed {seed} with {limits}: " + "\n".join(found[:5])
