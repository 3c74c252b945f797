"""CP-SAT: whole numbers, what they must fulfil, and one objective after the other."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest

from fuseflow import cp_sat
from fuseflow.cp_sat import CpSatProblem, Objective, require_or_tools
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
