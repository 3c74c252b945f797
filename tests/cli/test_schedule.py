"""`fuseflow schedule`: what it prints and writes, what it refuses, and that a search that is killed goes on."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from command_line import fuseflow
from ortools.linear_solver import pywraplp

from fuseflow.filesystem.schemas import with_schema
from fuseflow.requirements import install_command
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule

ROOT = Path(__file__).parents[2]
PROGRAM = [ROOT / "docs/example/spmm.ein", "--tensors", ROOT / "docs/example/tensors.yaml", "--machine", "ideal"]


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that a search writes, and what it printed in `printed`."""
    folder = tmp_path_factory.mktemp("schedule")
    files = ["-o", folder / "best.yaml", "--json", folder / "choice.json", "--store", folder / "runs.sqlite"]
    curve = ["--pareto", "mul", "--pareto-to", folder / "curve.csv"]
    result = fuseflow("schedule", *PROGRAM, "--budget", "mul=4,port=60", "--top", "1", "--jobs", "1", *files, *curve)
    assert result.exit_code == 0, result.output
    (folder / "printed").write_text(result.stdout, encoding="utf-8")
    return folder


def test_the_schedule_runs_and_is_within_the_budget(chosen: Path) -> None:
    choice = json.loads((chosen / "choice.json").read_text())
    assert with_schema("schedule", choice["schedule"]) == (chosen / "best.yaml").read_text()
    budget = Budget.of(choice["budget"])
    taken = next(trial for trial in choice["trials"] if trial["chosen"])
    assert all(taken["resources"][name] <= limit for name, limit in budget.limits.items())
    run = fuseflow("run", *PROGRAM, "--schedule", chosen / "best.yaml", "--json", chosen / "run.json", "--quiet")
    assert run.exit_code == 0, run.output
    result = json.loads((chosen / "run.json").read_text())
    assert result["cycles"] == taken["cycles"]
    assert all(r["resources"][name] <= limit for r in result["regions"] for name, limit in budget.limits.items())


def test_a_schedule_for_an_array_says_what_fits_and_what_loading_takes(tmp_path: Path) -> None:
    words = ["schedule", *PROGRAM, "--array", "onyx", "--top", "1", "--no-store"]
    result = fuseflow(*words, "-o", tmp_path / "best.yaml", "--json", tmp_path / "choice.json")
    assert result.exit_code == 0, result.output
    choice = json.loads((tmp_path / "choice.json").read_text())
    taken = next(trial for trial in choice["trials"] if trial["chosen"])
    assert choice["budget"] == {} and choice["array"] == "onyx"
    assert taken["resources"]["tiles"].keys() == {"PE tiles", "MEM tiles", "IO tiles"}
    onyx = (*PROGRAM, "--schedule", tmp_path / "best.yaml", "--array", "onyx", "--quiet")
    assert fuseflow("place", *onyx, "--effort", "1", "--seeds", "2", "-o", tmp_path / "placed").exit_code == 0
    run = fuseflow("run", *onyx, "--placement", tmp_path / "placed", "--json", tmp_path / "run.json")
    assert run.exit_code == 0, run.output
    ran = json.loads((tmp_path / "run.json").read_text())
    assert taken["loading"] == ran["loading"]["regions"]
    assert taken["cycles"] == ran["cycles"] + sum(taken["loading"].values())
    assert "loading" in result.stdout and "IO tiles" in result.stdout
    placed = fuseflow("place", *PROGRAM, "--schedule", tmp_path / "best.yaml", "--array", "onyx", "-q")
    assert placed.exit_code == 0, placed.output


def test_the_report_has_the_order_the_lanes_and_the_slots_of_every_region(chosen: Path) -> None:
    printed = (chosen / "printed").read_text()
    schedule = Schedule.load(chosen / "best.yaml")
    for name, order in schedule.orders:
        (line,) = [line for line in printed.splitlines() if line.startswith(name) and ", ".join(order) in line]
        for lanes, count in schedule.parallel:
            if lanes.startswith(f"{name}."):
                assert f"{lanes.rpartition('.')[2]}={count}" in line
        for fifo, depth in schedule.depths:
            if fifo == name:
                assert line.split()[-1] == f"{depth:,}"
    for name, format in schedule.formats:
        assert f"{name} {format}" in printed


