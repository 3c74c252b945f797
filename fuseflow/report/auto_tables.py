"""The trials of the autoscheduler as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from rich.markup import escape
from rich.table import Table

from fuseflow.autoscheduler.autoscheduler import PartitionTrial, ScheduleChoice
from fuseflow.autoscheduler.orders import OrderTrial
from fuseflow.autoscheduler.plans import PlanTrial
from fuseflow.report.order_tables import assumed_line
from fuseflow.report.tables import plain_table

Trial: TypeAlias = PartitionTrial | PlanTrial | OrderTrial
SHOWN_PLANS = 8
"""The number of best plans by estimate that are shown, beside the simulated plans."""
MAX_NAME_WIDTH = 60
"""The number of letters that are shown of the names of a partition's regions."""

_SECOND_COLUMNS = {"partition": ("regions", 1), "operand": ("stored as", 2), "region": ("order", 2)}
"""By the name of the first column of a table: the name of its second column, and the number of its first column with numbers."""


def auto_lines(choice: ScheduleChoice) -> Iterator[str | Table]:
    """Yield the lines, which are rich markup, and the tables of the report."""
    if choice.without_data and (assumed := assumed_line(choice.compiled)):
        yield assumed
    searched = f"{choice.units} {choice.cut} to cut between, {choice.ranges} regions estimated " if choice.cut else "estimated "
    yield f"auto: {searched}on {escape(choice.compiled.machine.name)}"
    if choice.partitions:
        yield _table("partition", choice, [(_short(t), f"{t.regions}", t) for t in choice.partitions])
    if choice.plans:
        yield from _plan_lines(choice)
    if choice.orders:
        yield _table("region", choice, [(escape(t.region), ",".join(t.order), t) for t in choice.orders])
    if not choice.top:
        yield "chosen by estimate: nothing was simulated"


def _plan_lines(choice: ScheduleChoice) -> Iterator[str | Table]:
    """Yield a table of the plans that were simulated and of the best other plans, and how many plans are not shown."""
    ranked = sorted(choice.plans, key=lambda t: (bool(t.refused), t.estimate or 0.0))
    shown = [t for n, t in enumerate(ranked) if n < SHOWN_PLANS or t.cycles is not None or t.chosen or not t.operand]
    yield _table("operand", choice, [(escape(t.operand), escape(t.name), t) for t in shown])
    if len(shown) < len(ranked):
        yield f"{len(ranked) - len(shown):,} more plans were estimated; `--json FILE` has all"


def _table(first: str, choice: ScheduleChoice, rows: list[tuple[str, str, Trial]]) -> Table:
    second, numbers = _SECOND_COLUMNS[first]
    columns = ("estimated\ncycles", *(["cycles"] if choice.top else []), "")
    table = plain_table(first, second, *columns, numbers_from=numbers)
    for name, number, trial in rows:
        estimate = "" if trial.estimate is None else f"{trial.estimate:,.0f}"
        cycles = [] if not choice.top else [_confirmed(trial)]
        note = "chosen" if trial.chosen else escape(trial.refused)
        table.add_row(name, number, estimate, *cycles, note)
    table.columns[-1].justify = "left"
    return table


def _confirmed(trial: Trial) -> str:
    """Return the cycles of a trial as text: exact ones, or sampled ones with their interval; "" if it was not run."""
    if isinstance(trial, PartitionTrial) and trial.sampled is not None:
        return str(trial.sampled)
    return "" if trial.cycles is None else f"{trial.cycles:,}"


def _short(trial: PartitionTrial) -> str:
    name = trial.name
    return escape(name if len(name) <= MAX_NAME_WIDTH else f"{name[: MAX_NAME_WIDTH - 4]} ...")
