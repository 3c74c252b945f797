"""Without a compiler the kernels are plain Python functions, and give the same results."""

from __future__ import annotations

from uncompiled import check_uncompiled

SCRIPT = """
from engines import LIMITS, disagreements
from random_graphs import random_case
from fuseflow.native.records import COMPILED

assert not COMPILED
for seed in range(40):
    assert not list(disagreements(random_case(seed, "small"), LIMITS[seed % len(LIMITS)])), seed
"""


def test_random_graphs_agree_without_a_compiler() -> None:
    check_uncompiled(SCRIPT)
