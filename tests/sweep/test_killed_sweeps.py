"""A sweep gives the same table however it is disturbed: killed with -9 at random moments, or robbed of a worker of its cluster."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from killed import finish, kill, rows, start

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SWEEPS = {
    "estimates": f"""\
model: {ROOT}/models/gcn.py
data: [karate, "random:nodes=50", "random:nodes=80", "random:nodes=120", "random:nodes=160"]
vary:
  fuse: [none, layerwise, full, layer1, layer2]
  par: [{{}}, {{i: 2}}, {{i: 3}}, {{i: 4}}, {{i: 8}}]
  order: [first, best]
  repeat: [value, reference]
""",
    "simulations": f"""\
model: {ROOT}/models/gcn.py
data: [karate, "random:nodes=60"]
machine: [ideal, rda]
mode: simulate
vary:
  fuse: [none, layerwise, full, layer1, layer2]
  par: [{{}}, {{i: 4}}]
""",
}


def table(folder: Path, store: str) -> str:
    command = [sys.executable, "-m", "fuseflow", "sweep", "show", "s.yaml", "--store", store, "--format", "csv"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=SWEEPS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """With a sweep that ran in peace."""
    (tmp_path / "s.yaml").write_text(SWEEPS[request.param])
    finish(tmp_path, "sweep", "s.yaml", "--store", "peace.sqlite", "--quiet", "--jobs", "2")
    return tmp_path


def test_a_sweep_that_is_killed_again_and_again(folder: Path, draws: Callable[[int], range]) -> None:
    chance, points = random.Random(draws(10).start), len(rows(folder / "peace.sqlite"))
    words, store = ("sweep", "s.yaml", "--store", "s.sqlite", "--quiet", "--jobs", "2"), folder / "s.sqlite"
    for at in sorted(chance.sample(range(points - 2), len(draws(10)))):
        assert kill(start(folder, *words), 0, lambda at=at: len(rows(store)) >= at, chance)
    finish(folder, *words)
    assert table(folder, "s.sqlite") == table(folder, "peace.sqlite")


@pytest.mark.parametrize("folder", ["estimates"], indirect=True)
def test_a_cluster_of_which_a_worker_is_killed(folder: Path) -> None:
    distributed = pytest.importorskip("distributed")
    local = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster) as client:
        words = ("--store", "s.sqlite", "--scheduler", cluster.scheduler_address, "--quiet")
        running = start(folder, "sweep", "s.yaml", *words)
        while len(rows(folder / "s.sqlite")) <= 160 and running.poll() is None:
            time.sleep(0.05)
        victim = min(client.run(os.getpid).values())
        children = psutil.Process(victim).children(recursive=True)
        os.kill(victim, signal.SIGKILL)
        assert running.wait() == 0
        assert psutil.wait_procs(children, timeout=20)[1] == []
    assert table(folder, "s.sqlite") == table(folder, "peace.sqlite")
