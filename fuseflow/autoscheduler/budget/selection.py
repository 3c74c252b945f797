"""One option from each of several groups that share a budget: the slowest of those chosen is to be as fast as possible.

The lanes of the stages of a region are such groups: each stage takes `work / lanes` cycles, all stages run at once, and their lanes
add up. Of choices that are equally fast, the one with the least sum of places is taken, and of these the first.

CP-SAT of OR-Tools makes the choice, on one worker from a fixed seed, and ends by counting. Its releases have given different answers of
equal worth, so an objective is fixed once its least value is known, and the next one decides: only one answer is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import requires
from typing import Any, TypeAlias

from fuseflow.errors import UsageError

Amounts: TypeAlias = tuple[int, ...]
"""What is taken of each component of the budget."""
Selection: TypeAlias = tuple[int, ...]
"""The place of the option that is taken of each group."""
EFFORT = 60.0
"""The most work for one objective, in units of CP-SAT's deterministic time."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option: the cycles that it takes, and its amounts."""

    cycles: float
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class SelectionProblem:
    """Groups of options, the ones that are preferred first, and what all of them together may take at most."""

    groups: tuple[tuple[Option, ...], ...]
    limits: Amounts


def select(problem: SelectionProblem) -> Selection | None:
    """Return the best selection that is found, or None: none is within the limits, or none was found with `EFFORT`.

    It is the best there is, if `EFFORT` is enough to prove that. Raises `UsageError` if OR-Tools cannot be imported.
    """
    cp_model = _cp_model()
    ranks = {cycles: rank for rank, cycles in enumerate(sorted({o.cycles for group in problem.groups for o in group}))}
    model = cp_model.CpModel()
    chosen = [[model.new_bool_var("") for _ in group] for group in problem.groups]
    taken = [pair for group, takes in zip(problem.groups, chosen, strict=True) for pair in zip(group, takes, strict=True)]
    slowest = model.new_int_var(0, len(ranks), "slowest")
    for takes in chosen:
        model.add_exactly_one(takes)
    for option, take in taken:
        model.add(slowest >= ranks[option.cycles] * take)
    for n, limit in enumerate(problem.limits):
        if limit < sum(max(option.amounts[n] for option in group) for group in problem.groups if group):
            model.add(sum(option.amounts[n] * take for option, take in taken) <= limit)
    places = [sum(at * take for at, take in enumerate(takes)) for takes in chosen]
    selection: Selection | None = None
    for objective in (slowest, sum(places), *places):
        model.minimize(objective)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        solver.parameters.max_deterministic_time = EFFORT
        status = solver.solve(model)
        if status in (cp_model.INFEASIBLE, cp_model.UNKNOWN):
            break
        if status == cp_model.MODEL_INVALID:
            raise OverflowError(model.validate())
        selection = tuple(next(at for at, take in enumerate(takes) if solver.boolean_value(take)) for takes in chosen)
        model.add(objective <= round(solver.objective_value))
    return selection


def _cp_model() -> Any:
    """Return OR-Tools' module, which takes half a second to import."""
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        wanted = next((needed for needed in requires("fuseflow") or () if needed.startswith("ortools")), "ortools")
        raise UsageError(
            f"a schedule within a budget needs OR-Tools, which cannot be imported: {error}", hint=f"pip install '{wanted}'"
        ) from None
    return cp_model
