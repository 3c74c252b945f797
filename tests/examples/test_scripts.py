"""The scripts of `examples` that use other libraries run where these are installed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(script: str, *words: str) -> list[str]:
    """Return the lines that a script prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, str(EXAMPLES / script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_optuna_searches_a_schedule() -> None:
    pytest.importorskip("optuna")
    first, schedule = ran("optuna_schedule.py", "--trials", "8")
    assert first.startswith("without a search: 5,004 cycles; the best of 8 trials: ")
    assert schedule.startswith("ff.Schedule.fuse(")


def test_mlflow_logs_a_sweep(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")  # which the small package of MLflow lacks
    pytest.importorskip("pandas")
    lines = ran("mlflow_sweep.py", "--folder", str(tmp_path))
    assert len(lines) == 1 + 12 and lines[1].split()[-1] == "5323.0"
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        logged = database.execute("SELECT value FROM metrics WHERE key = 'cycles'").fetchall()
    assert sorted(value for (value,) in logged) == sorted(float(line.split()[-1]) for line in lines[1:])
    assert len(list(tmp_path.glob("mlartifacts/*/artifacts/schedule.yaml"))) == 12
    (page,) = tmp_path.glob("mlartifacts/*/artifacts/sweep.html")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_dask_runs_a_sweep_on_a_cluster_of_this_machine() -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("xarray")
    lines = ran("dask_sweep.py", "--workers", "1")
    assert lines[0] == "12 points over machine, fuse, par" and lines[-2:] == [
        "the fewest: 5,323 cycles",
        "ff.Schedule.fuse('none').par(i=4)",
    ]
