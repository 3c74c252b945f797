"""Commands that are killed while they run, and what is left of them."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil


def start(folder: Path, *words: str | Path, **variables: str) -> subprocess.Popen[bytes]:
    """Start a command of fuseflow in a folder, which prints nothing."""
    command, null = [sys.executable, "-m", "fuseflow", *map(str, words)], subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **variables}, stdout=null, stderr=null)


def finish(folder: Path, *words: str | Path, **variables: str) -> float:
    """Run a command to its end, and return its seconds."""
    began = time.monotonic()
    assert start(folder, *words, **variables).wait() == 0, words
    return time.monotonic() - began


def kill(process: subprocess.Popen[bytes], seconds: float, appeared: Callable[[], bool] | None, chance: random.Random) -> bool:
    """Kill a process after some seconds, or shortly after something has appeared. Return whether it was alive until then. What it started
    must end with it."""
    end = time.monotonic() + (seconds if appeared is None else 60)
    while time.monotonic() < end and process.poll() is None and not (appeared is not None and appeared()):
        time.sleep(0.001)
    time.sleep(0 if appeared is None else chance.uniform(0, 0.05))
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.send_signal(signal.SIGKILL)
    alive = process.wait() == -signal.SIGKILL
    assert psutil.wait_procs(children, timeout=30)[1] == []
    return alive


class Kills:
    """A loop that goes on until enough processes were killed. `number` counts the attempts, and `killed` those that were alive."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.number, self.killed = wanted, 0, 0

    def __iter__(self) -> Iterator[int]:
        while self.killed < self.wanted:
            assert self.number < 10 * self.wanted, "too few processes are alive when they are killed"
            yield self.number
            self.number += 1


def rows(store: Path) -> dict[str, float]:
    """When each row of a store of a sweep or a search was finished, by its key. The file must not be damaged."""
    if not store.exists():
        return {}
    with closing(sqlite3.connect(store, timeout=30)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        made = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'rows'").fetchone()[0]
        return dict(database.execute("SELECT key, finished FROM rows").fetchall()) if made else {}
