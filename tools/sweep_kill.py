"""Whether a sweep gives the same table however it is disturbed: killed with -9 at random moments, or robbed of a worker of its cluster.

    python tools/sweep_kill.py [--kills 10] [--seed 0] [--only estimate|simulate|cluster]

Sweeps the GCN: 500 points estimated, 40 points simulated, each once in peace and once killed and resumed again and again; then the
estimates on a Dask cluster of two workers here, one of which is killed on the way. Prints a line for each kill, and ends with 1 if a
table differs, a store is damaged, or a process stays behind.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click
import psutil

ROOT = Path(__file__).resolve().parents[1]

ESTIMATES = f"""\
model: {ROOT}/models/gcn.py
data: [karate, "random:nodes=50", "random:nodes=80", "random:nodes=120", "random:nodes=160"]
vary:
  fuse: [none, layerwise, full, layer1, layer2]
  par: [{{}}, {{i: 2}}, {{i: 3}}, {{i: 4}}, {{i: 8}}]
  order: [first, best]
  repeat: [value, reference]
"""

SIMULATIONS = f"""\
model: {ROOT}/models/gcn.py
data: [karate, "random:nodes=60"]
machine: [ideal, rda]
mode: simulate
vary:
  fuse: [none, layerwise, full, layer1, layer2]
  par: [{{}}, {{i: 4}}]
"""


class Disturbed(Exception):
    """A sweep that did not survive."""


def sweep(*words: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "fuseflow", "sweep", *map(str, words)], stdout=subprocess.DEVNULL)


def finish(*words: str | Path) -> float:
    """Run a sweep to its end; returns the seconds it took."""
    start = time.monotonic()
    if (status := sweep(*words).wait()) != 0:
        raise Disturbed(f"the sweep ended with {status}")
    return time.monotonic() - start


def table(file: Path, store: Path) -> str:
    command = [sys.executable, "-m", "fuseflow", "sweep", "show", file, "--store", store, "--format", "csv"]
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def rows(store: Path) -> int:
    """How many there are."""
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store, timeout=30)) as database:
        made = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'rows'").fetchone()[0]
        return int(database.execute("SELECT count(*) FROM rows").fetchone()[0]) if made else 0


def checked(store: Path) -> None:
    """Raise `Disturbed` for a damaged store."""
    if not store.exists():
        return
    with closing(sqlite3.connect(store, timeout=30)) as database:
        if database.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise Disturbed(f"{store} is damaged")


def gone(processes: list[psutil.Process]) -> None:
    """Raise `Disturbed` if a process is still there after a while."""
    _, alive = psutil.wait_procs(processes, timeout=20)
    if alive:
        raise Disturbed(f"{len(alive)} processes stay behind")


def killed(file: Path, store: Path, points: int, kills: int, chance: random.Random) -> None:
    """Kill the sweep that often, at random moments of its progress, then let it end. Raises `Disturbed` if it ends before."""
    for n, at in enumerate(sorted(chance.sample(range(points - 2), kills)), 1):
        running = sweep(file, "--store", store, "--quiet", "--jobs", "2")
        wait_for(lambda at=at, running=running: running.poll() is not None or rows(store) >= at)
        time.sleep(chance.uniform(0, 0.2))
        children = psutil.Process(running.pid).children(recursive=True) if running.poll() is None else []
        running.send_signal(signal.SIGKILL)
        if running.wait() != -signal.SIGKILL:
            raise Disturbed("the sweep ended before it could be killed")
        gone(children)
        checked(store)
        click.echo(f"  kill {n}: {rows(store)} rows kept")
    seconds = finish(file, "--store", store, "--quiet", "--jobs", "2")
    click.echo(f"  resumed to the end in {seconds:.0f} s, {rows(store)} rows")


def local(folder: Path, name: str, text: str, kills: int, chance: random.Random) -> str:
    """A sweep in peace and one that is killed; returns the table."""
    file = folder / f"{name}.yaml"
    file.write_text(text)
    seconds = finish(file, "--store", folder / f"{name}.sqlite", "--quiet", "--jobs", "2")
    expected = table(file, folder / f"{name}.sqlite")
    click.echo(f"{name}: {expected.count(chr(10)) - 1} points in {seconds:.0f} s on two cores, {expected.count('failed')} failed")
    killed(file, folder / f"{name}-killed.sqlite", rows(folder / f"{name}.sqlite"), kills, chance)
    same(expected, table(file, folder / f"{name}-killed.sqlite"))
    return expected


def same(expected: str, found: str) -> None:
    if found != expected:
        raise Disturbed("the table is another one")
    click.echo("  the same table")


def cluster(folder: Path, expected: str) -> None:
    """The estimates on two workers, one of which is killed when a third is done."""
    from distributed import Client, LocalCluster

    file, store = folder / "cluster.yaml", folder / "cluster.sqlite"
    file.write_text(ESTIMATES)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as made,
        Client(made) as client,
    ):
        running = sweep(file, "--store", store, "--scheduler", made.scheduler_address, "--quiet")
        wait_for(lambda: rows(store) > 160 or running.poll() is not None)
        victim = sorted(client.run(os.getpid).values())[0]
        children = psutil.Process(victim).children(recursive=True)
        os.kill(victim, signal.SIGKILL)
        click.echo(f"cluster: one of two workers killed at {rows(store)} rows")
        if running.wait() != 0:
            raise Disturbed("the sweep on the cluster failed")
        gone(children)
    click.echo(f"  ran to the end, {rows(store)} rows")
    same(expected or alone(folder), table(file, store))


def alone(folder: Path) -> str:
    file = folder / "peace.yaml"
    file.write_text(ESTIMATES)
    finish(file, "--store", folder / "peace.sqlite", "--quiet")
    return table(file, folder / "peace.sqlite")


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


@click.command(help=__doc__.partition("\n")[0])
@click.option("--kills", type=click.IntRange(1), default=10, show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of the moments.")
@click.option("--only", type=click.Choice(["estimate", "simulate", "cluster"]))
def main(kills: int, seed: int, only: str | None) -> None:
    chance, expected = random.Random(seed), ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            if only in (None, "estimate"):
                expected = local(folder, "estimate", ESTIMATES, kills, chance)
            if only in (None, "simulate"):
                local(folder, "simulate", SIMULATIONS, kills, chance)
            if only in (None, "cluster"):
                cluster(folder, expected)
        except Disturbed as error:
            raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