def test_unfused_is_a_candidate_and_simulated(chosen: Path) -> None:
    trials = json.loads((chosen / "choice.json").read_text())["trials"]
    (unfused,) = (trial for trial in trials if trial["is_unfused"])
    (best,) = (trial for trial in trials if trial["chosen"])
    assert best["cycles"] <= unfused["cycles"]


def test_it_prints_what_was_tried_and_what_stops_it(chosen: Path) -> None:
    printed = (chosen / "printed").read_text()
    for words in ("unfused", "chosen", "limited by", "busy", "without", "fusion", "lanes", "reused from earlier"):
        assert words in printed


def test_the_curve_has_a_schedule_for_each_point(chosen: Path) -> None:
    rows = list(csv.DictReader((chosen / "curve.csv").open()))
    assert len(rows) > 1
    amounts, cycles = ([int(row[name]) for row in rows] for name in ("mul", "cycles"))
    assert amounts == sorted(amounts, reverse=True) and cycles == sorted(cycles)
    for row in rows:
        assert Schedule.load(chosen / row["schedule"]).to_yaml()


def test_what_is_kept_is_not_simulated_again(chosen: Path) -> None:
    again = fuseflow(
        "schedule", *PROGRAM, "--budget", "mul=4,port=60", "--top", "1", "--store", chosen / "runs.sqlite", "-o", "-"
    )
    assert again.exit_code == 0, again.output
    assert again.stdout == (chosen / "best.yaml").read_text()
    assert "0 schedules simulated, 2 results reused from earlier searches" in again.stderr


def test_the_same_bytes_for_any_hash_seed_and_number_of_jobs(chosen: Path, tmp_path: Path) -> None:
    """In a process with another seed than this one has, where strings stand in another order in their sets."""
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    words = [
        "schedule",
        *PROGRAM,
        "--budget",
        "mul=4,port=60",
        "--top",
        "1",
        "--jobs",
        "2",
        "--store",
        tmp_path / "s.sqlite",
        "-o",
        "-",
    ]
    command = [sys.executable, "-m", "fuseflow", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}, check=True)
    assert done.stdout == (chosen / "best.yaml").read_text()


def test_a_search_that_is_killed_goes_on(chosen: Path, tmp_path: Path) -> None:
    store, file = tmp_path / "runs.sqlite", tmp_path / "best.yaml"
    words = [
        "schedule",
        *PROGRAM,
        "--budget",
        "mul=4,port=60",
        "--top",
        "1",
        "--jobs",
        "1",
        "--store",
        store,
        "-o",
        file,
        "--quiet",
    ]
    command = [sys.executable, "-m", "fuseflow", *map(str, words)]
    running = subprocess.Popen(command)
    while not store.exists() and running.poll() is None:
        time.sleep(0.05)
    time.sleep(0.3)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not file.exists() or file.read_text() == (chosen / "best.yaml").read_text()
    assert fuseflow(*words).exit_code == 0
    assert file.read_text() == (chosen / "best.yaml").read_text()


def test_a_limit_of_time_stops_with_what_there_is() -> None:
    result = fuseflow("schedule", *PROGRAM, "--budget", "mul=4", "--limit", "0.000001", "--no-store", "-o", "-")
    assert result.exit_code == 0
    assert Schedule.from_yaml(result.stdout).fuse_regions == ("none",)
    assert "the limit of time ended the search" in result.stderr


