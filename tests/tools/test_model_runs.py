"""The runner of the published table: nothing runs twice, nothing is lost, failures are rows."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import model_runs as study
import pytest
from click.testing import CliRunner, Result
from store import append, load

from fuseflow.frontend.data import FILE_READERS

POINT = study.Point("gcn", "small", "random:nodes=30,features=8", "partial", "ideal", ("small=true",))


def row(point: study.Point = POINT, **changed: object) -> study.Row:
    return study.Row(point.key, study.asdict(point), **({"state": "done", "seconds": 1.5, "peak_mb": 9} | changed))  # type: ignore[arg-type]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Points run at once, without a process; a full fusion fails."""
    ran: list[str] = []

    def run(point: study.Point, data_dir: Path | None, limit: float) -> study.Row:
        ran.append(point.key)
        state = "failed" if point.granularity == "full" else "done"
        check = {"max_rel_error": 0.0}
        return row(
            point, state=state, cycles=100 if point.granularity == "unfused" else 50, check=check, error="a | deadlock\nmore"
        )

    monkeypatch.setattr(study, "run", run)
    return ran


def call(*args: str) -> Result:
    return CliRunner().invoke(study.main, args, catch_exceptions=False)


def test_a_point_in_a_process_of_its_own() -> None:
    found = study.run(POINT, None, 60)
    assert (found.state, found.error) == ("done", "")
    assert found.cycles == sum(found.regions.values()) > 0 and set(found.regions) == {"layer1", "layer2"}
    assert found.check is not None and found.check["passed"] and found.peak_mb > 20 and found.seconds > 0


def test_failures_and_the_limit_are_rows() -> None:
    failed = study.run(replace(POINT, data="karat"), None, 60)
    assert failed.state == "failed" and "unknown data set `karat`" in failed.error and failed.cycles == 0
    late = study.run(POINT, None, 0.1)
    assert late.state == "limit" and late.seconds < 5 and "0.1 s" in late.error


def test_what_is_there_is_skipped(tmp_path: Path, counted: list[str]) -> None:
    store = str(tmp_path / "rows.jsonl")
    assert call("--store", store, "--only", "gcn/cora/*").exit_code == 0
    assert counted == [f"gcn/synthetic:cora/{granularity}/comal" for granularity in study.GRANULARITIES]
    call("--store", store, "--only", "gcn/cora/*")
    assert len(counted) == 3
    call("--store", store, "--only", "gcn/cora/*", "--again")
    assert counted[3:] == ["gcn/synthetic:cora/full/comal"]  # what failed, nothing else
    call("--store", store, "--only", "gcn/cora/partial", "--machine", "rda")
    assert counted[4:] == ["gcn/synthetic:cora/partial/rda"]
    short = call("--store", store, "--summary").output.splitlines()
    assert len(counted) == 5 and len(short) == 3  # of one machine, without what failed
    assert short[2] == "| GCN | `synthetic:cora` | 100 | 50 |  | 2.00 |  | 1.63 | 0.29 | 0e+00 | 3 | 9 |"


def test_a_line_that_was_cut_off_costs_its_point_only(tmp_path: Path) -> None:
    store = tmp_path / "rows.jsonl"
    for cycles in (1, 2):
        append(store, row(cycles=cycles))
    with store.open("rb+") as stream:
        stream.seek(-20, os.SEEK_END)
        stream.truncate()
    assert load(store, study.Row)[POINT.key].cycles == 1
    append(store, row(cycles=3))
    assert load(store, study.Row)[POINT.key].cycles == 3
    assert len(store.read_text().splitlines()) == 3
    assert load(tmp_path / "none.jsonl", study.Row) == {}


def test_the_points(tmp_path: Path) -> None:
    listed = call("--store", str(tmp_path / "s"), "--list").output.split()
    assert len(listed) == len(set(listed)) == 16 * 3 - 2  # of 16 workloads; the full fusion of Collab is apart
    assert "gcn/synthetic:collab/full/comal" not in listed
    assert call("--store", str(tmp_path / "s"), "--list", "--only", "*/collab/full").output.split() == [
        "gcn/synthetic:collab/full/comal",
        "graphsage/synthetic:collab/full/comal",
    ]
    assert call("--store", str(tmp_path / "s"), "--only", "gcn/kora/*").exit_code == 2
    assert "gpt/bigbird:block=16/full/comal+decoders=1" in call("--store", "s", "--list", "--decoders", "1").output
    raw = Path(__file__).parents[1] / "data" / "datasets"
    listed = call("--store", str(tmp_path / "s"), "--list", "--data-dir", str(raw)).output.split()
    assert "gcn/cora_ml/full/comal" in listed and "gcn/synthetic:dblp/full/comal" in listed


def test_the_command_of_a_point() -> None:
    command = replace(POINT, data="cora").command(Path("raw"))
    assert command[0] == sys.executable and "--data-dir" in command and "cora" in FILE_READERS
    assert "--data-dir" not in replace(POINT, data="synthetic:cora").command(Path("raw"))
    assert json.loads(json.dumps(study.asdict(row())))["point"]["options"] == ["small=true"]


def test_a_point_with_a_format_of_its_own() -> None:
    """The published graphs hold features dense and scan every fiber; a point with another format is not theirs."""
    point = replace(POINT, formats=("X=csr",))
    command = point.command(None)
    assert point.key == POINT.key + "+X=csr" and command[command.index("X=csr") - 1] == "--format"
    assert "--rescan" in POINT.command(None) and "--rescan" not in command
    ran = study.run(point, None, 60)
    assert ran.state == "done" and "small=true X=csr" in study.summary([ran], study.GRANULARITIES, {})


def test_formats_are_asked_for(tmp_path: Path) -> None:
    listed = call("--store", str(tmp_path / "s"), "--list", "--only", "gcn/cora/full", "--format", "X=csr").output
    assert listed == "gcn/synthetic:cora/full/comal+X=csr\n"
