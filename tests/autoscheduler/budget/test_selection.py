"""One option of each group under a budget: CP-SAT chooses the best of all selections."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest

from fuseflow import cp_sat
from fuseflow.autoscheduler.budget.selection import Option, Selection, SelectionProblem, select, selected_by_cp_sat
from fuseflow.errors import UsageError
from fuseflow.requirements import install_command


def random_problem(seed: int) -> SelectionProblem:
    rng = np.random.default_rng(seed)
    components = int(rng.integers(1, 4))

    def option() -> Option:
        return Option(float(rng.integers(1, 9)), tuple(int(n) for n in rng.integers(0, 6, components)))

    groups = tuple(tuple(option() for _ in range(rng.integers(1, 5))) for _ in range(rng.integers(1, 5)))
    return SelectionProblem(groups, tuple(int(n) for n in rng.integers(2, 14, components)))


def large_problem(seed: int) -> SelectionProblem:
    """Twelve stages of 14 numbers of lanes each, which share multipliers, ports and bytes."""
    rng = np.random.default_rng(seed)
    counts = sorted({factor << n for n in range(7) for factor in (1, 3)})

    def stage() -> tuple[Option, ...]:
        work, amounts = float(rng.integers(100, 100_000)), rng.integers([1, 1, 100], [4, 20, 6000])
        return tuple(Option(work / count, tuple(int(n) * (count - 1) for n in amounts)) for count in counts)

    return SelectionProblem(tuple(stage() for _ in range(12)), (64, 256, 1 << 20))


def best_of_all(problem: SelectionProblem) -> Selection | None:
    fitting = []
    for places in product(*(range(len(group)) for group in problem.groups)):
        options = [group[at] for group, at in zip(problem.groups, places, strict=True)]
        used = [sum(option.amounts[n] for option in options) for n in range(len(problem.limits))]
        if all(u <= limit for u, limit in zip(used, problem.limits, strict=True)):
            fitting.append((max(option.cycles for option in options), sum(places), places))
    return min(fitting)[2] if fitting else None


@pytest.mark.parametrize("seeds", [range(n, n + 50) for n in range(0, 300, 50)])
def test_the_best_is_found(seeds: range) -> None:
    for seed in seeds:
        problem = random_problem(seed)
        assert select(problem) == selected_by_cp_sat(problem) == best_of_all(problem), seed


def test_what_all_have_room_for_is_the_best_and_needs_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    roomy = [problem for seed in range(100) if (problem := random_problem(seed)).has_room(problem.fastest())]
    assert len(roomy) > 10
    expected = [selected_by_cp_sat(problem) for problem in roomy]
    monkeypatch.setitem(sys.modules, "ortools.linear_solver", None)
    assert [select(problem) for problem in roomy] == expected


def test_a_selection_is_the_same_in_ten_runs() -> None:
    problem = large_problem(seed=0)
    assert len({select(problem) for _ in range(10)}) == 1


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With less work than a proof takes, what was found is within the limits, and the same each time."""
    problem = large_problem(seed=1)
    monkeypatch.setattr(cp_sat, "EFFORT", 1e-3)
    found = {select(problem) for _ in range(3)}
    assert len(found) == 1
    assert all(problem.has_room(chosen) for chosen in found - {None})


def test_lanes_go_where_the_work_is() -> None:
    works = (800.0, 100.0, 100.0)
    groups = tuple(tuple(Option(work / lanes, (lanes,)) for lanes in (1, 2, 4, 8, 16)) for work in works)
    assert select(SelectionProblem(groups, (10,))) == (3, 0, 0)
    assert select(SelectionProblem(groups, (2,))) is None


def test_without_limits_every_stage_is_fast() -> None:
    fast = Option(1.0, (10**30,))
    assert select(SelectionProblem(((Option(2.0, (0,)), fast),) * 2, (10**31,))) == (1, 1)
    assert select(SelectionProblem((), ())) == ()
    assert select(SelectionProblem(((fast,), ()), (10**31,))) is None


def test_without_or_tools_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.linear_solver", None)
    with pytest.raises(UsageError, match="needs CP-SAT of OR-Tools, which cannot be imported") as error:
        select(large_problem(seed=0))
    assert error.value.hint == install_command("ortools")
