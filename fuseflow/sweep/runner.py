"""What a sweep asks of whatever runs its points: a pool of processes here, or a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from fuseflow.sweep.point import Task, TaskOutcome


class Runner(Protocol):
    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
        """Every task with what became of it, as soon as that is known, in any order. Whatever happens to a task is an outcome. To close
        the iterator ends what runs."""
        ...

    def learn(self, source: str, mode: str, peak: int) -> None:
        """What a point of this source took in an earlier run."""
        ...

    def close(self) -> None:
        """Leave nothing behind."""
        ...


@dataclass(slots=True)
class TaskQueue:
    """Tasks that have not begun. Those of one source are in turn, so that the model is traced once for all of them; those that must
    run with nothing beside them come last."""

    _of_source: dict[str, deque[Task]] = field(default_factory=dict)
    _alone: deque[Task] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._of_source or self._alone)

    def add(self, task: Task) -> None:
        self._of_source.setdefault(task.point.source, deque()).append(task)

    def add_alone(self, task: Task) -> None:
        self._alone.append(task)

    def take(self, loaded: Iterable[str], fits: Callable[[Task], bool]) -> Task | None:
        """The next task that fits beside others, of a source that is `loaded` if there is one."""
        sources = [*(s for s in loaded if s in self._of_source), *self._of_source]
        source = next((s for s in sources if fits(self._of_source[s][0])), None)
        if source is None:
            return None
        task = self._of_source[source].popleft()
        if not self._of_source[source]:
            del self._of_source[source]
        return task

    def take_alone(self) -> Task | None:
        return self._alone.popleft() if self._alone and not self._of_source else None
