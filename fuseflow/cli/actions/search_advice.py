"""What `run --explain` keeps beside the cycles: the command of the run, and how fast the schedule is that a search finds.

The page of the run offers both as commands to copy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from fuseflow.autoscheduler.budget.request import BudgetRequest, SearchProgress
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.cli.command import same_request
from fuseflow.cli.schedule import schedule as schedule_command
from fuseflow.errors import FuseFlowError
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result

BUDGET = "small"
"""The budget of the search."""
MAX_EINSUMS, MAX_FIRINGS = 20, 2_000_000
"""The most Einsums of a program, and firings of its run, for which a search takes seconds. The page of a longer one has the command."""


def advice_json(compiled: Compiled, result: Result, searchable: bool, progress: SearchProgress) -> dict[str, Any]:
    """Return the words of the present command as plain values and, if the program is `searchable`, those of the search, with the cycles
    of what it finds if that takes seconds."""
    context = click.get_current_context()
    values: dict[str, Any] = {"command": ["fuseflow", "run", *same_request(context, context.command, "Output")]}
    if not searchable:
        return values
    search = [*same_request(context, schedule_command, "Schedule", "Output"), "--budget", BUDGET, "-o", "best.yaml"]
    then = [*same_request(context, context.command, "Schedule", "Output"), "--schedule", "best.yaml"]
    return {
        **values,
        "search": {
            "budget": BUDGET,
            "command": ["fuseflow", "schedule", *search],
            "then": ["fuseflow", "run", *then],
            "cycles": _searched(compiled, result, progress),
        },
    }


def _searched(compiled: Compiled, result: Result, progress: SearchProgress) -> int | None:
    """Return the cycles of the schedule that the search finds, which is run; None for what is too large, or cannot be searched."""
    firings = sum(region.times * region.simulation.firings for region in result.regions)
    if len(compiled.source.program.einsums) > MAX_EINSUMS or firings > MAX_FIRINGS:
        return None
    free = replace(
        compiled.schedule, fuse_regions=("best",), regions=(), orders=(), parallel=(), splits=(), depths=(), recomputed=()
    )
    try:
        choice = budget_schedule(
            compiled.source, free, compiled.machine, BudgetRequest(Budget.parse(BUDGET), top=1), progress=progress
        )
    except FuseFlowError:
        return None
    return choice.chosen.cycles
