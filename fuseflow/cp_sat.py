"""CP-SAT of OR-Tools: exact answers to choices that depend on each other. It runs on one worker from a fixed seed, and its limit
is counted work instead of time.

One kind of problem is a selection of one option from each of several groups that share a budget, so that the slowest selected option is
as fast as possible. Of selections that are equally fast, the one whose numbers have the least sum is taken, and of these the first. So
there is one best selection, and all releases of the solver find it.

It is reached by `pywraplp`. The other module for it, `cp_model`, imports pandas, which takes 0.6 s, and all problems of a search together
take less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import UsageError
from fuseflow.requirements import install_command

EFFORT = 60.0
"""The most work for one answer, in units of CP-SAT's deterministic time, which are about seconds."""
EXACT = 1 << 45
"""Objectives are joined to one while it stays below this, and so is exact in the float64 that OR-Tools takes."""
SETTINGS = "num_workers:1 random_seed:0 cp_model_presolve:false linearization_level:0 symmetry_level:0 max_deterministic_time:"
"""The parameters of CP-SAT. Most problems are so small that simplifying them (presolve) takes longer than solving them."""

Whole = npt.NDArray[np.int64]
Selection: TypeAlias = tuple[int, ...]
"""The number of the option that is selected in each group."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A sum that is to be minimized. `coefficients` has a number for each variable, and the sum is from 0 to `most`."""

    coefficients: Whole
    most: int


class CpSatProblem:
    """Whole numbers from 0 to `bounds`, and their constraints. Raises `UsageError` if OR-Tools cannot be imported."""

    def __init__(self, bounds: Sequence[int]) -> None:
        try:
            from ortools.linear_solver import pywraplp  # loads a large library, which only searches need
        except ImportError as error:
            raise _missing(str(error)) from None
        self._api = pywraplp
        self._solver = pywraplp.Solver.CreateSolver("CP_SAT")
        self._variables = [self._solver.IntVar(0, bound, "") for bound in bounds]

    def require(self, coefficients: dict[int, int], least: float = -inf, most: float = inf) -> None:
        """Add a constraint: a sum of variables is between two limits. `coefficients` gives, by the number of a variable, the
        coefficient of that variable."""
        constraint = self._solver.RowConstraint(least, most, "")
        for number, coefficient in coefficients.items():
            constraint.SetCoefficient(self._variables[number], coefficient)

    def minimize(self, objectives: Sequence[Objective]) -> Whole | None:
        """Return the solution that is best by the first objective, of these the best by the second, and so on. None if there is none, or
        none was found with `EFFORT`. It is the best there is, if `EFFORT` is enough to prove that."""
        best: Whole | None = None
        for objective in _joined(objectives):
            solution = self._minimized(objective)
            if solution is None:
                break
            best = solution
            weighted = {int(n): int(objective.coefficients[n]) for n in np.flatnonzero(objective.coefficients)}
            self.require(weighted, most=int(objective.coefficients @ best))
        return best

    def _minimized(self, objective: Objective) -> Whole | None:
        function = self._solver.Objective()
        function.Clear()
        for number in np.flatnonzero(objective.coefficients):
            function.SetCoefficient(self._variables[number], int(objective.coefficients[number]))
        function.SetMinimization()
        if not self._solver.SetSolverSpecificParametersAsString(f"{SETTINGS}{EFFORT}"):
            raise ValueError(SETTINGS)
        status = self._solver.Solve()
        if status in (self._api.Solver.INFEASIBLE, self._api.Solver.NOT_SOLVED):
            return None
        if status not in (self._api.Solver.OPTIMAL, self._api.Solver.FEASIBLE):
            raise OverflowError(f"CP-SAT refuses a problem with the status {status}")
        return np.array([round(variable.solution_value()) for variable in self._variables], dtype=np.int64)


def require_or_tools() -> None:
    """Raise `UsageError` if OR-Tools is not installed, before a search that may need it begins."""
    if find_spec("ortools") is None:
        raise _missing("it is not installed")


def _joined(objectives: Sequence[Objective]) -> list[Objective]:
    """Return fewer objectives with the same order of solutions: an earlier sum outweighs the largest later one."""
    joined: list[Objective] = []
    for objective in objectives:
        size = objective.most + 1
        if joined and (joined[-1].most + 1) * size <= EXACT:
            last = joined.pop()
            objective = Objective(last.coefficients * size + objective.coefficients, last.most * size + objective.most)
        joined.append(objective)
    return joined


def _missing(reason: str) -> UsageError:
    return UsageError(f"this needs CP-SAT of OR-Tools, which cannot be imported: {reason}", hint=install_command("ortools"))


@dataclass(frozen=True, slots=True)
class Option:
    """An option: the cycles that it takes, and how much of each component of the budget."""

    cycles: float
    amounts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SelectionProblem:
    """Groups of options, preferred ones first, and for each component the limit of the sum over the selected options."""

    groups: tuple[tuple[Option, ...], ...]
    limits: tuple[int, ...]

    def has_room(self, selection: Selection) -> bool:
        """Return whether a selection is within the limits."""
        taken = [group[at].amounts for group, at in zip(self.groups, selection, strict=True)]
        return all(sum(amounts[n] for amounts in taken) <= limit for n, limit in enumerate(self.limits))

    def fastest(self) -> Selection:
        """Return the best selection without limits: of each group the first option as fast as the slowest group can be."""
        cycles = max((min(option.cycles for option in group) for group in self.groups), default=0.0)
        return tuple(next(at for at, option in enumerate(group) if option.cycles <= cycles) for group in self.groups)


def select(problem: SelectionProblem) -> Selection | None:
    """Return the best selection, or None if none is within the limits. CP-SAT is used only if the limits matter. If it reaches
    its limit of work, it returns the best selection so far."""
    if not all(problem.groups):
        return None
    fastest = problem.fastest()
    return fastest if problem.has_room(fastest) else selected_by_cp_sat(problem)


def selected_by_cp_sat(problem: SelectionProblem) -> Selection | None:
    """Return the best selection by CP-SAT. Its first variable is the rank of the slowest group's cycles, and each option has one, too."""
    options = [option for group in problem.groups for option in group]
    ranks = {cycles: rank for rank, cycles in enumerate(sorted({option.cycles for option in options}))}
    solver = CpSatProblem([len(ranks) - 1, *(1 for _ in options)])
    ends = np.cumsum([1, *map(len, problem.groups)]).tolist()
    spans = [range(begin, end) for begin, end in pairwise(ends)]
    for span in spans:
        solver.require(dict.fromkeys(span, 1), least=1, most=1)
        solver.require({0: 1} | {number: -ranks[options[number - 1].cycles] for number in span}, least=0)
    for n, limit in enumerate(problem.limits):
        if sum(max(option.amounts[n] for option in group) for group in problem.groups) > limit:
            solver.require({number: option.amounts[n] for number, option in enumerate(options, 1)}, most=limit)
    slowest, *places = np.zeros((1 + len(spans), ends[-1]), dtype=np.int64)
    slowest[0] = 1
    for span, place in zip(spans, places, strict=True):
        place[span.start : span.stop] = range(len(span))
    most = [len(span) - 1 for span in spans]
    first = Objective(slowest, len(ranks) - 1), Objective(np.sum(places, axis=0), sum(most))
    solution = solver.minimize([*first, *map(Objective, places, most)])
    return None if solution is None else tuple(int(solution[span.start : span.stop].argmax()) for span in spans)
