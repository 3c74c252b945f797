"""A runner in processes of this machine, within a budget of memory, so that heavy points run alone.

The pools of the standard library break when a process dies, cannot end a process that takes too long, and ignore memory. In this pool a
process that dies costs its point at most.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import IO, Any

import psutil

from fuseflow.errors import SweepError
from fuseflow.package_digest import PACKAGE
from fuseflow.sweep.point import Task, TaskOutcome, code_version
from fuseflow.sweep.point_evaluation import KEPT_SOURCES

BUDGET_SHARE = 0.85
"""The share of the memory that is free when a sweep begins that it may use."""
RESERVE_SHARE = 0.04
"""The share of all memory that stays free. If less is free, a task is ended before the system ends a process."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""The environment of a worker. Points run side by side on one core each, and sums are added up in the same order everywhere."""
TICK = 0.2
"""The seconds between two checks of time limits and memory."""


def memory_is_scarce() -> bool:
    """Return whether the system is about to run out of memory."""
    memory = psutil.virtual_memory()
    return bool(memory.available < RESERVE_SHARE * memory.total)


def memory_of(pid: int) -> int:
    """Return the bytes that a process has now; 0 if it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


@dataclass(slots=True)
class TaskQueue:
    """A queue of tasks that have not begun.

    Tasks of one source stand together, so that the model is traced once for all of them. Tasks that must run `alone` come last.
    """

    _by_source: dict[str, deque[Task]] = field(default_factory=dict)
    alone: deque[Task] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._by_source or self.alone)

    def add(self, task: Task) -> None:
        """Add a task behind the other tasks of its source."""
        self._by_source.setdefault(task.point.source, deque()).append(task)

    def take(self, loaded: Iterable[str], fits: Callable[[Task], bool]) -> Task | None:
        """Remove and return the next task that `fits` beside others, preferring the `loaded` sources; None if no task does."""
        sources = [*(s for s in loaded if s in self._by_source), *self._by_source]
        source = next((s for s in sources if fits(self._by_source[s][0])), None)
        if source is None:
            return None
        task = self._by_source[source].popleft()
        if not self._by_source[source]:
            del self._by_source[source]
        return task

    def take_alone(self) -> Task | None:
        """Remove and return the next task that must run alone. None if there is none, or if other tasks are left."""
        return self.alone.popleft() if self.alone and not self._by_source else None


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
        path = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path)}
        log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        command = [sys.executable, "-P", "-m", "fuseflow.sweep.worker"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True
        )
        return cls(process, log)

    @property
    def output(self) -> IO[bytes]:
        """The messages of the process."""
        assert self.process.stdout is not None
        return self.process.stdout

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
            assert self.task is not None
            others = [source for source in self.sources if source != self.task.point.source]
            self.sources = [*others, self.task.point.source][-KEPT_SOURCES:]
        else:
            self.task = None
            return TaskOutcome(**message)
        return None

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


@dataclass(slots=True)
class Pool:
    """A pool of `jobs` processes that together use `memory` bytes. If `memory` is None, they use most of the free memory.

    A task starts when it is expected to fit beside the tasks that run. If memory gets scarce, the task that began last is ended, and runs
    again with nothing beside it. So does, once, a task whose process died. A task that fails alone has failed.
    """

    jobs: int
    memory: int | None = None
    _budget: int = field(init=False)
    _peaks: dict[tuple[str, str], int] = field(default_factory=dict)
    """The most bytes that tasks of a source and mode took so far."""
    _workers: list[WorkerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._budget = self.memory or int(BUDGET_SHARE * psutil.virtual_memory().available)

    def learn(self, source: str, mode: str, peak: int) -> None:
        """Take the peak memory of an earlier task of this source and mode into account."""
        self._peaks[source, mode] = max(peak, self._peaks.get((source, mode), 0))

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
        """Yield every task with its outcome, in the order in which they finish."""
        queue = TaskQueue()
        for task in tasks:
            queue.add(task)
        last_check = time.monotonic()
        try:
            while queue or self._busy():
                self._begin(queue)
                for worker in self._ready_workers():
                    yield from self._listen(worker, queue)
                if time.monotonic() > last_check + TICK:
                    last_check = time.monotonic()
                    yield from self._end_late()
                    yield from self._free_memory(queue)
        finally:
            for worker in self._busy():
                self._drop(worker)

    def close(self) -> None:
        """End all processes."""
        for worker in list(self._workers):
            self._drop(worker)

    def _busy(self) -> list[WorkerProcess]:
        return [worker for worker in self._workers if worker.task is not None]

    def _drop(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        worker.kill()

    def _bytes_of(self, task: Task) -> int:
        """Return the bytes that a task is expected to take. Before one like it has run, that is the budget divided by `jobs`."""
        return self._peaks.get((task.point.source, task.mode), self._budget // self.jobs)

    def _fits(self, task: Task, beside: Sequence[tuple[Task, int]]) -> bool:
        """Return whether a task can start beside the tasks that run, each with the bytes that it uses now."""
        taken = sum(max(self._bytes_of(other), now) for other, now in beside)
        return not beside or self._bytes_of(task) + taken <= self._budget

    def _begin(self, queue: TaskQueue) -> None:
        """Send tasks of the queue to idle processes, and start processes for more tasks, as `jobs` and the memory allow."""
        for worker in [w for w in self._workers if w.task is None and w.process.poll() is not None]:
            self._drop(worker)
        while len(busy := self._busy()) < self.jobs and not any(w.alone for w in busy):
            idle = next((w for w in self._workers if w.task is None), None)
            running = [(w.task, memory_of(w.process.pid)) for w in busy if w.task is not None]
            task = queue.take(idle.sources[::-1] if idle else (), partial(self._fits, beside=running))
            alone = queue.take_alone() if task is None and not busy else None
            if task is None and alone is None:
                return
            if idle is None:
                idle = WorkerProcess.start()
                self._workers.append(idle)
            idle.give(task or alone, alone is not None)  # type: ignore[arg-type]

    def _ready_workers(self) -> list[WorkerProcess]:
        """Return the busy processes that have sent something or are gone. Waits for the first one, for `TICK` seconds at most."""
        with selectors.DefaultSelector() as selector:
            for worker in self._busy():
                selector.register(worker.output, selectors.EVENT_READ, worker)
            return [key.data for key, _ in selector.select(TICK)]

    def _listen(self, worker: WorkerProcess, queue: TaskQueue) -> Iterator[tuple[Task, TaskOutcome]]:
        task, alone = worker.task, worker.alone
        assert task is not None
        try:
            outcome = worker.read()
        except EOFError:
            ending = worker.last_words()
            self._drop(worker)
            if alone:
                yield task, TaskOutcome(task.key, reason="crash", error=f"error[crash]: {ending}")
            else:
                queue.alone.append(task)
            return
        if outcome is not None:
            self.learn(task.point.source, task.mode, outcome.peak)
            yield task, outcome

    def _end_late(self) -> Iterator[tuple[Task, TaskOutcome]]:
        for worker in self._busy():
            if worker.late and (task := worker.task) is not None:
                self._drop(worker)
                message = f"error[limit]: it takes more than {task.limit:g} s"
                yield task, TaskOutcome(task.key, reason="limit", error=message, seconds=task.limit or 0.0)

    def _free_memory(self, queue: TaskQueue) -> Iterator[tuple[Task, TaskOutcome]]:
        """If there is too little memory, end the task that began last. It runs again alone, unless it already ran alone."""
        busy = sorted(self._busy(), key=lambda w: w.started)
        sizes = [memory_of(w.process.pid) for w in busy]
        is_over = sum(sizes) > self._budget and (len(busy) > 1 or self.memory is not None)
        if not busy or not (is_over or memory_is_scarce()):
            return
        worker, task = busy[-1], busy[-1].task
        assert task is not None
        self.learn(task.point.source, task.mode, sizes[-1])
        self._drop(worker)
        if len(busy) > 1:
            queue.alone.append(task)
        else:
            taken = f"{sizes[-1] / 1e9:.1f} GB"
            message = f"the machine ran out of memory while it took {taken}: other processes have the rest"
            message = f"it takes more than {taken} of memory" if is_over else message
            yield task, TaskOutcome(task.key, reason="memory", error=f"error[memory]: {message}", peak=sizes[-1])
