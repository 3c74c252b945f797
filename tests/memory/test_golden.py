"""Completion and acceptance of every transaction, against Ramulator 2.1: no tolerance, no averages.

`tests/data/hbm` holds some of the traces; the full data, where they are, are checked by the slow tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hbm_adapter
import numpy as np
import pytest

from fuseflow.memory.memory import Memory
from fuseflow.memory.timing import DISTANCE_NAMES

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "hbm"
ALL = ROOT.parent / "shared" / "golden" / "hbm"
FILES = {"RoBaRaCoCh": "golden_r21_ro.npz", "MOP4CLXOR": "golden_r21_mop.npz"}
ADAPTER = vars(hbm_adapter)

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


@pytest.mark.parametrize("how", ["complete", "complete_in_chunks", "complete_in_threads"])
@pytest.mark.parametrize("faw30", [False, True])
@pytest.mark.parametrize("mapping", FILES)
def test_some_traces(mapping: str, faw30: bool, how: str) -> None:
    check(DATA, mapping, faw30, ADAPTER[how])


@pytest.mark.slow
@pytest.mark.skipif(not ALL.is_dir(), reason="../shared/golden/hbm is not here")
@pytest.mark.parametrize("how", ["complete", "complete_in_chunks", "complete_in_threads"])
@pytest.mark.parametrize("faw30", [False, True])
@pytest.mark.parametrize("mapping", FILES)
def test_all_traces(mapping: str, faw30: bool, how: str) -> None:
    check(ALL, mapping, faw30, ADAPTER[how])


@pytest.mark.parametrize("name", [name for name in DISTANCE_NAMES if name != "refresh_to_close"])
def test_every_distance_counts(name: str) -> None:
    """One more cycle is noticed (a refresh period of ten more). REFab to PREab is the only distance that cannot bind."""
    faw30, by = name == "four_acts", 10 if name == "refresh_period" else 1
    assert any(_differs(case, mapping, name, by) for mapping in FILES for case in cases(DATA, mapping, faw30))


def test_no_other_cycle_is_noticed() -> None:
    assert not any(_differs(case, mapping, "refresh_period", 0) for mapping in FILES for case in cases(DATA, mapping))


def _differs(case: Case, mapping: str, name: str, by: int) -> bool:
    trace, latency, _ = case
    memory: Memory = ADAPTER["memory_of"](trace, mapping)
    model: Any = memory.model
    model.timing[DISTANCE_NAMES.index(name)] += by
    if name == "refresh_period":
        for k in range(trace["nch"]):
            model.record(k)["next_refresh"] += by
    memory.issue_all(0, trace["addr"], 32, trace["rw"], trace["arr"])
    memory.drain()
    return not np.array_equal(memory.requests(0)["done"] - trace["arr"], latency)
