"""Sweeps on a Dask cluster give the rows of a sweep on this machine, whatever happens to workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sweeps import opened, write_program

from fuseflow.errors import SweepError
from fuseflow.report.sweep_table import csv_text, records
from fuseflow.sweep.point import TaskOutcome
from fuseflow.sweep.pool import Pool
from fuseflow.sweep.store import Store
from fuseflow.sweep.sweep import Sweep

distributed = pytest.importorskip("distributed")

from fuseflow.sweep.dask_runner import DaskRunner, _outcome  # noqa: E402

SWEEP = """\
model: p.ein
tensors: t.yaml
vary:
  fuse: [none, full]
  par: [{}, {i: 2}, {i: 3}, {i: 4}, {j: 9}, {q: 2}]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as local_cluster:
        yield local_cluster


def test_a_worker_that_is_killed_costs_nothing(cluster: distributed.LocalCluster, tmp_path: Path) -> None:
    write_program(tmp_path)
    sweep = opened(tmp_path, SWEEP)
    runner = DaskRunner(cluster.scheduler_address)
    victims = [sorted(runner.client.run(os.getpid).values())[0]]

    def kill(*_: object) -> None:
        if victims and len(sweep.store.rows()) == 3:
            os.kill(victims.pop(), signal.SIGKILL)

    sweep.run(runner, kill)
    runner.close()
    assert not victims
    table = records(sweep)
    assert {(line["par"], line["reason"]) for line in table.lines if line["reason"]} == {("q=2", "schedule")}
    assert csv_text(table) == csv_text(records(in_processes(tmp_path)))


def in_processes(folder: Path) -> Sweep:
    sweep = replace(opened(folder, SWEEP), store=Store.open(folder / "here.sqlite"))
    pool = Pool(1)
    sweep.run(pool)
    pool.close()
    return sweep


def test_no_scheduler_is_an_error_with_a_way_out() -> None:
    with pytest.raises(SweepError, match=r"no Dask scheduler answers at `tcp://127\.0\.0\.1:1`"):
        DaskRunner("tcp://127.0.0.1:1", timeout=0.5)
    with pytest.raises(SweepError, match="`nonsense` is no address of a Dask scheduler"):
        DaskRunner("nonsense", timeout=0.5)


class LostAndComputedAgain:
    """A future whose result was lost with its worker after the task finished."""

    status = "pending"

    def result(self) -> dict[str, object]:
        return {"key": "k", "values": {"cycles": 3}}


def test_a_result_that_is_lost_between_news_and_gathering_is_waited_for(tmp_path: Path) -> None:
    write_program(tmp_path)
    sweep = opened(tmp_path, SWEEP)
    outcome = _outcome(sweep.task(sweep.space.points[0], "estimate"), LostAndComputedAgain())
    assert outcome == TaskOutcome("k", {"cycles": 3})
