"""A runner in processes of this machine.

The pools of the standard library break when a process dies, cannot end a process that takes too long, and ignore memory. In this pool a
process that dies costs its point at most.
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
"""The seconds between two checks of time limits and memory."""


@dataclass(slots=True)
class Pool:
    """A pool of `jobs` processes that together use `memory` bytes. If `memory` is None, they use most of the free memory.

    A task starts when it is expected to fit beside the tasks that run. If memory gets scarce, the task that began last is ended, and runs
    again with nothing beside it. So does, once, a task whose process died. A task that fails alone has failed.
    """

    jobs: int
    memory: int | None = None
    forecast: MemoryForecast = field(init=False)
    _workers: list[WorkerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.forecast = MemoryForecast(self.memory or int(BUDGET_SHARE * available_memory()), self.jobs)

    def learn(self, source: str, mode: str, peak: int) -> None:
        """Take the peak memory of an earlier task into account."""
        self.forecast.learn(source, mode, peak)

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

    def _begin(self, queue: TaskQueue) -> None:
        """Send tasks of the queue to idle processes, and start processes for more tasks, as `jobs` and the memory allow."""
        for worker in [w for w in self._workers if w.task is None and not w.alive]:
            self._drop(worker)
        while len(busy := self._busy()) < self.jobs and not any(w.alone for w in busy):
            idle = next((w for w in self._workers if w.task is None), None)
            running = [(w.task, memory_of(w.pid)) for w in busy if w.task is not None]
            task = queue.take(idle.sources[::-1] if idle else (), lambda t, b=running: not b or self.forecast.fits(t, b))  # type: ignore[misc]
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
                queue.add_alone(task)
            return
        if outcome is not None:
            self.forecast.learn(task.point.source, task.mode, outcome.peak)
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
        sizes = [memory_of(w.pid) for w in busy]
        is_over = sum(sizes) > self.forecast.budget and (len(busy) > 1 or self.memory is not None)
        if not busy or not (is_over or memory_is_scarce()):
            return
        worker, task = busy[-1], busy[-1].task
        assert task is not None
        self.forecast.learn(task.point.source, task.mode, sizes[-1])
        self._drop(worker)
        if len(busy) > 1:
            queue.add_alone(task)
        else:
            taken = f"{sizes[-1] / 1e9:.1f} GB"
            message = (
                f"it takes more than {taken} of memory"
                if is_over
                else f"the machine ran out of memory while it took {taken}: other processes have the rest"
            )
            yield task, TaskOutcome(task.key, reason="memory", error=f"error[memory]: {message}", peak=sizes[-1])
