"""Without a compiler the kernels are plain Python functions, and give the same results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from engines import LIMITS, disagreements
from random_graphs import random_case
from fuseflow.native.records import COMPILED

assert not COMPILED
for seed in range(40):
    assert not list(disagreements(random_case(seed, "small"), LIMITS[seed % len(LIMITS)])), seed
"""


def test_random_graphs_agree_without_a_compiler() -> None:
    support = str(Path(__file__).resolve().parents[2] / "support")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": support},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
