"""The same selections by CP-SAT of OR-Tools, for problems with many options. It runs on one worker from a fixed seed, and ends by counting.

Releases have given different answers of equal worth. So the objective is fixed once it is known, and the places of the options decide, one
after the other: there is one answer.
"""

from __future__ import annotations

from typing import Any

from fuseflow.autoscheduler.budget.selection import Selection, SelectionProblem, select_by_branches

EFFORT = 60.0
"""The most work of one solution, in units of CP-SAT's deterministic time."""


def select_by_cp_sat(problem: SelectionProblem) -> Selection | None:
    """Return the best selection, or None if none is within the limits. A solution that takes too much work is left to branch and bound."""
    from ortools.sat.python import cp_model  # an extra, without which this file is still read for its documentation

    levels = problem.levels()
    model = cp_model.CpModel()
    chosen = [[model.new_bool_var("") for _ in group] for group in problem.groups]
    slowest = model.new_int_var(0, max(0, len(levels) - 1), "slowest")
    for group, takes in zip(problem.groups, chosen, strict=True):
        model.add_exactly_one(takes)
        for option, taken in zip(group, takes, strict=True):
            model.add(slowest >= levels.index(option.cycles)).only_enforce_if(taken)
    for n, limit in enumerate(problem.limits):
        pairs = [
            (o.amounts[n], t)
            for group, takes in zip(problem.groups, chosen, strict=True)
            for o, t in zip(group, takes, strict=True)
        ]
        model.add(sum(amount * taken for amount, taken in pairs) <= limit)
    places = [sum(at * taken for at, taken in enumerate(takes)) for takes in chosen]
    for objective in (slowest, sum(places), *places):
        model.minimize(objective)
        solver = _tuned(cp_model.CpSolver())
        status = solver.solve(model)
        if status == cp_model.INFEASIBLE:
            return None
        if status != cp_model.OPTIMAL:
            return select_by_branches(problem)
        model.add(objective == round(solver.objective_value))
    solver = _tuned(cp_model.CpSolver())
    solver.solve(model)
    return tuple(next(at for at, taken in enumerate(takes) if solver.boolean_value(taken)) for takes in chosen)


def _tuned(solver: Any) -> Any:
    """Return the solver with the settings that make it deterministic."""
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = EFFORT
    return solver
