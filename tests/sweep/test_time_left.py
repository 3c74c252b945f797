"""The rest of a sweep is told when it is known, and is near the truth on workloads that are as skewed as real ones."""

from __future__ import annotations

import heapq
import itertools
import random
import time
from collections.abc import Iterator, Mapping

import pytest

from fuseflow.sweep.design_space import LabeledPoint
from fuseflow.sweep.point import Point, TaskOutcome
from fuseflow.sweep.sweep import SweepProgress
from fuseflow.sweep.time_left import Rest, TimeLeft

Task = tuple[str, Mapping[str, str], float]


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def expecting(tasks: Mapping[str, Mapping[str, str]], jobs: int, clock: Clock) -> TimeLeft:
    left = TimeLeft(jobs, clock)
    for key, labels in tasks.items():
        left.expect(key, labels)
    return left


def told(tasks: list[Task], jobs: int, start: float = 0.0) -> Iterator[tuple[Rest | None, float, int]]:
    """Yield what is told after each task, with the seconds that are really left and how many tasks are done, if `jobs` processes, each of
    which takes `start` seconds more for its first task, take the tasks in order."""
    clock = Clock()
    left = expecting({key: labels for key, labels, _ in tasks}, jobs, clock)
    free = [(start, n) for n in range(jobs)]
    ends = list[tuple[float, int, float]]()
    for number, (_, _, seconds) in enumerate(tasks):
        began, worker = heapq.heappop(free)
        heapq.heappush(free, (began + seconds, worker))
        ends.append((began + seconds, number, seconds + (start if number < jobs else 0)))
    last = max(end for end, _, _ in ends)
    for count, (end, number, seconds) in enumerate(sorted(ends), 1):
        clock.now = end
        left.note(tasks[number][0], tasks[number][1], seconds)
        yield left.rest, last - end, count


def product(factors: Mapping[str, Mapping[str, float]], noise: float = 0.0) -> list[Task]:
    """Return a task for each combination of labels, which takes the product of their factors, give or take some noise."""
    rng = random.Random(7)
    tasks = []
    for number, items in enumerate(itertools.product(*(values.items() for values in factors.values()))):
        seconds = 1.0
        for _, factor in items:
            seconds *= factor
        labels = dict(zip(factors, (label for label, _ in items), strict=True))
        tasks.append((str(number), labels, seconds * rng.lognormvariate(0, noise)))
    return tasks


def assert_near(rest: Rest, truth: float) -> None:
    """What is told as whole is within a factor of 2.5, or a few seconds."""
    assert not rest.is_whole or 0.4 <= rest.seconds / truth <= 2.5 or abs(rest.seconds - truth) <= 3.0, (rest, truth)


EVEN = {"par": {f"i={n}": 0.5 for n in range(86)}}
SKEWED = {"data": {"karate": 0.05, "cora": 5.0}, "fuse": {"none": 1.0, "full": 4.0}, "par": {str(n): 1 / n for n in range(1, 9)}}


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_start_of_processes_is_not_taken_for_the_work(jobs: int) -> None:
    """Half a second each behind a start of ten: 86 times ten would be a quarter of an hour."""
    tasks = [(key, {"fuse": "full"}, 0.5) for key, _, _ in product(EVEN)]
    for rest, truth, count in told(tasks, jobs, start=10.0):
        assert (rest is None) == (count <= 2 * jobs)
        if rest is not None:
            assert rest.is_whole and abs(rest.seconds - truth) <= 4.0


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_skewed_work_is_weighted(jobs: int, noise: float) -> None:
    """Small data come first: what is told is a lower bound until a task of the large ones is done, and near the truth from then on."""
    wholes = 0
    for rest, truth, count in told(product(SKEWED, noise), jobs, start=3.0):
        if rest is not None and not rest.is_whole:
            assert rest.seconds <= 1.5 * truth + 1
        elif rest is not None and 20 <= count < 32 - 2 * jobs:
            wholes += 1
            assert_near(rest, truth)
    assert wholes >= 3


def test_in_any_order_the_rest_is_near_the_truth() -> None:
    for seed, jobs in itertools.product(range(20), (1, 2)):
        tasks = product(SKEWED, 0.2)
        random.Random(seed).shuffle(tasks)
        for rest, truth, count in told(tasks, jobs, start=3.0):
            if 16 + jobs <= count < 32 - 2 * jobs:
                assert rest is not None
                assert_near(rest, truth)


def test_what_loading_takes_between_tasks_is_learned() -> None:
    clock = Clock()
    left = expecting({str(n): {} for n in range(100)}, 1, clock)
    for n in range(50):
        clock.now += 3.0  # a second of work, and two for something else
        left.note(str(n), {}, 1.0)
    assert left.rest is not None and 135 <= left.rest.seconds <= 160


def test_an_earlier_run_is_knowledge() -> None:
    left = expecting({"a": {"fuse": "full"}, "b": {"fuse": "none"}}, 2, Clock())
    assert left.rest is None and left.work is None
    left.learn({"fuse": "full"}, 8.0)
    assert left.work == Rest(pytest.approx(8.0), False)
    left.learn({"fuse": "none"}, 2.0)
    work, rest = left.work, left.rest
    assert work is not None and rest is not None and work.is_whole
    assert work.seconds == pytest.approx(10.0, rel=0.1) and rest.seconds == pytest.approx(8.0, rel=0.1)


def test_thousands_of_tasks_take_no_time() -> None:
    tasks = product({"a": {str(n): 1.0 for n in range(100)}, "b": {str(n): 1.0 for n in range(50)}}, 0.1)
    start = time.process_time()
    assert all(rest is None or rest.seconds >= 0 for rest, _, _ in told(tasks, 2))
    assert time.process_time() - start < 20


def test_a_line_says_nothing_before_something_is_known() -> None:
    """Three points of small data, and then three of large data, each ten times as long."""
    points = [
        LabeledPoint({"data": data, "fuse": fuse}, Point(data, data, fuse, {})) for data in "ab" for fuse in ("x", "y", "z")
    ]
    clock = Clock()
    progress = SweepProgress(len(points), "cycles", time=TimeLeft(1, clock))
    for point in points:
        progress.expect(point, "simulate")
    lines = []
    for point, seconds in zip(points, (3.0, 1.0, 2.0, 30.0, 10.0, 20.0), strict=True):
        clock.now += seconds
        progress.note(point, "simulate", TaskOutcome("", {"cycles": 7}, seconds=seconds))
        lines.append(progress.line(()).partition(", best")[0])
    assert lines == ["1 of 6", "2 of 6", "3 of 6", "4 of 6, more than 19 s left", "5 of 6, about 19 s left", "6 of 6"]
