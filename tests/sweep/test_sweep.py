"""Sweeps from end to end: what is run, what is run again, what fails, and that all results stay in the store."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from sweeps import InProcessRunner, opened, write_model, write_program

from fuseflow.errors import FileError, SweepError
from fuseflow.report.sweep_table import csv_text, records
from fuseflow.run.run_archive import unpack_run
from fuseflow.sweep import pool as pools
from fuseflow.sweep.point import Task
from fuseflow.sweep.pool import Pool
from fuseflow.sweep.store import Store
from fuseflow.sweep.sweep import Sweep

SWEEP = """\
model: p.ein
tensors: t.yaml
machine: [ideal, rda]
vary:
  fuse: [none, full]
  par: [{}, {i: 2}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_program(tmp_path)
    return tmp_path


def ran(sweep: Sweep) -> list[str]:
    runner = InProcessRunner()
    sweep.run(runner)
    return runner.ran


def test_every_point_has_a_row_and_none_is_done_twice(folder: Path) -> None:
    assert ran(opened(folder, SWEEP)) == ["estimate"] * 8
    assert ran(opened(folder, SWEEP)) == []
    more = SWEEP.replace("{i: 2}", "{i: 2}, {i: 3}")
    assert len(ran(opened(folder, more))) == 4
    assert len(records(opened(folder, SWEEP), others=True).lines) == 8 + 4


def test_what_a_point_reads_is_part_of_it(folder: Path) -> None:
    ran(opened(folder, SWEEP))
    (folder / "p.ein").write_text((folder / "p.ein").read_text().replace("relu", "abs"))
    assert len(ran(opened(folder, SWEEP))) == 8
    (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes()[:-4] + b"abcd")
    assert len(ran(opened(folder, SWEEP))) == 8


def test_a_sweep_may_be_moved(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    ran(opened(folder, SWEEP))
    moved = tmp_path_factory.mktemp("moved") / "there"
    folder.rename(moved)
    assert ran(opened(moved, SWEEP)) == []
    folder.mkdir()


def test_a_neighbour_that_a_model_imports_is_part_of_its_points(tmp_path: Path) -> None:
    write_model(tmp_path / "m.py", imports="from weights import scale as weight")
    (tmp_path / "weights.py").write_text("import more\nscale = more.scale\n")
    (tmp_path / "more.py").write_text("scale = 2\n")
    (tmp_path / "apart.py").write_text("")
    text = "model: m.py\noptions: [{scale: 1}, {scale: 2}]\n"
    assert len(ran(opened(tmp_path, text))) == 2
    (tmp_path / "apart.py").write_text("scale = 2\n")
    assert ran(opened(tmp_path, text)) == []
    (tmp_path / "more.py").write_text("scale = 3\n")
    assert len(ran(opened(tmp_path, text))) == 2


def test_models_of_two_folders_may_have_neighbours_of_one_name(tmp_path: Path) -> None:
    for n, name in enumerate(("a", "b")):
        (tmp_path / name).mkdir()
        write_model(tmp_path / name / "m.py", imports="import weights", first=f"assert weights.number == {n}")
        (tmp_path / name / "weights.py").write_text(f"number = {n}\n")
    sweep = opened(tmp_path, "model: [a/m.py, b/m.py]\n")
    assert ran(sweep) == ["estimate"] * 2
    assert [line["model"] for line in records(sweep).lines] == ["a/m.py", "b/m.py"]


def test_prune_simulates_the_best_estimates_of_every_workload(folder: Path) -> None:
    sweep = opened(folder, SWEEP + "mode: prune\ntop: 2\n")
    assert ran(sweep) == ["estimate"] * 8 + ["simulate"] * 4
    lines = records(sweep).lines
    for machine in ("ideal", "rda"):
        machine_lines = [line for line in lines if line["machine"] == machine]
        best = sorted(machine_lines, key=lambda line: line["estimated_cycles"])[:2]
        assert sorted(map(id, best)) == sorted(id(line) for line in machine_lines if line["status"] == "simulated")


def test_estimates_and_simulations_are_rows_of_their_own(folder: Path) -> None:
    ran(opened(folder, SWEEP))
    assert ran(opened(folder, SWEEP + "mode: simulate\n")) == ["simulate"] * 8
    assert ran(opened(folder, SWEEP)) == []
    assert ran(opened(folder, SWEEP + "mode: simulate\ncheck: false\n")) == ["simulate"] * 8


def test_runs_of_simulations_are_kept_unless_they_shall_not_be(folder: Path) -> None:
    text = SWEEP + "mode: simulate\n"
    assert len(ran(opened(folder, text, keep_runs=False))) == 8
    keys = [place.point.key("simulate") for place in opened(folder, text).space.points]
    assert [opened(folder, text).store.run(key) for key in keys] == [None] * 8
    assert ran(opened(folder, text)) == []
    assert len(ran(opened(folder, text, redo=frozenset(("unkept",))))) == 8
    assert ran(opened(folder, text, redo=frozenset(("unkept",)))) == []
    store = opened(folder, text).store
    for key in keys:
        packed = store.run(key)
        assert packed is not None
        values = unpack_run(packed)
        assert values["result"]["cycles"] == store.rows()[key].outcome.values["cycles"]
        assert "seconds" not in values["result"]
        for damaged in (packed[:-9], b"", b"{}", zlib.compress(b"[]"), zlib.compress(b'{"schema": 2}')):
            with pytest.raises(FileError, match="a run that was kept"):
                unpack_run(damaged)


def test_a_store_of_before_runs_were_kept_is_read_and_goes_on(folder: Path) -> None:
    ran(opened(folder, SWEEP))
    with sqlite3.connect(folder / "s.sqlite") as database:
        database.execute("DROP TABLE runs")
    old = opened(folder, SWEEP)
    assert len(old.store.rows()) == 8 and old.store.run("k") is None
    assert ran(old) == []
    assert ran(opened(folder, SWEEP + "mode: simulate\n")) == ["simulate"] * 8


def test_a_second_writer_is_refused_while_readers_are_not(folder: Path) -> None:
    first, second = opened(folder, SWEEP), opened(folder, SWEEP)
    with first.store.writing():
        assert second.store.is_written_by_another
        assert not first.store.is_written_by_another
        assert second.store.rows() == {}
        with pytest.raises(SweepError, match="another sweep"), second.store.writing():
            pass
    assert not second.store.is_written_by_another


def test_what_cannot_be_written_elsewhere_meanwhile_is_no_fault_of_the_store(folder: Path) -> None:
    full = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space left") as raised, opened(folder, SWEEP).store.writing():
        raise full
    assert raised.value is full


def test_what_goes_wrong_is_a_row_and_the_rest_goes_on(tmp_path: Path) -> None:
    write_model(tmp_path / "good.py")
    write_model(tmp_path / "raises.py", first='raise ValueError("no such luck")')
    write_model(tmp_path / "dies.py", first="os.kill(os.getpid(), 11)", imports="import os")
    write_model(tmp_path / "sleeps.py", first="time.sleep(60)", imports="import time")
    write_model(tmp_path / "prints.py", first="print('{}'); import sys; print('odd', file=sys.stderr)")
    text = "model: [good.py, raises.py, dies.py, sleeps.py, prints.py]\nlimit: 3\n"
    sweep, pool = opened(tmp_path, text), Pool(2)
    sweep.run(pool)
    pool.close()
    lines_by_model = {str(line["model"]): line for line in records(sweep).lines}
    assert {name: line["reason"] for name, line in lines_by_model.items()} == {
        "good": "",
        "raises": "frontend",
        "dies": "crash",
        "sleeps": "limit",
        "prints": "",
    }
    assert "raises.py:5: error[frontend]: the model file raises ValueError: no such luck" in str(
        lines_by_model["raises"]["error"]
    )
    assert not str(lines_by_model["raises"]["error"]).startswith("/")
    assert "ended with signal SIGSEGV" in str(lines_by_model["dies"]["error"])
    assert "more than 3 s" in str(lines_by_model["sleeps"]["error"])
    assert lines_by_model["good"]["estimated_cycles"] == lines_by_model["prints"]["estimated_cycles"]

    runner = InProcessRunner()
    opened(tmp_path, text).run(runner)
    assert runner.ran == []
    assert [t.limit for t in left(opened(tmp_path, text.replace("3", "4")))] == [4.0]
    assert len(left(opened(tmp_path, text, redo=frozenset({"failed"})))) == 3


def left(sweep: Sweep) -> list[Task]:
    rows = sweep.store.rows()
    tasks = [sweep.task(place, mode) for mode in sweep.modes for place in sweep.chosen(mode)]
    return [task for task in tasks if not sweep.done(task, rows.get(task.key))]


def test_a_point_that_takes_too_much_memory_is_a_row(tmp_path: Path) -> None:
    write_model(tmp_path / "hungry.py", first="much = np.ones(60_000_000); time.sleep(30)", imports="import time")
    sweep, pool = opened(tmp_path, "model: hungry.py\n"), Pool(2, memory=400_000_000)
    sweep.run(pool)
    pool.close()
    (line,) = records(sweep).lines
    assert line["reason"] == "memory"
    assert "it takes more than" in line["error"]


def test_a_point_is_not_blamed_for_the_memory_that_others_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "slow.py", first="time.sleep(30)", imports="import time")
    monkeypatch.setattr(pools, "memory_is_scarce", lambda: True)
    sweep, pool = opened(tmp_path, "model: slow.py\n"), Pool(1)
    sweep.run(pool)
    pool.close()
    (line,) = records(sweep).lines
    assert line["reason"] == "memory"
    assert "other processes have the rest" in line["error"]


def test_a_sweep_that_is_killed_goes_on_and_gives_the_same_table(folder: Path) -> None:
    """A quick form of `test_killed_sweeps.py`."""
    text = SWEEP.replace("{i: 2}", "{i: 2}, {i: 3}, {i: 4}, {i: 5}, {i: 6}, {i: 7}, {i: 8}")
    store = opened(folder, text).store
    command = [sys.executable, "-m", "fuseflow", "sweep", "s.yaml", "--store", "s.sqlite", "--quiet", "--jobs", "1"]
    running = subprocess.Popen(command, cwd=folder)
    while len(store.rows()) < 3 and running.poll() is None:
        time.sleep(0.002)
    workers = psutil.Process(running.pid).children()
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert psutil.wait_procs(workers, timeout=30)[1] == []
    kept = len(store.rows())
    assert 3 <= kept < 32
    assert len(ran(opened(folder, text))) == 32 - kept
    calm = replace(opened(folder, text), store=Store.open(folder / "calm.sqlite"))
    ran(calm)
    assert csv_text(records(opened(folder, text))) == csv_text(records(calm))
