"""The interface of the runners of a sweep: a pool of processes on this machine, or a cluster. And a queue of tasks for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from fuseflow.sweep.point import Task, TaskOutcome


class Runner(Protocol):
    """A runner of tasks."""

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
        """Yield every task with its outcome as soon as it is known, in any order. A task that fails has an outcome, too.

        Closing the iterator ends the tasks that run.
        """
        ...

    def learn(self, source: str, mode: str, peak: int) -> None:
        """Note the `peak`, the bytes that a point of this source and mode took in an earlier run."""
        ...

    def close(self) -> None:
        """End all that the runner started."""
        ...


@dataclass(slots=True)
class TaskQueue:
    """A queue of tasks that have not begun.

    Tasks of one source stand together, so that the model is traced once for all of them. Tasks that must run alone come last.
    """

    _by_source: dict[str, deque[Task]] = field(default_factory=dict)
    _alone: deque[Task] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._by_source or self._alone)

    def add(self, task: Task) -> None:
        """Add a task behind the other tasks of its source."""
        self._by_source.setdefault(task.point.source, deque()).append(task)

    def add_alone(self, task: Task) -> None:
        """Add a task that must run alone."""
        self._alone.append(task)

    def take(self, loaded: Iterable[str], fits: Callable[[Task], bool]) -> Task | None:
        """Remove and return the next task that fits beside others, preferring the `loaded` sources. `fits` says whether a task
        fits. None if no task does."""
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
        return self._alone.popleft() if self._alone and not self._by_source else None
