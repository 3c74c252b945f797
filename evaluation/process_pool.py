"""Commands in processes of their own, several at a time: the longest first, as far as all that run at once fit into the memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import IO, Any

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Each process has one core, and sums in the same order however many there are."""


@dataclass(frozen=True, slots=True)
class Task:
    """A command, with the seconds and the MB that it is expected to take. It must end when its standard input does."""

    key: str
    command: Sequence[str]
    seconds: float
    mb: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What all processes may take: how many run at a time, the MB of all that run, the seconds of each, and the seconds after which none
    begins any more."""

    jobs: int
    memory_mb: int
    seconds: float
    budget: float


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """A command that ended, or was ended at the limit. `output` is what it printed, `said` what stands on its stderr."""

    output: str
    said: str
    status: int
    late: bool
    seconds: float
    processor_seconds: float
    peak_mb: int

    @property
    def result(self) -> dict[str, Any] | None:
        """The JSON that it printed, None without any."""
        try:
            found: dict[str, Any] | None = None if self.late else json.loads(self.output)
        except ValueError:
            return None
        return found

    def ended(self, limit: float) -> dict[str, Any]:
        """What the row of every command says: `done`, which is one whose results were compared, `limit` or `failed`, what it took, and why
        it is not done."""
        result = self.result
        passed = self.status == 0 and bool(result and result["check"] and result["check"]["passed"])
        said = self.said[-2000:]
        if result is None:
            said = f"took more than {limit:g} s" if self.late else said or f"exit status {self.status}"
        state = "done" if passed else "limit" if self.late else "failed"
        return {"state": state, "seconds": self.seconds, "peak_mb": self.peak_mb, "error": "" if passed else said}


@dataclass(frozen=True, slots=True)
class _Command:
    task: Task
    process: subprocess.Popen[bytes]
    start: float
    output: IO[bytes]
    said: IO[bytes]

    def ended(self, limit: float) -> CommandEnd | None:
        """What became of it, or None if it still runs. At the limit it is killed, with the processes that it started."""
        done, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        late = not done and time.monotonic() > self.start + limit
        if late:
            os.killpg(self.process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(self.process.pid, 0)
        elif not done:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (self.output, self.said):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace").strip())
        self.close()
        seconds, processor = time.monotonic() - self.start, usage.ru_utime + usage.ru_stime
        peak = usage.ru_maxrss // 1024
        return CommandEnd(*texts, self.process.returncode, late, round(seconds, 2), round(processor, 2), peak)

    def close(self) -> None:
        for stream in (self.output, self.said, self.process.stdin):
            if stream is not None:
                stream.close()


def run_tasks(tasks: Sequence[Task], ended: Callable[[str, CommandEnd], None], limits: Limits) -> None:
    """Run all tasks, and call `ended` with each as soon as it has ended.

    Those that run end with this process, also if it is killed: they hold the other end of a pipe.
    """
    waiting, running = sorted(tasks, key=lambda task: (-task.seconds, -task.mb)), list[_Command]()
    last_start = time.monotonic() + limits.budget
    try:
        while waiting or running:
            if time.monotonic() > last_start:
                waiting.clear()
            for task in _startable(waiting, running, limits):
                waiting.remove(task)
                running.append(_start(task))
            for one in list(running):
                if (outcome := one.ended(limits.seconds)) is not None:
                    running.remove(one)
                    ended(one.task.key, outcome)
            time.sleep(0.05)
    finally:
        for one in running:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()
            one.close()


def run_apart(command: Sequence[str], limit: float) -> CommandEnd:
    """Run one command, which is ended after `limit` seconds."""
    outcomes = list[CommandEnd]()
    run_tasks([Task("", command, 0, 0)], lambda _, outcome: outcomes.append(outcome), Limits(1, 0, limit, inf))
    return outcomes[0]


def _startable(waiting: Sequence[Task], running: Sequence[_Command], limits: Limits) -> list[Task]:
    """The tasks that begin now: the longest ones that fit beside those that run. By itself each fits."""
    now, free, slots = list[Task](), limits.memory_mb - sum(one.task.mb for one in running), limits.jobs - len(running)
    for task in waiting:
        if slots > len(now) and (task.mb <= free or not (running or now)):
            now.append(task)
            free -= task.mb
    return now


def _start(task: Task) -> _Command:
    output, said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
    process = subprocess.Popen(
        task.command,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=said,
        env={**os.environ, **THREADS},
        start_new_session=True,
    )
    return _Command(task, process, time.monotonic(), output, said)
