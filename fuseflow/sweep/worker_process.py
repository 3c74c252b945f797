"""The handle of a process that measures points: the process gets a task, and sends the outcome unless it dies."""

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
"""The environment of a worker. Points run side by side on one core each, and sums are added up in the same order everywhere."""


@dataclass(slots=True)
class WorkerProcess:
    """A process that measures points.

    `log` is the file of its standard error. `task` is the task that it runs, since the time `started`; `alone` says that nothing
    runs beside it. `ready` says that the process has started and can begin. `sources` are the models that it has loaded, the
    latest last.
    """

    process: subprocess.Popen[bytes]
    log: IO[bytes]
    task: Task | None = None
    alone: bool = False
    ready: bool = False
    started: float = math.inf
    sources: list[str] = field(default_factory=list)
    _unread: bytes = b""

    @classmethod
    def start(cls) -> WorkerProcess:
        """Start a process."""
        path = [str(Path(fuseflow.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path)}
        log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        command = [sys.executable, "-P", "-m", "fuseflow.sweep.worker"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True
        )
        return cls(process, log)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> IO[bytes]:
        """The messages of the process."""
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    @property
    def late(self) -> bool:
        """Whether the task takes longer than its limit."""
        return self.task is not None and self.task.limit is not None and time.monotonic() > self.started + self.task.limit

    def give(self, task: Task, alone: bool) -> None:
        """Send a task. A process that has died is noticed when its messages are read."""
        self.task, self.alone = task, alone
        self.started = time.monotonic() if self.ready else math.inf
        line = json.dumps({"key": task.key, "mode": task.mode, "point": asdict(task.point), "keep_run": task.keep_run}) + "\n"
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()

    def read(self) -> TaskOutcome | None:
        """Read the messages that the process sent; returns an outcome if its task is done. Raises `EOFError` if the process is gone."""
        data = os.read(self.output.fileno(), 1 << 16)
        if not data:
            raise EOFError
        *lines, self._unread = (self._unread + data).split(b"\n")
        return next(filter(None, [self._handle(json.loads(line)) for line in lines]), None)

    def _handle(self, message: dict[str, Any]) -> TaskOutcome | None:
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
        """Return how the process ended, and the last line that it wrote to standard error."""
        status = self.process.wait()
        ending = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return f"its process ended with {ending}" + (f": {lines[-1][:200]}" if lines else "")

    def kill(self) -> None:
        """End the process now, and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
