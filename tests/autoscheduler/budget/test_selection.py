"""One option of each group under a budget: branch and bound, CP-SAT and all selections agree."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fuseflow.autoscheduler.budget.selection import Option, Selection, SelectionProblem, select_by_branches
from fuseflow.autoscheduler.budget.solver import select


def random_problem(seed: int) -> SelectionProblem:
    rng = np.random.default_rng(seed)
    components = int(rng.integers(1, 4))

    def option() -> Option:
        return Option(float(rng.integers(1, 9)), tuple(int(n) for n in rng.integers(0, 6, components)))

    groups = tuple(tuple(option() for _ in range(rng.integers(1, 5))) for _ in range(rng.integers(1, 5)))
    return SelectionProblem(groups, tuple(int(n) for n in rng.integers(2, 14, components)))


def best_of_all(problem: SelectionProblem) -> Selection | None:
    fitting = []
    for places in product(*(range(len(group)) for group in problem.groups)):
        options = [group[at] for group, at in zip(problem.groups, places, strict=True)]
        used = [sum(option.amounts[n] for option in options) for n in range(len(problem.limits))]
        if all(u <= limit for u, limit in zip(used, problem.limits, strict=True)):
            fitting.append((max(option.cycles for option in options), sum(places), places))
    return min(fitting)[2] if fitting else None


@pytest.mark.parametrize("seed", range(150))
def test_branch_and_bound_finds_the_best(seed: int) -> None:
    problem = random_problem(seed)
    assert select(problem) == select_by_branches(problem) == best_of_all(problem)


def test_cp_sat_gives_the_same_answer() -> None:
    pytest.importorskip("ortools")
    from fuseflow.autoscheduler.budget.cp_sat import select_by_cp_sat

    for seed in range(30):
        problem = random_problem(seed)
        assert select_by_cp_sat(problem) == best_of_all(problem)


def test_lanes_go_where_the_work_is() -> None:
    works = (800.0, 100.0, 100.0)
    groups = tuple(tuple(Option(work / lanes, (lanes,)) for lanes in (1, 2, 4, 8, 16)) for work in works)
    assert select(SelectionProblem(groups, (10,))) == (3, 0, 0)
    assert select(SelectionProblem(groups, (2,))) is None
