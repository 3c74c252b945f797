"""Points in processes of this machine.

The pools of the standard library break when a process dies, cannot end one that takes too long, and know nothing of memory; here a
process that dies costs its point, at most.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fuseflow.sweep.memory_budget import BUDGET_SHARE, MemoryForecast, available_memory, memory_is_scarce, memory_of
from fuseflow.sweep.point import Task, TaskOutcome
from fuseflow.sweep.runner import TaskQueue
from fuseflow.sweep.worker_process import WorkerProcess

TICK = 0.2
"""Seconds between two looks at clocks and memory."""


@dataclass(slots=True)
class Pool:
    """`jobs` processes, that use `memory` bytes together (None: most of what is free).

    A task starts when it is expected to fit beside those that run. If memory gets scarce the task that began last is ended, and runs
    again with nothing beside it; so does one whose process died, once. What fails alone has failed.
    """

    jobs: int
    memory: int | None = None
    expected: MemoryForecast = field(init=False)
    _workers: list[WorkerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expected = MemoryForecast(self.memory or int(BUDGET_SHARE * available_memory()), self.jobs)

    def learn(self, source: str, mode: str, peak: int) -> None:
        self.expected.learn(source, mode, peak)

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
        waiting = TaskQueue()
        for task in tasks:
            waiting.add(task)
        looked = time.monotonic()
        try:
            while waiting or self._busy():
                self._begin(waiting)
                for worker in self._speaking():
                    yield from self._listen(worker, waiting)
                if time.monotonic() > looked + TICK:
                    looked = time.monotonic()
                    yield from self._end_late()
                    yield from self._free_memory(waiting)
        finally:
            for worker in self._busy():
                self._drop(worker)

    def close(self) -> None:
        for worker in list(self._workers):
            self._drop(worker)

    def _busy(self) -> list[WorkerProcess]:
        return [worker for worker in self._workers if worker.task is not None]

    def _drop(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        worker.kill()

    def _begin(self, waiting: TaskQueue) -> None:
        """Give tasks to processes that have none, and start processes for those that are left."""
        for worker in [w for w in self._workers if w.task is None and not w.alive]:
            self._drop(worker)
        while len(busy := self._busy()) < self.jobs and not any(w.alone for w in busy):
            idle = next((w for w in self._workers if w.task is None), None)
            beside = [(w.task, memory_of(w.pid)) for w in busy if w.task is not None]
            task = waiting.take(idle.sources[::-1] if idle else (), lambda t, b=beside: not b or self.expected.fits(t, b))  # type: ignore[misc]
            alone = waiting.take_alone() if task is None and not busy else None
            if task is None and alone is None:
                return
            if idle is None:
                idle = WorkerProcess.start()
                self._workers.append(idle)
            idle.give(task or alone, alone is not None)  # type: ignore[arg-type]

    def _speaking(self) -> list[WorkerProcess]:
        """The processes that have something to say, or are gone; waits for one of them, but not long."""
        with selectors.DefaultSelector() as selector:
            for worker in self._busy():
                selector.register(worker.output, selectors.EVENT_READ, worker)
            return [key.data for key, _ in selector.select(TICK)]

    def _listen(self, worker: WorkerProcess, waiting: TaskQueue) -> Iterator[tuple[Task, TaskOutcome]]:
        task, alone = worker.task, worker.alone
        assert task is not None
        try:
            outcome = worker.read()
        except EOFError:
            how = worker.last_words()
            self._drop(worker)
            if alone:
                yield task, TaskOutcome(task.key, reason="crash", error=f"error[crash]: {how}")
            else:
                waiting.add_alone(task)
            return
        if outcome is not None:
            self.expected.learn(task.point.source, task.mode, outcome.peak)
            yield task, outcome

    def _end_late(self) -> Iterator[tuple[Task, TaskOutcome]]:
        for worker in self._busy():
            if worker.late and (task := worker.task) is not None:
                self._drop(worker)
                message = f"error[limit]: it takes more than {task.limit:g} s"
                yield task, TaskOutcome(task.key, reason="limit", error=message, seconds=task.limit or 0.0)

    def _free_memory(self, waiting: TaskQueue) -> Iterator[tuple[Task, TaskOutcome]]:
        """If there is too little memory, end the task that began last; it runs again alone, unless it did."""
        busy = sorted(self._busy(), key=lambda w: w.started)
        now = [memory_of(w.pid) for w in busy]
        over = sum(now) > self.expected.budget and (len(busy) > 1 or self.memory is not None)
        if not busy or not (over or memory_is_scarce()):
            return
        worker, task = busy[-1], busy[-1].task
        assert task is not None
        self.expected.learn(task.point.source, task.mode, now[-1])
        self._drop(worker)
        if len(busy) > 1:
            waiting.add_alone(task)
        else:
            message = f"error[memory]: it takes more than {now[-1] / 1e9:.1f} GB of memory"
            yield task, TaskOutcome(task.key, reason="memory", error=message, peak=now[-1])
