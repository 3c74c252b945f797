"""CP-SAT: whole numbers, what they must fulfil, and one objective after the other. And one option of each group under a budget."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest

from fuseflow import cp_sat
from fuseflow.cp_sat import (
    CpSatProblem,
    Objective,
    Option,
    Selection,
    SelectionProblem,
    require_or_tools,
    select,
    selected_by_cp_sat,
)
from fuseflow.errors import UsageError
from fuseflow.requirements import install_command


@pytest.mark.parametrize("exact", [cp_sat.EXACT, 1])
@pytest.mark.parametrize("seeds", [range(50)])
def test_the_best_of_all_solutions_is_found(seeds: range, exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joined to one, and one after the other."""
    monkeypatch.setattr(cp_sat, "EXACT", exact)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        bounds = rng.integers(1, 4, size=rng.integers(1, 5))
        rows = rng.integers(-3, 4, size=(2, len(bounds)))
        least, most = -rng.integers(0, 4, size=2), rng.integers(0, 4, size=2)
        goals = rng.integers(0, 4, size=(3, len(bounds)))
        problem = CpSatProblem(bounds.tolist())
        for row, low, high in zip(rows, least, most, strict=True):
            problem.require({n: int(c) for n, c in enumerate(row)}, int(low), int(high))
        found = problem.minimize([Objective(goal, int(goal @ bounds)) for goal in goals])
        every = np.array(list(product(*(range(bound + 1) for bound in bounds))))
        right = every[((every @ rows.T >= least) & (every @ rows.T <= most)).all(axis=1)]
        assert found is not None
        assert (rows @ found >= least).all() and (rows @ found <= most).all()
        assert tuple(goals @ found) == min(map(tuple, right @ goals.T)), seed


def test_what_cannot_be_is_none() -> None:
    problem = CpSatProblem([1, 1])
    problem.require({0: 1, 1: 1}, least=3)
    assert problem.minimize([Objective(np.array([1, 1]), 2)]) is None


def test_large_objectives_are_exact() -> None:
    """The difference of one counts beside numbers of 45 bits."""
    problem = CpSatProblem([1, 1])
    problem.require({0: 1, 1: 1}, least=1, most=1)
    found = problem.minimize([Objective(np.array([2**44 + 1, 2**44]), 2**44 + 1)])
    assert found is not None and found.tolist() == [0, 1]


def test_it_runs_on_one_worker_from_a_fixed_seed(capfd: pytest.CaptureFixture[str]) -> None:
    problem = CpSatProblem([1, 1])
    problem._solver.EnableOutput()
    problem.minimize([Objective(np.array([1, 1]), 2)])
    told = capfd.readouterr().out
    assert "Starting CP-SAT solver" in told
    assert "num_workers: 1" in told and "random_seed: 0" in told and "max_deterministic_time: 60" in told


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.linear_solver", None)
    with pytest.raises(UsageError, match="CP-SAT of OR-Tools, which cannot be imported") as error:
        CpSatProblem([1])
    assert error.value.hint == install_command("ortools")


def test_a_search_asks_first_whether_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    require_or_tools()
    monkeypatch.setitem(sys.modules, "ortools", None)
    with pytest.raises(UsageError, match="it is not installed"):
        require_or_tools()


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
