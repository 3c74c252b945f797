"""The project's HBM2 as the checker of the golden data wants it.

    PYTHONPATH=.:tests/support python ../shared/golden/hbm/check.py hbm_adapter:complete [--faw30]

`complete_in_chunks` advances the memory in random steps instead of in one go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.mapping import MAPPINGS
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Hbm2
from fuseflow.memory.timing import HBM2_2000

Cycles = npt.NDArray[np.int64]


def complete(trace: dict[str, Any], mapping: str) -> tuple[Cycles, Cycles]:
    """Completion and acceptance cycle of each request of a trace."""
    memory = memory_of(trace, mapping)
    memory.issue_all(0, trace["addr"], 32, trace["rw"], trace["arr"])
    memory.drain()
    return _cycles(memory)


def complete_in_chunks(trace: dict[str, Any], mapping: str, seed: int = 0) -> tuple[Cycles, Cycles]:
    """The same, in steps of random length; requests are issued when their cycle has come."""
    memory, random = memory_of(trace, mapping), np.random.default_rng(seed)
    arrivals, issued = trace["arr"], 0
    while issued < len(arrivals):
        until = memory.cycle + int(2 ** random.uniform(0, 12))
        now = slice(issued, int(np.searchsorted(arrivals, until)))
        if now.stop > issued:
            memory.issue_all(0, trace["addr"][now], 32, trace["rw"][now], arrivals[now])
            issued = now.stop
        memory.advance(until)
    while (memory.ports["answered"] < memory.ports["issued"]).any():
        memory.advance(memory.cycle + int(2 ** random.uniform(0, 12)))
    return _cycles(memory)


def memory_of(trace: dict[str, Any], mapping: str) -> Memory:
    device = replace(HBM2_2000, nFAW=trace["nFAW"])
    return Memory(Hbm2(trace["nch"], MAPPINGS[mapping], device), ports=1)


def _cycles(memory: Memory) -> tuple[Cycles, Cycles]:
    requests = memory.requests(0)
    return requests["done"], requests["accepted"]
