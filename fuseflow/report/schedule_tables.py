"""Chosen schedules as tables and lines: the trials of `auto`, and the choice under a budget with its share of the budget and its limit."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TypeAlias, assert_never

from rich.markup import escape
from rich.table import Table

from fuseflow.autoscheduler.autoscheduler import PartitionTrial, ScheduleChoice
from fuseflow.autoscheduler.budget.trials import BudgetChoice, ParetoPoint, Trial
from fuseflow.autoscheduler.operand_plans import PlanTrial
from fuseflow.autoscheduler.orders import OrderTrial
from fuseflow.estimate.graph_cycles import Bound
from fuseflow.report.array_tables import assumed_lines, placed_cells
from fuseflow.report.order_tables import assumed_line
from fuseflow.report.quantities import bytes_text
from fuseflow.report.tables import plain_table
from fuseflow.resources import COMPONENTS
from fuseflow.resources.budget import BYTES, LIVE, amount_text
from fuseflow.schedule import Schedule
from fuseflow.schedule.section import split_fifo, split_lanes

AutoTrial: TypeAlias = PartitionTrial | PlanTrial | OrderTrial
SHOWN_PLANS = 8
"""The number of best plans by estimate that are shown, beside the simulated plans."""
MAX_NAME_WIDTH = 60
"""The number of letters that are shown of the names of regions that are listed together."""
BUSY = 0.5
"""Where no resource is busy for this share of the time, the limit is what nodes wait for."""


def auto_lines(choice: ScheduleChoice) -> Iterator[str | Table]:
    """Yield the lines, which are rich markup, and the tables of the report."""
    if choice.without_data and (assumed := assumed_line(choice.compiled)):
        yield assumed
    searched = f": {choice.units} {choice.cut} to cut between, {choice.ranges} regions estimated" if choice.cut else ""
    yield f"auto, searched for {escape(choice.compiled.machine.name)}{searched}"
    if choice.partitions:
        yield _auto_table(("partition", "regions"), 1, choice, [(_short(t.name), f"{t.regions}", t) for t in choice.partitions])
    if choice.plans:
        yield from _plan_lines(choice)
    if choice.orders:
        yield _auto_table(("region", "order"), 2, choice, [(escape(t.region), ",".join(t.order), t) for t in choice.orders])
    if not choice.top:
        yield "chosen by estimate: nothing was simulated"


def _plan_lines(choice: ScheduleChoice) -> Iterator[str | Table]:
    """Yield a table of the plans that were simulated and of the best other plans, and how many plans are not shown."""
    ranked = sorted(choice.plans, key=lambda t: (bool(t.refused), t.estimate or 0.0))
    shown = [t for n, t in enumerate(ranked) if n < SHOWN_PLANS or t.cycles is not None or t.chosen or not t.operand]
    yield _auto_table(("operand", "stored as"), 2, choice, [(escape(t.operand), escape(t.name), t) for t in shown])
    if len(shown) < len(ranked):
        yield f"{len(ranked) - len(shown):,} more plans were estimated; `--json FILE` has all"


def _auto_table(
    named: tuple[str, str], numbers_from: int, choice: ScheduleChoice, rows: list[tuple[str, str, AutoTrial]]
) -> Table:
    """Return a table of trials, whose first two columns are `named`."""
    table = plain_table(*named, "estimated\ncycles", *(["cycles"] if choice.top else []), "", numbers_from=numbers_from)
    for name, number, trial in rows:
        estimate = "" if trial.estimate is None else f"{trial.estimate:,.0f}"
        exact = "" if trial.cycles is None else f"{trial.cycles:,}"
        sampled = trial.sampled if isinstance(trial, PartitionTrial) else None
        cycles = [exact if sampled is None else str(sampled)] if choice.top else []
        note = "chosen" if trial.chosen else escape(trial.refused)
        table.add_row(name, number, estimate, *cycles, note)
    table.columns[-1].justify = "left"
    return table


def budget_lines(choice: BudgetChoice) -> Iterator[str | Table]:
    """Yield the lines, which are rich markup, and the tables of the report."""
    machine = escape(choice.compiled.machine.name)
    yield (
        f"searched for {machine}: {choice.units} {choice.cut} to cut between, {choice.searched:,} regions with their orders, "
        f"{choice.lowered:,} choices of lanes estimated"
    )
    yield _trial_table(choice)
    yield ""
    yield _decision_table(choice)
    yield from (escape(line) for placed in [*choice.placed.values()][:1] for line in assumed_lines(placed.array))
    yield from _storage_lines(choice.schedule)
    yield ""
    yield _resource_table(choice)
    yield ""
    yield from _bound_lines(choice)
    if choice.levers:
        yield ""
        yield _lever_table(choice)
    for component in dict.fromkeys(name for point in choice.pareto for name in point.limits):
        yield ""
        yield curve_table(component, [point for point in choice.pareto if component in point.limits])


def _trial_table(choice: BudgetChoice) -> Table:
    simulated = any(trial.cycles is not None for trial in choice.trials)
    loaded = any(trial.loading for trial in choice.trials)
    columns = (
        "estimated\ncycles",
        *(["cycles"] if simulated else []),
        *(["loading\ncycles"] if loaded else []),
        "speedup",
        "",
    )
    table = plain_table("fused", *columns, numbers_from=1)
    for trial in choice.trials:
        cycles = [] if not simulated else ["" if trial.cycles is None else f"{trial.cycles:,}"]
        estimate = "" if trial.estimate == inf else f"{trial.estimate:,.0f}"
        loading = [f"{sum(trial.loading.values()):,}" if trial.loading else ""] if loaded else []
        note = "chosen" if trial.chosen else escape(trial.refused)
        table.add_row(_short(trial.name), estimate, *cycles, *loading, _times(trial, choice.unfused), note)
    table.columns[-1].justify = "left"
    return table


def _decision_table(choice: BudgetChoice) -> Table:
    """Return a table of the choices for each region: the order of its loops, its lanes, with a dot between a stage and its index,
    and the slots of its FIFOs where they are not the default of the machine. On an array it has the tiles of each kind, the hops of the
    longest link, and the cycles of loading."""
    on_array = [(*placed.array.kinds, "longest\nhops", "loading\ncycles") for placed in choice.placed.values()][:1]
    table = plain_table(
        "chosen region", "order", "lanes", "slots", *(name for names in on_array for name in names), numbers_from=3
    )
    schedule = choice.schedule
    lanes = [(*split_lanes(name), count) for name, count in schedule.parallel]
    for region in choice.compiled.regions:
        own = [f"{stage}.{i}={count}" if stage else f"{i}={count}" for of, stage, i, count in lanes if of == region.name]
        slots = [f"{depth:,}" for name, depth in schedule.depths if split_fifo(name) == (region.name, "")]
        order = ", ".join(region.fused.order)
        placed = placed_cells(choice.placed[region.name], choice.chosen.loading[region.name]) if on_array else ()
        table.add_row(_short(region.name), *map(escape, (order, ", ".join(own), "".join(slots))), *placed)
    return table


def _storage_lines(schedule: Schedule) -> Iterator[str]:
    """Yield the settings of a schedule for tensors and products, one line for each kind that it sets."""
    said = {
        "formats": [f"{name} {format}" for name, format in schedule.formats],
        "blocks": [f"{name} {'x'.join(map(str, sizes))}" for name, sizes in schedule.blocks],
        "products": [f"{name} = {chain}" for name, chain in schedule.associations],
        "buffers": [f"{name} {amount_text('buffer', size)}" for name, size in schedule.buffers],
        "places": [f"{name} in the {memory}" for name, memory in schedule.memories],
        "tiles": [f"{size:,} coordinates of {index}" for index, size in schedule.tiles],
        "preloads": [f"{name} by {ports} ports" for name, ports in schedule.preloads],
        "splits": [f"{name} in runs of {size}" for name, size in schedule.splits],
        "computed again": list(schedule.recomputed),
    }
    for kind, entries in said.items():
        if entries:
            yield escape(f"{kind}: {', '.join(entries)}")


def _times(trial: Trial, unfused: Trial | None) -> str:
    """Return the speed-up of a trial over the unfused program as text: by simulations if both have one, by estimates if neither
    has one, else ""."""
    if unfused is None or unfused.estimate == inf or trial.estimate == inf:
        return ""
    if trial.cycles is not None and unfused.cycles is not None:
        return f"{unfused.cycles / trial.cycles:.2f}"
    return "" if trial.cycles is not None or unfused.cycles is not None else f"{unfused.estimate / trial.estimate:.2f}"


def _resource_table(choice: BudgetChoice) -> Table:
    """Return a table of the components: the most that a region takes, the budget, and the share of the time in which lanes work."""
    table = plain_table("", "takes", "budget", "share", "busy", numbers_from=1)
    resources, shares = choice.chosen.resources, choice.budget.shares(choice.chosen.resources)
    for name in (*COMPONENTS, *(kind for kind, _ in resources.tiles)):
        used = resources.amount(name)
        limit = choice.budget.limits.get(name)
        busy = f"{choice.busy[name]:.0%}" if name in choice.busy else ""
        budgeted = ["", ""] if limit is None else [amount_text(name, limit), f"{shares[name]:.0%}"]
        table.add_row(name, "unbounded" if used is None else _amount(name, used), *budgeted, busy)
    if (live := choice.budget.live) is not None:
        used = round(choice.chosen.live_bytes)
        table.add_row(LIVE, bytes_text(used), amount_text(LIVE, live), f"{used / live:.0%}", "")
    return table


def _amount(component: str, amount: int) -> str:
    return bytes_text(amount) if component in BYTES else f"{amount:,}"


def _bound_lines(choice: BudgetChoice) -> Iterator[str]:
    name = max(choice.busy, key=lambda name: choice.busy[name])
    share = f"{choice.busy[name]:.0%} of the cycles"
    at_best = f"; working in all of them, it would take {choice.to_roofline:.2f} times fewer" if choice.busy[name] else ""
    if choice.busy[name] >= BUSY:
        yield f"limited by {name}, which works in {share}{at_best}"
    else:
        slowest = f"{_short(choice.slowest.name)} ({choice.slowest_share:.0%} of the cycles)"
        yield f"the slowest region, {slowest}, is limited by {escape(limit_text(choice.slowest.bound))}, as estimated"
        yield f"no resource is the limit: {name}, the busiest, works in {share}{at_best}"
    estimated = "" if choice.chosen.cycles is None else "the estimate is "
    yield (
        f"{estimated}{choice.gap:.2f} times the lower bound over all numbers of lanes that were searched, and "
        f"{choice.chosen.estimate / choice.relaxed if choice.relaxed else 1:.2f} times the roofline (work / lanes, or bytes / bandwidth)"
    )
    if choice.stopped:
        yield "the limit of time ended the search: a longer one may find better schedules"
    if choice.chosen.cycles is None:
        yield "chosen by estimate: nothing was simulated"


def limit_text(bound: Bound) -> str:
    """Return what limits a region, in words."""
    match bound.limit:
        case "compute":
            return f"the throughput of `{bound.node}`, the busiest node"
        case "imbalance":
            return "lanes with unequal work"
        case "FIFOs":
            return "full FIFOs" if bound.fifo is None else f"full FIFOs between `{bound.fifo[0]}` and `{bound.fifo[1]}`"
        case "control":
            return "latency, from the first tokens until the last ones are written"
        case "memory" if bound.memory < bound.waits:
            return "the latency of the memory, for whose answers a port waits"
        case "memory":
            return "the bandwidth of the memory"
        case unknown:
            assert_never(unknown)


def _lever_table(choice: BudgetChoice) -> Table:
    """Return a table of the expected cycles without each kind of decision."""
    table = plain_table("without", "estimated\ncycles", "times", numbers_from=1)
    for lever in choice.levers:
        cells = ("no room", "") if lever.without == inf else (f"{lever.without:,.0f}", f"{lever.without / choice.expected:.2f}")
        table.add_row(lever.name, *cells)
    return table


def curve_table(component: str, points: list[ParetoPoint]) -> Table:
    """Return a table of a curve: the schedules with the fewest cycles, each with as much of a component."""
    table = plain_table(component, "cycles", "", "fused", numbers_from=0)
    for point in points:
        used = getattr(point.trial.resources, component)
        simulated = "" if point.trial.cycles is not None else "estimated"
        table.add_row(f"{used or 0:,}", f"{point.cycles:,.0f}", simulated, _short(point.trial.name))
    for column in table.columns[2:]:
        column.justify = "left"
    return table


def _short(name: str) -> str:
    return escape(name if len(name) <= MAX_NAME_WIDTH else f"{name[: MAX_NAME_WIDTH - 4]} ...")
