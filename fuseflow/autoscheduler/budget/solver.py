"""The solver of selections: CP-SAT for large ones, if it is installed, and else branch and bound. The answers are equal."""

from __future__ import annotations

from importlib.util import find_spec

from fuseflow.autoscheduler.budget.selection import Selection, SelectionProblem, select_by_branches

LARGE = 400
"""A problem of more options is given to CP-SAT."""


def select(problem: SelectionProblem) -> Selection | None:
    """Return the best selection, or None if none is within the limits."""
    if sum(map(len, problem.groups)) > LARGE and find_spec("ortools") is not None:
        from fuseflow.autoscheduler.budget.cp_sat import select_by_cp_sat  # an extra, which takes a second to import

        return select_by_cp_sat(problem)
    return select_by_branches(problem)
