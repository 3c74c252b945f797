"""A team of threads: who runs what, and when there is none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engines import differences, on_engine, on_reference
from graph_fuzz import drawn
from random_graphs.case import Case

from fuseflow.memory.buffer_assignment import preloaded_readers
from fuseflow.memory.fronts import divides
from fuseflow.native.kernel_library import library
from fuseflow.sim.engine import team
from fuseflow.sim.engine.buffer_growth import PartOutput
from fuseflow.sim.engine.execute import DEFAULT_LIMITS, has_ended, run
from fuseflow.sim.engine.network_layout import NetworkLayout, lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.engine.team import thread_of_parts, threads_that_pay
from fuseflow.sim.processors import PROCESSORS

EAGER = Limits(alone=0, threads=2)


def at_memory() -> Case:
    """A case with a memory that takes time and that threads may share, which runs to its end."""
    cases = (case for seed in range(1, 200, 2) if len((case := drawn(seed, "medium")).graph.nodes) > 12)
    return next(case for case in cases if (of := laid_out(case).controller) is not None and divides(of))


def laid_out(case: Case, limits: Limits = DEFAULT_LIMITS) -> NetworkLayout:
    return lay_out(case.graph, case.tensors, case.machine, library(), limits, False, case.machine.controller())


@pytest.mark.parametrize("threads", [2, 3, 4, 8])
def test_any_number_of_threads_says_the_same(threads: int) -> None:
    for seed in range(7001, 7041, 2):
        case = drawn(seed, "medium")
        assert not list(differences(case, on_reference(case), on_engine(case, replace(EAGER, threads=threads)))), seed


def test_nodes_stay_whole_and_the_work_is_divided() -> None:
    case = at_memory()
    layout = laid_out(case)
    assert run(layout, PartOutput(), library())
    thread_of = thread_of_parts(layout, 2)
    of_node: dict[int, set[int]] = {}
    for owner, thread in zip(layout.owners, thread_of.tolist(), strict=True):
        of_node.setdefault(id(owner), set()).add(thread)
    assert all(len(threads) == 1 for threads in of_node.values())
    firings = np.bincount(thread_of, layout.nodes["firings"], minlength=2)
    assert firings.min() > 0.1 * firings.max()


def test_nodes_that_wait_for_the_same_preloaded_tensor_stay_together() -> None:
    case = drawn(50285, None)
    layout = laid_out(case)
    assert run(layout, PartOutput(), library())
    readers = preloaded_readers(case.graph)
    thread_by_tensor: dict[str, set[int]] = {}
    for owner, thread in zip(layout.owners, thread_of_parts(layout, 4).tolist(), strict=True):
        if owner is not None and owner.name in readers:
            thread_by_tensor.setdefault(owner.tensor, set()).add(thread)
    assert len(readers) > len(thread_by_tensor)
    assert all(len(threads) == 1 for threads in thread_by_tensor.values())


def test_little_work_in_a_window_is_for_one_thread() -> None:
    layout = laid_out(at_memory())
    assert threads_that_pay(layout, 8) == 1
    layout.nodes["firings"] = 10**6
    assert threads_that_pay(layout, 8) == 8


def test_processors_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "threads_that_pay", lambda layout, most: most)
    monkeypatch.setattr(PROCESSORS, "limit", 3)
    sizes = []
    layout = laid_out(at_memory())
    for _ in range(3):
        with team.team_for(layout, library()) as formed:
            sizes.append(0 if formed is None else formed.threads)
    assert sizes == [3, 3, 3]
    monkeypatch.setattr(PROCESSORS, "limit", 0)
    with team.team_for(layout, library()) as formed:
        assert formed is None


def test_one_thread_runs_where_no_more_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise RuntimeError("can't start new thread")

    case = at_memory()
    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    assert not list(differences(case, on_reference(case), on_engine(case, EAGER)))


def test_a_team_that_is_slower_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(self: team.Team, budget: int) -> tuple[int, int]:
        now[0] += 1000.0
        return turn(self, budget)

    def note(self: team.Team) -> None:
        ended.append(has_ended(self.layout))
        dissolve(self)

    turn, dissolve, now, ended = team.Team.turn, team.Team.dissolve, [0.0], list[bool]()
    monkeypatch.setattr(team.Team, "turn", slow)
    monkeypatch.setattr(team.Team, "dissolve", note)
    monkeypatch.setattr("fuseflow.sim.engine.execute.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(team, "threads_that_pay", lambda layout, most: 2)
    monkeypatch.setattr(PROCESSORS, "limit", 2)
    for seed in range(9001, 9081, 2):
        case = drawn(seed, "medium")
        assert not list(differences(case, on_reference(case), on_engine(case, Limits(alone=40)))), seed
    assert ended.count(False) > 10