def product_files(folder: Path) -> list[str | Path]:
    """Return the words for a product whose stages have no room for all lanes that are of use."""
    rng = np.random.default_rng(0)
    scipy.io.mmwrite(folder / "X.mtx", scipy.sparse.random_array((16, 12), density=0.2, rng=rng))
    np.save(folder / "W.npy", rng.normal(size=(12, 4)))
    (folder / "tensors.yaml").write_text("X: {path: X.mtx}\nW: {path: W.npy}\n")
    text = "tensor X[16, 12] csr\ntensor W[12, 4] dense\nT[i, f] = sum(k) X[i, k] * W[k, f]\nY[i, f] = relu(T[i, f])\noutput Y\n"
    (folder / "product.ein").write_text(text)
    return [folder / "product.ein", "--tensors", folder / "tensors.yaml"]


def test_cp_sat_chooses_and_the_file_is_the_same_in_ten_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, asked = product_files(tmp_path), list[str]()
    solve = pywraplp.Solver.Solve

    def counted(solver: pywraplp.Solver) -> int:
        asked.append(solver.SolverVersion())
        return int(solve(solver))

    monkeypatch.setattr(pywraplp.Solver, "Solve", counted)
    for run in range(10):
        file = tmp_path / f"{run}.yaml"
        assert fuseflow("schedule", *words, "--budget", "mul=2", "--top", "0", "--no-store", "-o", file).exit_code == 0
    assert len({(tmp_path / f"{run}.yaml").read_bytes() for run in range(10)}) == 1
    assert len(asked) >= 10
    assert all(version.startswith("CP-SAT") for version in asked)


@pytest.mark.parametrize("missing", ["ortools", "ortools.linear_solver"])
def test_without_or_tools_there_is_no_search(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, the search does not begin. Where it cannot be loaded, it ends with the first choice that needs it."""
    monkeypatch.setitem(sys.modules, missing, None)
    file = tmp_path / "best.yaml"
    result = fuseflow("schedule", *product_files(tmp_path), "--budget", "mul=2", "--top", "0", "--no-store", "-o", file)
    assert result.exit_code == 2
    assert "error[usage]: this needs CP-SAT of OR-Tools, which cannot be imported" in result.stderr
    assert f"hint: {install_command('ortools')}" in result.stderr
    assert not file.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "mull=4"], "did you mean `mul`?"),
        (["--budget", "mul=0"], "not above zero"),
        (["--budget", "mul=4", "--par", "i=2"], "`par` names `i`"),
        (["--budget", "mul=4", "--fuse", "full"], "`fuse` names `full`"),
        (["--budget", "mul=4", "--allow", "format"], "did you mean `formats`?"),
        (["--budget", "mul=4", "--pareto", "prot"], "did you mean `port`?"),
        (["--budget", "mul=4", "--pareto-to", "x.csv"], "`--pareto-to` without `--pareto`"),
        (["--budget", "mul=4", "--pareto", "mul", "--pareto-to", "x.txt"], "says no form of a curve"),
        (["--budget", "mul=4", "-o", "x", "--json", "x"], "two options write to one file"),
        (["--budget", "mul=4", "--no-store", "--jobs", "2"], "leave one of them out"),
        (["--budget", "port=1"], "has room in port=1"),
        (["--budget", "port=1"], "single operators take port="),
        (["--budget", "mul=8,port=2,fifo=64KB"], "FIFOs of machine `ideal` have no bound, so that no `fifo` has room for them"),
        (["--budget", "area=1000000000"], "so that no `area` has room"),
        ([], "no `--budget` and no `--array`"),
        (["--array", "onix"], "did you mean `onyx`?"),
        (
            ["--array", "tiny.yaml"],
            "region `T` needs 12 PE and 10 MEM and 8 ports, and array `tiny` has 8 and 8 and 4; it is one operator",
        ),
        (["--array", "tiny.yaml"], "hint: a larger array, `--preload TENSOR`, or ports that are shared"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the store is, which several tests would make at once
    grid, tiles = "grid: {columns: 4, rows: 4}", "tiles: {pattern: PM, kinds: {P: PE, M: MEM}}"
    (tmp_path / "tiny.yaml").write_text(f"array: {{{grid}, {tiles}, ports: {{side: north}}, footprint: onyx}}")
    result = fuseflow("schedule", *PROGRAM, *words)
    assert result.exit_code == 2
    assert message in result.output and "fifo=0" not in result.output
