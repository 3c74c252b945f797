"""Completion and acceptance of every transaction, against Ramulator 2.1: no tolerance, no averages.

`tests/data/hbm` holds some of the traces; the full data, where they are, are checked by the slow tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_runs import Cycles, run, run_in_chunks, run_in_threads

from fuseflow.memory.dram_table import Distance, DramTable
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


ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "hbm"
ALL = ROOT.parent / "shared" / "golden" / "hbm"
FILES = {"RoBaRaCoCh": "golden_r21_ro.npz", "MOP4CLXOR": "golden_r21_mop.npz"}
HOWS = pytest.mark.parametrize("how", [complete, complete_in_chunks, complete_in_threads], ids=lambda how: how.__name__)

Case = tuple[dict[str, Any], Any, Any]
"""A trace, the completions, and the acceptances if they are known; each counted from arrival."""


def cases(folder: Path, mapping: str, faw30: bool = False) -> Iterator[Case]:
    with (
        np.load(folder / "traces.npz") as traces,
        np.load(folder / ("golden_r21_faw30.npz" if faw30 else FILES[mapping])) as golden,
    ):
        for key in golden.files:
            name, what = key.split("/")
            if what == (mapping if faw30 else "lat"):
                arr, addr, rw = (traces[f"{name}/{part}"].astype(np.int64) for part in ("arr", "addr", "rw"))
                trace = {"nch": int(traces[f"{name}/nch"]), "nFAW": 30 if faw30 else 15, "arr": arr, "addr": addr * 32, "rw": rw}
                yield trace, golden[key], None if faw30 else golden[f"{name}/q"]


def check(folder: Path, mapping: str, faw30: bool, function: Any) -> None:
    found = 0
    for trace, latency, queued in cases(folder, mapping, faw30):
        done, accepted = function(trace, mapping)
        assert np.array_equal(done - trace["arr"], latency)
        assert queued is None or np.array_equal(accepted - trace["arr"], queued)
        found += 1
    assert found >= 3


@HOWS
@pytest.mark.parametrize("faw30", [False, True])
@pytest.mark.parametrize("mapping", FILES)
def test_some_traces(mapping: str, faw30: bool, how: Any) -> None:
    check(DATA, mapping, faw30, how)


@pytest.mark.slow
@pytest.mark.skipif(not ALL.is_dir(), reason="../shared/golden/hbm is not here")
@HOWS
@pytest.mark.parametrize("faw30", [False, True])
@pytest.mark.parametrize("mapping", FILES)
def test_all_traces(mapping: str, faw30: bool, how: Any) -> None:
    check(ALL, mapping, faw30, how)


@pytest.mark.parametrize("distance", HBM2.distances, ids=lambda d: f"{d.scope} {'/'.join(d.first)}-{'/'.join(d.then)} {d.window}")
def test_every_distance_counts(distance: Distance) -> None:
    """One more cycle is noticed, but from REFab to PREab, since all banks are closed, and from PREab to ACT, since REFab comes first."""
    longer = tuple(replace(d, cycles=d.cycles + (d == distance)) for d in HBM2.distances)
    noticed = _is_noticed(replace(HBM2, distances=longer), 1 if distance.window > 1 else 0)
    assert noticed == ((distance.first, distance.then) not in ((("REFab",), ("PREab",)), (("PREab",), ("ACT",))))


def test_a_longer_refresh_period_and_latency_and_longer_queues_are_noticed() -> None:
    assert not _is_noticed(HBM2)
    assert _is_noticed(replace(HBM2, refresh_period=HBM2.refresh_period + 10))
    for name in ("read_latency", "read_queue", "write_queue"):
        assert _is_noticed(replace(HBM2, **{name: getattr(HBM2, name) + 1}))


def _is_noticed(table: DramTable, faw: int = 0) -> bool:
    return any(_differs(case, mapping, table, faw) for mapping in FILES for case in cases(DATA, mapping, faw > 0))


def _differs(case: Case, mapping: str, table: DramTable, faw: int) -> bool:
    trace, latency, _ = case
    memory = memory_of({**trace, "nFAW": trace["nFAW"] + faw}, mapping, table=table)
    memory.issue_all(0, trace["addr"], 32, trace["rw"], trace["arr"])
    memory.drain()
    return not np.array_equal(memory.requests(0)["done"] - trace["arr"], latency)
