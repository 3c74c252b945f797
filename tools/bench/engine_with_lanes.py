"""BigBird's attention with heads, query rows or both in lanes, as `paired_engine.py` simulates it."""

from __future__ import annotations

import time
from pathlib import Path

import fuseflow as ff
from fuseflow.run.compiled import Compiled
from fuseflow.sim import simulate

MODEL = Path(__file__).resolve().parents[2] / "models" / "gpt_bigbird.py"


def compiled(heads: int, rows: int, data: str, all_heads: int, machine: str) -> Compiled:
    schedule = ff.Schedule.fuse("layerwise").par(i=heads, j=rows)
    return ff.compile(MODEL, data=data, options={"part": "attention", "heads": all_heads}, schedule=schedule, machine=machine)


def seconds(program: Compiled) -> tuple[float, int, int]:
    """Of one simulation; its firings and cycles."""
    (region,) = program.regions
    start = time.process_time()
    result = simulate(region.graph, program.inputs(), program.machine, engine="fast")
    return time.process_time() - start, result.firings, result.cycles
