"""What `run --explain` keeps beside the cycles: the command of the run, and how fast the schedule is that a search finds.

The page of the run offers both as commands to copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.cli.command import ARGUMENTS
from fuseflow.errors import FuseFlowError
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result

BUDGET = "small"
"""The budget of the search."""
MAX_EINSUMS, MAX_FIRINGS = 20, 2_000_000
"""The most Einsums of a program, and firings of its run, for which a search takes seconds. The page of a longer one has the command."""
OUTPUTS = ("-o", "--output", "--json")
"""The options of a run with a value that says where something is written."""
FLAGS = ("--explain", "-q", "--quiet")
DECIDED = (
    "--fuse",
    "--par",
    "--order",
    "--split",
    "--depth",
    "--schedule",
    "--engine",
    "--threads",
    "--jobs",
    "--intermediates",
    *OUTPUTS,
)
"""The options of a run that a search decides, or does not take."""
DECIDED_FLAGS = ("--no-check", "--no-dedup", "--energy", "--resources", *FLAGS)


def advice_json(compiled: Compiled, result: Result, searchable: bool) -> dict[str, Any]:
    """Return the words of the present command as plain values and, if the program is `searchable`, those of the search, with the cycles
    of what it finds if that takes seconds."""
    words = click.get_current_context().meta[ARGUMENTS]
    values: dict[str, Any] = {"command": ["fuseflow", "run", *without(words, OUTPUTS, FLAGS)]}
    if not searchable:
        return values
    search = ["fuseflow", "schedule", *without(words, DECIDED, DECIDED_FLAGS), "--budget", BUDGET, "-o", "best.yaml"]
    then = ["fuseflow", "run", *without(words, (*DECIDED[:6], *OUTPUTS), FLAGS), "--schedule", "best.yaml"]
    return {**values, "search": {"budget": BUDGET, "command": search, "then": then, "cycles": _searched(compiled, result)}}


def _searched(compiled: Compiled, result: Result) -> int | None:
    """Return the cycles of the schedule that the search finds, which is run; None for what is too large, or cannot be searched."""
    firings = sum(region.times * region.simulation.firings for region in result.regions)
    if len(compiled.source.program.einsums) > MAX_EINSUMS or firings > MAX_FIRINGS:
        return None
    free = replace(
        compiled.schedule, fuse_regions=("best",), regions=(), orders=(), parallel=(), splits=(), depths=(), recomputed=()
    )
    try:
        choice = budget_schedule(compiled.source, free, compiled.machine, BudgetRequest(Budget.parse(BUDGET), top=1))
    except FuseFlowError:
        return None
    return choice.chosen.cycles


def without(words: Sequence[str], valued: Iterable[str], flags: Iterable[str]) -> list[str]:
    """Return the words of a command without some options, those with a value and flags.

    >>> without(["m.py", "--fuse", "full", "-oDIR", "--json=x", "-q", "--par", "i=4"], ("--fuse", "-o", "--json"), ("-q",))
    ['m.py', '--par', 'i=4']
    """
    return list(_kept(words, tuple(valued), tuple(flags)))


def _kept(words: Sequence[str], valued: tuple[str, ...], flags: tuple[str, ...]) -> Iterator[str]:
    skipped = False
    for word in words:
        if skipped:
            skipped = False
        elif word in valued:
            skipped = True
        elif word not in flags and not any(_holds(word, option) for option in valued):
            yield word


def _holds(word: str, option: str) -> bool:
    """Return whether a word is an option with its value, as `--json=FILE` or `-oDIR`."""
    if option.startswith("--"):
        return word.startswith(f"{option}=")
    return word.startswith(option) and not word.startswith("--") and len(word) > len(option)
