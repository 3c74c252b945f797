"""The project's HBM2 as the checker of the golden data wants it.

    PYTHONPATH=.:tests/support python ../shared/golden/hbm/check.py hbm_adapter:complete [--faw30]

`complete_in_chunks` advances the memory in random steps instead of in one go, and `complete_in_threads` as several threads do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memory_runs import Cycles, run, run_in_chunks, run_in_threads

from fuseflow.memory.dram_table import DramTable
from fuseflow.memory.mapping import MAPPINGS
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram
from fuseflow.memory.table_files import preset

HBM2 = preset("hbm2").table()


def complete(trace: dict[str, Any], mapping: str) -> Cycles:
    """Completion and acceptance cycle of each request of a trace."""
    return run(memory_of(trace, mapping), trace)


def complete_in_chunks(trace: dict[str, Any], mapping: str) -> Cycles:
    return run_in_chunks(memory_of(trace, mapping), trace)


def complete_in_threads(trace: dict[str, Any], mapping: str) -> Cycles:
    return run_in_threads(lambda ports: memory_of(trace, mapping, ports), trace)


def memory_of(trace: dict[str, Any], mapping: str, ports: int = 1, table: DramTable = HBM2) -> Memory:
    distances = tuple(replace(d, cycles=trace["nFAW"]) if d.window > 1 else d for d in table.distances)
    return Memory(Dram(trace["nch"], MAPPINGS[mapping], replace(table, distances=distances)), ports)
