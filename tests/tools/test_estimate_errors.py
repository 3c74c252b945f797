"""The table of errors of the estimate: what is above a bar is said, and counts are those of runs."""

from __future__ import annotations

import json
from pathlib import Path

import estimate_errors as study
from click.testing import CliRunner

import fuseflow as ff

DATA = "random:nodes=12,features=6,classes=3"


def point(granularity: str, machine: str = "comal") -> dict[str, object]:
    return {"model": "gcn", "workload": "small", "data": DATA, "granularity": granularity, "machine": machine, "options": []}


def run_row(granularity: str) -> dict[str, object]:
    schedule = ff.Schedule.load(study.ROOT / "schedules" / f"gcn_{granularity}.yaml")
    made = ff.compile(study.ROOT / "models/paper/gcn.py", data=DATA, schedule=schedule, machine="comal").run(check=False)
    moved = made.stats["bytes"]
    numbers = {"cycles": made.cycles, "flops": made.flops, "bytes_read": moved["read"], "bytes_written": moved["write"]}
    return {"key": f"gcn/{DATA}/{granularity}/comal", "point": point(granularity), "state": "done", **numbers}


def test_estimates_of_runs(tmp_path: Path):
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(json.dumps(run_row(g)) + "\n" for g in ("unfused", "full")))
    store = tmp_path / "store.jsonl"
    shown = CliRunner().invoke(study.main, ["--runs", str(runs), "--store", str(store), "--extra"])
    assert shown.exit_code in (0, 1), shown.output
    rows = {row["point"]["granularity"]: row for row in map(json.loads, store.read_text().splitlines())}
    assert set(rows) == {"unfused", "partial", "full"} and rows["partial"]["run"] is None
    for granularity in ("unfused", "full"):
        assert rows[granularity]["tensors"]["exact"] and not rows[granularity]["statistics"]["exact"]
        assert [study.error(rows[granularity], "tensors", what) for what in ("flops", "bytes")] == [0.0, 0.0]
    assert "1 of 1 from tensors" in study.summary(rows.values())
    again = CliRunner().invoke(study.main, ["--store", str(store), "--summary"])
    assert study.summary(rows.values()) in again.output


def test_misses_are_said():
    numbers = {"flops": 100, "bytes": 100, "cycles": 100}
    right = {**numbers, "exact": True, "first_ms": 1.0, "again_ms": 1.0}
    row = {"key": "k", "point": point("full"), "run": numbers, "tensors": right, "statistics": {**right, "flops": 104}}
    assert study.misses([{**row, "statistics": right}]) == []
    (miss,) = study.misses([row])
    assert "flops from statistics are 4.00 % off, more than 2.8 %" in miss
