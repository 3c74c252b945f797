"""A process that measures points, seen from outside: it is given a task, and says what it found, unless it dies."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import fuseflow
from fuseflow.errors import SweepError
from fuseflow.sweep.digests import code_version
from fuseflow.sweep.measurement import KEPT_SOURCES
from fuseflow.sweep.point import Task, TaskOutcome

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""Points run side by side, one core each; and sums are added up in the same order everywhere."""


@dataclass(slots=True)
class WorkerProcess:
    """`sources`: what it has loaded, the latest last. `ready`: it can begin. `task`: what it is at, since `started`."""

    process: subprocess.Popen[bytes]
    said: IO[bytes]
    task: Task | None = None
    alone: bool = False
    ready: bool = False
    started: float = math.inf
    sources: list[str] = field(default_factory=list)
    _unread: bytes = b""

    @classmethod
    def start(cls) -> WorkerProcess:
        path = [str(Path(fuseflow.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path)}
        said = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        command = [sys.executable, "-P", "-m", "fuseflow.sweep.worker"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=environment, start_new_session=True
        )
        return cls(process, said)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def late(self) -> bool:
        return self.task is not None and self.task.limit is not None and time.monotonic() > self.started + self.task.limit

    def give(self, task: Task, alone: bool) -> None:
        """Begin a task; whether the process is still there is seen when it is read."""
        self.task, self.alone = task, alone
        self.started = time.monotonic() if self.ready else math.inf
        line = json.dumps({"key": task.key, "mode": task.mode, "point": asdict(task.point)}) + "\n"
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()

    def read(self) -> TaskOutcome | None:
        """What it says now; an outcome if its task is done. Raises `EOFError` if it is gone."""
        data = os.read(self.output.fileno(), 1 << 16)
        if not data:
            raise EOFError
        *lines, self._unread = (self._unread + data).split(b"\n")
        return next(filter(None, [self._heard(json.loads(line)) for line in lines]), None)

    def _heard(self, message: dict[str, Any]) -> TaskOutcome | None:
        if "code" in message:
            if message["code"] != code_version():
                raise SweepError(
                    f"workers run another fuseflow: {message['code']}, not {code_version()}",
                    hint="its files have changed since the sweep began: begin again, what is done stays",
                )
            self.ready, self.started = True, time.monotonic()
        elif "loaded" in message:  # a limit is one for loading, and one for the point itself
            self.started = time.monotonic()
            self._note_source()
        else:
            self.task = None
            return TaskOutcome(**message)
        return None

    def _note_source(self) -> None:
        assert self.task is not None
        others = [source for source in self.sources if source != self.task.point.source]
        self.sources = [*others, self.task.point.source][-KEPT_SOURCES:]

    def last_words(self) -> str:
        """How it ended, and the last that it said."""
        status = self.process.wait()
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").strip().splitlines()
        return f"its process ended with {how}" + (f": {lines[-1][:200]}" if lines else "")

    def kill(self) -> None:
        """End it now, and whatever it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.said):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
