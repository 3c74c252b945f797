"""Without a compiler the channel is plain Python, and says the same."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from fuseflow.memory.memory import Memory
from fuseflow.memory.models import ComalFixed, Dram, MemoryModel

SCRIPT = """
import runpy, sys
found = runpy.run_path(sys.argv[1])
print([found["cycles"](model) for model in found["models"]()])
"""


def models() -> list[MemoryModel]:
    return [Dram(2), ComalFixed()]


def cycles(model: MemoryModel) -> list[list[int]]:
    """Of 300 mixed requests, in and out of three rows, over a refresh."""
    random = np.random.default_rng(0)
    memory = Memory(model, ports=1)
    arrivals = np.sort(random.integers(3000, 4500, 300))
    memory.issue_all(0, random.integers(0, 1 << 11, 300) * 32, 64, random.integers(0, 2, 300), arrivals)
    memory.drain()
    return [memory.requests(0)[what].tolist() for what in ("accepted", "done", "visible")]


def test_the_same_without_a_compiler() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str([cycles(model) for model in models()])
