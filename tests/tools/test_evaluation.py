"""The evaluation as one command: rows are exact or sampled, nothing runs twice, nothing is lost, and the memory is shared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from claims import published
from click.testing import CliRunner, Result
from evaluation_point import run_point
from evaluation_table import disagreements, error, table
from memories import without_refresh
from process_pool import CommandEnd, Limits, Task, run_tasks
from store import ROOT, ROWS, load

import evaluation
import fuseflow as ff
from fuseflow.sampling.interval import SampledCycles

ASK = evaluation.Ask(60, 0.02, 0)
SAE = evaluation.Point("sae", "imagenet", "images:side=6", "full", "rda")
GCN = evaluation.Point("gcn", "cora", "synthetic:cora", "full", "rda")


def row(point: evaluation.Point = GCN, ask: evaluation.Ask = ASK, **changed: Any) -> evaluation.Row:
    given = {"kind": "exact", "exact_cycles": 100, **changed}
    asked = {"exact_seconds": ask.exact_seconds, "error": ask.error, "seed": ask.seed}
    about = (evaluation.row_key(point, ask), evaluation.asdict(point), asked)
    return evaluation.Row(*about, "done", 5.0, 6.0, 700, **given)


def sampled(low: int, estimate: int, high: int) -> dict[str, Any]:
    cycles = {"estimate": estimate, "low": low, "high": high, "confidence": 0.95}
    return {"kind": "sampled", "exact_cycles": None, "sampled_cycles": cycles}


def ended(run: dict[str, Any], **changed: Any) -> CommandEnd:
    return replace(CommandEnd(json.dumps(run), "", 0, False, 2.0, 1.5, 90), **changed)


def test_there_are_the_48_points_of_the_figure() -> None:
    points = list(evaluation.points("rda", None))
    assert len(points) == len({p.key for p in points}) == 48
    assert {f"{p.model}/{p.workload}" for p in points} == set(published("figure12"))
    assert {p.data for p in points if p.model == "gpt"} == {"bigbird:block=16", "bigbird:block=32", "bigbird:block=64"}
    assert {p.data for p in points if p.workload == "mag"} == {"synthetic:mag"}


def test_the_page_shows_the_committed_rows() -> None:
    """All 48 points: every sampled one within the error that was asked, every check passed."""
    rows = list(load(ROWS / "evaluation.jsonl", evaluation.Row).values())
    points = [evaluation.Point(**{**r.point, "options": tuple(r.point["options"])}) for r in rows]
    assert len({(p.model, p.workload, p.granularity) for p in points}) == len(rows) == 48
    assert all(r.state == "done" and error(r) <= r.asked["error"] for r in rows)
    assert all(check["passed"] for r in rows for check in r.checks.values())
    text = (ROOT / "docs" / "measured" / "evaluation.md").read_text()
    for line in table(rows, published("figure12"), 2).splitlines()[:-2]:
        assert line in text, line


def test_files_take_the_place_of_standins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "has_files", lambda name, folder: name == "cora" and folder == tmp_path)
    data = {p.data for p in evaluation.points("rda", tmp_path) if p.workload in ("cora", "dblp")}
    assert data == {"cora", "synthetic:dblp"}
    for point in evaluation.points("rda", tmp_path):
        assert ("--data-dir" in evaluation.task(point, ASK, tmp_path, [], 8000).command) == (point.data == "cora")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("machine") / "steady.yaml"
    steady = without_refresh(name="steady", fifo_depth_start=8)  # few rows are in flight, so that few run before each unit
    path.write_text(yaml.safe_dump(steady.model_dump(mode="json")))
    return str(path)


@pytest.fixture(scope="module")
def small(machine: str) -> dict[str, dict[str, Any]]:
    """A point that is just long enough for a sample, run exactly and by samples."""
    data, sample = "random:nodes=12000,features=8,degree=3", ff.Sample(error=0.2, shortest=300)
    both = {
        kind: run_point("gcn", data, "partial", {"hidden": 4}, None, machine, sample, firings)
        for kind, firings in (("exact", 1e12), ("sampled", 0))
    }
    return json.loads(json.dumps(both))


def test_an_exact_point_is_the_run(small: dict[str, dict[str, Any]], machine: str) -> None:
    schedule = ff.Schedule.load(ROOT / "schedules" / "gcn_partial.yaml")
    data = "random:nodes=12000,features=8,degree=3"
    run = ff.compile(ROOT / "models/paper/gcn.py", data=data, schedule=schedule, options={"hidden": 4}, machine=machine).run()
    made = evaluation.row_of(GCN, ASK, ended(small["exact"]))
    assert (made.state, made.kind, made.exact_cycles, made.sampled_cycles) == ("done", "exact", run.cycles, None)
    assert made.flops == run.flops and made.bytes == {d: run.stats["bytes"][d] for d in ("read", "write")}
    assert made.checks["check"]["passed"] and set(made.stages) == {"compile", "estimate", "run"}
    assert sum(region["exact_cycles"] for region in made.regions) == run.cycles


def test_a_sampled_point_is_another_kind_of_row(small: dict[str, dict[str, Any]]) -> None:
    exact, made = (evaluation.row_of(GCN, ASK, ended(small[kind])) for kind in ("exact", "sampled"))
    assert (made.state, made.kind, made.exact_cycles) == ("done", "sampled", None)
    assert made.sampled_cycles is not None and exact.exact_cycles is not None
    assert abs(made.sampled_cycles["estimate"] / exact.exact_cycles - 1) < 0.2
    assert (made.flops, made.bytes, made.firings) == (exact.flops, exact.bytes, exact.firings)
    assert any("sample" in region for region in made.regions)


def test_a_run_without_a_sample_is_exact_and_checked() -> None:
    """All regions are too short: the row is that of an exact run, cycle by cycle, and its outputs are compared as there."""
    data, sample = "random:nodes=30,features=8", ff.Sample(error=0.02)
    exact, asked = (
        evaluation.row_of(GCN, ASK, ended(run_point("gcn", data, "full", {}, None, "rda", sample, most))) for most in (1e12, 0)
    )
    assert (asked.kind, asked.exact_cycles, asked.sampled_cycles) == ("exact", exact.exact_cycles, None)
    assert asked.checks["check"] == exact.checks["check"] and set(asked.checks) == {"check"}
    assert (asked.flops, asked.bytes, asked.firings) == (exact.flops, exact.bytes, exact.firings)


def test_outputs_that_differ_fail(small: dict[str, dict[str, Any]]) -> None:
    for kind, check in (("exact", "check"), ("sampled", "rows_check")):
        run = json.loads(json.dumps(small[kind]))
        run[check]["passed"] = False
        made = evaluation.row_of(GCN, ASK, ended(run))
        assert made.state == "failed" and "outputs differ" in made.error
        run[check] = run["check"] = None
        assert evaluation.row_of(GCN, ASK, ended(run)).state == "failed"  # nothing was compared


def test_what_did_not_end_well_is_a_row() -> None:
    late = evaluation.row_of(GCN, ASK, CommandEnd("", "", -9, True, 7.0, 6.0, 80))
    dead = evaluation.row_of(GCN, ASK, CommandEnd("", "Error: no such data", 1, False, 7.0, 6.0, 80))
    half = evaluation.row_of(GCN, ASK, CommandEnd('{"kind": ', "", 0, False, 7.0, 6.0, 80))
    assert [r.state for r in (late, dead, half)] == ["limit", "failed", "failed"]
    assert dead.error == "Error: no such data" and (dead.exact_cycles, dead.sampled_cycles) == (None, None)


def test_what_is_expected_is_what_it_took_before() -> None:
    known = [row(), row(replace(GCN, granularity="partial"), ask=replace(ASK, seed=3))]
    assert evaluation.task(GCN, ASK, None, known, 8000).mb == 700
    assert evaluation.task(replace(GCN, model="graphsage"), ASK, None, known, 8000).mb == 700  # of the same graph
    unknown = evaluation.task(replace(GCN, workload="mag"), ASK, None, known, 8000)
    assert unknown.mb == evaluation.SEEN_MB["mag"] > 4000 and unknown.seconds == float("inf")
    assert evaluation.task(replace(GCN, workload="mag"), ASK, None, known, 3000).mb == 3000  # by itself it may run
    assert {p.workload for p in evaluation.points("rda", None)} == set(evaluation.SEEN_MB)


def sleeper(key: str, seconds: float, mb: int, code: str = "print(1)") -> Task:
    return Task(key, [sys.executable, "-c", f"import time; time.sleep(0.3); {code}"], seconds, mb)


def test_the_longest_first_as_far_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, order = 0, 0, []
    import process_pool

    start = process_pool._start
    sizes = {"a": 5, "b": 5, "c": 3, "d": 3}

    def counted(task: Task) -> Any:
        nonlocal running, most
        order.append(task.key)
        running += sizes[task.key]
        most = max(most, running)
        return start(task)

    def gone(key: str, outcome: CommandEnd) -> None:
        nonlocal running
        running -= sizes[key]
        assert (outcome.status, outcome.output, outcome.late) == (0, "1", False)

    monkeypatch.setattr(process_pool, "_start", counted)
    tasks = [sleeper("d", 1, 3), sleeper("a", 9, 5), sleeper("b", 8, 5), sleeper("c", 2, 3)]
    run_tasks(tasks, gone, Limits(2, 8, 60, 60))
    assert order[:2] == ["a", "c"] and set(order) == set(sizes)  # b would not have fitted beside a
    assert most <= 8 and running == 0


def test_a_task_by_itself_always_fits_and_none_begins_late() -> None:
    gone: list[str] = []
    run_tasks([sleeper("a", 1, 99)], lambda key, _: gone.append(key), Limits(2, 8, 60, 60))
    run_tasks([sleeper("b", 1, 1)], lambda key, _: gone.append(key), Limits(2, 8, 60, -1))
    assert gone == ["a"]


def test_the_limit() -> None:
    outcomes: list[CommandEnd] = []
    slow = Task("a", [sys.executable, "-c", "import time; time.sleep(60)"], 1, 1)
    run_tasks([slow], lambda _, outcome: outcomes.append(outcome), Limits(1, 8, 0.5, 60))
    assert outcomes[0].late and outcomes[0].status == -signal.SIGKILL and outcomes[0].seconds < 30


def call(*args: str) -> Result:
    return CliRunner().invoke(evaluation.main, args, catch_exceptions=False)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, small: dict[str, dict[str, Any]]) -> list[str]:
    """Points end at once, without a process; full fusion is sampled."""
    keys: list[str] = []

    def run_tasks(tasks: list[Task], gone: Any, *_: Any) -> None:
        for task in tasks:
            keys.append(task.key)
            gone(task.key, ended(small["sampled" if "/full/" in task.key else "exact"]))

    monkeypatch.setattr(evaluation, "run_tasks", run_tasks)
    return keys


def test_nothing_runs_twice_and_another_seed_is_another_row(tmp_path: Path, ran: list[str]) -> None:
    store = str(tmp_path / "rows.jsonl")
    assert call("--store", store, "--points", "gcn/cora/*").exit_code == 0
    assert [key.partition("?")[0].split("/")[2] for key in ran] == ["unfused", "partial", "full"]
    printed = call("--store", store, "--points", "gcn/cora/*")
    assert len(ran) == 3 and "3 points took" in printed.output
    line = next(line for line in printed.output.splitlines() if "| full |" in line)
    assert line.count("~") == 2 and "±" in line  # the cycles and the speed
    call("--store", store, "--points", "gcn/cora/full", "--seed", "1")
    assert len(ran) == 4 and ran[3].endswith("seed=1")
    left = call("--store", store, "--list").output.splitlines()
    assert len(left) == 45 and not any("gcn/synthetic:cora/" in key for key in left)
    assert len(ran) == 4 and call("--store", store, "--points", "gcm/*").exit_code == 2


def test_a_line_that_was_cut_off_costs_its_point_only(tmp_path: Path, ran: list[str]) -> None:
    store = tmp_path / "rows.jsonl"
    call("--store", str(store), "--points", "gcn/cora/*")
    text = store.read_text()
    store.write_text(text[: text.rindex("{", 0, len(text)) - 5000])
    kept = len(load(store, evaluation.Row))
    call("--store", str(store), "--points", "gcn/cora/*")
    assert kept < 3 and len(ran) == 3 + 3 - kept and len(load(store, evaluation.Row)) == 3


def test_rows_of_one_point_that_cannot_both_be_right() -> None:
    exact, other = row(exact_cycles=100), replace(ASK, seed=1)
    assert not list(disagreements([exact, row(ask=other, **sampled(95, 99, 103))]))
    (said,) = disagreements([exact, row(ask=other, **sampled(80, 85, 90)), row(SAE, exact_cycles=9)])
    assert said.startswith("gcn/synthetic:cora/full/rda: 100 with") and "~85 ± 5" in said


def test_the_table_never_shows_a_sampled_number_as_an_exact_one() -> None:
    unfused = row(replace(GCN, granularity="unfused"), exact_cycles=200)
    text = table([unfused, row(**sampled(90, 100, 110))], published("figure12"), 2)
    assert "| full | ~100 ± 10 | ~2.00 |" in text and "| unfused | 200 | 1.00 |" in text
    assert str(SampledCycles(100, 10, 0.95)) in text


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Also where it is killed and can do nothing about it."""
    program = tmp_path / "parent.py"
    child = "import os, threading, time; from evaluation_point import end_with_parent; "
    child += "threading.Thread(target=end_with_parent, daemon=True).start(); "
    child += f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(120)"
    program.write_text(
        "import sys\nfrom process_pool import Limits, Task, run_tasks\n"
        f"run_tasks([Task('a', [sys.executable, '-c', {child!r}], 1, 1)], print, Limits(1, 8, 300, 60))\n"
    )
    path = os.pathsep.join([str(ROOT / "evaluation"), str(ROOT)])
    parent = subprocess.Popen([sys.executable, str(program)], env={**os.environ, "PYTHONPATH": path})
    pid = wait_for(lambda: (tmp_path / "pid").exists() and int((tmp_path / "pid").read_text() or 0))
    parent.kill()
    parent.wait()
    assert wait_for(lambda: not alive(pid))


def wait_for(condition: Any, seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
