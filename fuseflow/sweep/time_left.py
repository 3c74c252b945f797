"""The time that the tasks of a sweep still take, as the tasks that are done let expect it.

How long a task takes is the product of a factor for each of its labels, such as `data=cora` or `fuse=none`, which are fitted to the seconds
of all tasks that are done. What the start of a process takes is in the seconds of the first tasks, so these count little.

The constants were chosen on made-up workloads of one to four processes, which the tests share for one and two: they have no data of their
own. Four processes on 32 tasks were told up to 3.5 times too much or too little.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

RIDGE = 0.001
"""The weight of the assumption that a label changes nothing, in tasks."""
FIRST = 2
"""How many of the first tasks count little, for each process: its first one is among them if its start takes longer than other tasks."""
FIRST_WEIGHT = 0.02
DOUBT = 3.0
"""The weight of the assumption that processes do nothing but tasks, in tasks."""
LEAST_SECONDS, MOST_SECONDS = 1e-3, 1e7

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rest:
    """The seconds that are left. They are a lower bound unless `is_whole`: nothing is known of some tasks."""

    seconds: float
    is_whole: bool


@dataclass(slots=True)
class TimeLeft:
    """The tasks of a sweep that are left and that are done, of which `jobs` run at a time. `unknown` more are left.

    Factors are fitted again when an eighth more tasks are done, so that all fits together take no longer than a few.
    """

    jobs: int = 1
    clock: Callable[[], float] = time.monotonic
    unknown: int = 0
    _left: dict[str, Labels] = field(default_factory=dict)
    _done: list[tuple[Labels, float, float]] = field(default_factory=list)
    """The labels, seconds and weight of each task that is done."""
    _ended: int = 0
    """How many tasks ended in this process."""
    _began: float = 0.0
    _worked: float = 0.0
    """The seconds of the tasks that ended after the first ones, and since `_began`."""
    _fitted: int = 0
    """How many tasks were done when the factors were fitted."""
    _expected: dict[str, float] = field(default_factory=dict)
    """The seconds of the tasks that are left, as far as they are known, by their keys."""
    _work: float = 0.0
    """The sum of these."""

    def expect(self, key: str, labels: Labels) -> None:
        """Note a task that is left."""
        self._left[key] = labels
        self._fitted = 0

    def take_tasks(self, other: TimeLeft) -> None:
        """Take over the tasks that are left."""
        self.unknown, self._left, self._fitted = other.unknown, dict(other._left), 0

    def learn(self, labels: Labels, seconds: float, weight: float = 1.0) -> None:
        """Take a task into account, as one of an earlier run."""
        self._done.append((labels, min(seconds, MOST_SECONDS) if seconds > LEAST_SECONDS else LEAST_SECONDS, weight))

    def note(self, key: str, labels: Labels, seconds: float) -> None:
        """Note that a task ended."""
        self._left.pop(key, None)
        self._work -= self._expected.pop(key, 0.0)
        self._ended += 1
        if self._ended <= FIRST * self.jobs:
            self._began = self.clock()
            self.learn(labels, seconds, FIRST_WEIGHT)
        else:
            self._worked += seconds
            self.learn(labels, seconds)

    @property
    def work(self) -> Rest | None:
        """The seconds of work that are left, on one core, or None if nothing is known."""
        self._fit()
        if not self._expected and (self._left or self.unknown):
            return None
        return Rest(max(self._work, 0.0), len(self._expected) == len(self._left) and not self.unknown)

    @property
    def rest(self) -> Rest | None:
        """The seconds that are left until all tasks are done, or None if nothing is known.

        What all processes could have worked since the first tasks, and is in no task that ended, was worked on the tasks that run now, or
        else goes into something that is not work, such as loading models: that will take as much time of what is left.
        """
        work = self.work
        if work is None:
            return None
        running = [self._expected.get(key, 0.0) for key in islice(self._left, self.jobs)]
        count = self._ended - FIRST * self.jobs
        passed = self.jobs * (self.clock() - self._began) if count > 0 else 0.0
        begun = min(max(passed - self._worked, 0.0), sum(running))
        doubt = DOUBT * self.jobs * self._worked / max(count, 1)
        pace = (passed + doubt) / (self._worked + begun + doubt) if count > 0 else 1.0
        seconds = max((work.seconds - begun) / self.jobs, max(running, default=0.0) - begun)
        return Rest(max(1.0, pace) * max(seconds, 0.0), work.is_whole)

    def _fit(self) -> None:
        """Fit the factors to the tasks that are done, if there are enough new ones, and expect the seconds of those that are left."""
        if all(weight < 1 for _, _, weight in self._done[: FIRST * self.jobs + 1]) or len(self._done) < self._fitted + max(
            1, self._fitted // 8
        ):
            return
        self._fitted = len(self._done)
        factors = _factors(self._done)
        base, known = factors.pop(("", "")), {item for labels, _, weight in self._done if weight == 1 for item in labels.items()}
        self._expected = {
            key: math.exp(base + sum(factors.get(item, 0.0) for item in labels.items()))
            for key, labels in self._left.items()
            if known.issuperset(labels.items())
        }
        self._work = sum(self._expected.values())


def _factors(done: Sequence[tuple[Labels, float, float]]) -> dict[tuple[str, str], float]:
    """Return the logarithm of the factor of each label, by least squares, and that of a task without labels under ("", "")."""
    axes = tuple(dict.fromkeys(axis for labels, _, _ in done for axis in labels))
    items = [[(axis, labels.get(axis, "")) for axis in axes] for labels, _, _ in done]
    numbers = {item: n for n, item in enumerate(dict.fromkeys(item for row in items for item in row))}
    at = np.array([[numbers[item] for item in row] for row in items], dtype=np.int64).reshape(len(done), len(axes))
    seconds, weights = (np.array(column) for column in list(zip(*done, strict=True))[1:])
    base, count = float(np.average(np.log(seconds), weights=weights)), len(numbers)
    pairs = sum(np.bincount(at[:, a] * count + at[:, b], weights, count**2) for a in range(len(axes)) for b in range(len(axes)))
    sums = sum(np.bincount(at[:, a], weights * (np.log(seconds) - base), count) for a in range(len(axes)))
    solved = np.linalg.solve(np.reshape(pairs, (count, count)) + RIDGE * np.eye(count), sums) if count else np.zeros(0)
    expected = np.exp(base + solved[at].sum(axis=1))
    return {
        ("", ""): base + math.log(seconds[weights == 1].sum() / expected[weights == 1].sum()),
        **{item: float(solved[n]) for item, n in numbers.items()},
    }
