"""What schedules earn: the table of both conventions, a lever at a time, and cycles over lanes, for the four families of models.

    python evaluation/budget.py --store budget.jsonl --data-dir DIR [--only gcn] [--machine rda] [--top 1]
    python evaluation/budget.py --store budget.jsonl --take choice.json --only gcn --convention equal
    python evaluation/budget.py --store budget.jsonl --table [--plot budget.svg]

`unlimited` has one unit for each operator, as published factors count: the fastest partition without lanes, against single operators
without lanes. `equal` has the same budget for both: the fastest schedule within it, against the best unfused one within it. A row of the
store is a model on a machine under a convention with some levers; a run that is killed goes on with those that are not there yet.
`--take` makes a row of what `fuseflow schedule --json` wrote.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import click
from auto import Workload, source_of
from pictures import blank_figure, save
from store import DATA_DIR, STORE, append, load

from fuseflow.autoscheduler.autoscheduler import choose_schedule
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.autoscheduler.budget.trials import BudgetChoice
from fuseflow.autoscheduler.search_defaults import ALLOWED
from fuseflow.frontend.sources import Source
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

WORKLOADS = (
    Workload("gcn", "cora", files=True),
    Workload("graphsage", "cora", files=True),
    Workload("sae", "images:imagenet"),
    Workload("gpt", "bigbird:block=8,length=64,features=48", {"decoders": 1, "heads": 3}, budget="large"),
)
CONVENTIONS = ("unlimited", "equal", "equal, all levers")
"""What is compared: one unit for each operator; the same budget for both; and formats of inputs and the order of products as further
levers."""


@dataclass(frozen=True, slots=True)
class Row:
    """The chosen schedule and the unfused program of a model under a convention. Cycles are null where nothing was simulated."""

    key: str
    model: str
    data: str
    machine: str
    convention: str
    budget: str
    fused: str
    estimate: float
    unfused_estimate: float
    cycles: int | None
    unfused_cycles: int | None
    bound: float
    relaxed: float
    busy: dict[str, float]
    levers: dict[str, float]
    curve: list[tuple[int, float]]
    schedule: str
    seconds: float | None


def unlimited(work: Workload, source: Source, machine: Machine, top: int) -> Row:
    """What `--fuse auto` takes, against single operators, both without lanes."""
    start = time.process_time()
    choice = choose_schedule(source, Schedule.fuse("auto"), machine, top=top)
    chosen = next(trial for trial in choice.partitions if trial.chosen)
    alone = next(trial for trial in choice.partitions if trial.name == "none")
    cycles = alone.cycles
    if top and cycles is None:
        from fuseflow.compiler import compile_source

        cycles = compile_source(source, alone.schedule, machine).run(check=False, execute=choice.cache).cycles
    estimate, unfused = chosen.estimate or 0.0, alone.estimate or 0.0
    seconds = round(time.process_time() - start, 1)
    schedule = choice.schedule.to_yaml()
    return _row(
        work, machine, "unlimited", chosen.name, estimate, unfused, chosen.cycles, cycles, 0.0, 0.0, {}, {}, [], schedule, seconds
    )


def equal(work: Workload, source: Source, machine: Machine, top: int, convention: str) -> Row:
    """The fastest schedule within a budget, against the best unfused one within it."""
    start = time.process_time()
    allow = frozenset(ALLOWED) if convention.endswith("all levers") else frozenset[str]()
    request = BudgetRequest(Budget.parse(work.budget), ("mul",) if not allow else (), allow, top)
    choice = budget_schedule(source, Schedule.lower(writers="once"), machine, request)
    return _row(work, machine, convention, *_numbers(choice), round(time.process_time() - start, 1))


def taken(work: Workload, convention: str, file: Path) -> Row:
    """What `fuseflow schedule --json` wrote of a model."""
    choice: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if choice["budget"] != Budget.parse(work.budget).to_json():
        raise click.UsageError(f"`{file}` has the budget {choice['budget']}, but {work.name} is compared within `{work.budget}`")
    chosen = next(trial for trial in choice["trials"] if trial["chosen"])
    alone = next(trial for trial in choice["trials"] if trial["is_unfused"])
    levers = {name: without for name, without in choice["levers"].items() if without is not None}
    curve = [(point["resources"]["mul"], point["cycles"] or point["estimate"]) for point in choice["pareto"]]
    numbers = (chosen["name"], chosen["estimate"], alone["estimate"], chosen["cycles"], alone["cycles"])
    bounds = choice["bound"], choice["relaxed"], choice["busy"]
    values = (*numbers, *bounds, levers, curve, choice["schedule"], None)
    return _row(work, load_machine(choice["machine"]), convention, *values)


def _numbers(choice: BudgetChoice) -> tuple[Any, ...]:
    chosen, alone = choice.chosen, choice.unfused
    assert alone is not None
    levers = {lever.name: lever.without for lever in choice.levers if lever.without < inf}
    curve = [(point.trial.resources.mul, point.cycles) for point in choice.pareto]
    numbers = (chosen.name, chosen.estimate, alone.estimate, chosen.cycles, alone.cycles, choice.bound, choice.relaxed)
    return (*numbers, dict(choice.busy), levers, curve, choice.schedule.to_yaml())


def _row(work: Workload, machine: Machine, convention: str, *values: Any) -> Row:
    budget = work.budget if convention != "unlimited" else ""
    return Row(key_of(work, machine.name, convention), work.name, work.data, machine.name, convention, budget, *values)


def key_of(work: Workload, machine: str, convention: str) -> str:
    return f"{machine}/{work.name}/{work.data}/{convention}"


def table(rows: Iterable[Row]) -> str:
    """Markdown: a line for each model and convention. A factor is of simulations where there are any, else of estimates (~)."""
    lines = [
        "| model | machine | convention | budget | unfused | chosen | factor | to the bound | busiest | chosen regions |",
        "|---|---|---|---|---:|---:|---:|---:|---|---|",
    ]
    for row in rows:
        simulated = row.cycles is not None and row.unfused_cycles is not None
        unfused, chosen = (row.unfused_cycles, row.cycles) if simulated else (row.unfused_estimate, row.estimate)
        mark = "" if simulated else "~"
        busy = max(row.busy.items(), key=lambda one: one[1], default=("", 0.0))
        cells = [
            row.model,
            row.machine,
            row.convention,
            row.budget,
            f"{mark}{unfused:,.0f}",
            f"{mark}{chosen:,.0f}",
            f"{mark}{unfused / chosen:.2f}",
            f"{row.estimate / row.relaxed:.2f}" if row.relaxed else "",
            f"{busy[0]} {busy[1]:.0%}" if row.busy else "",
            f"`{row.fused.replace(' | ', ', ')[:60]}`",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def lever_table(rows: Iterable[Row]) -> str:
    """Markdown: how many times the estimate is without each lever."""
    kept = [row for row in rows if row.levers]
    names = list(dict.fromkeys(name for row in kept for name in row.levers))
    lines = [
        f"| model | machine | convention | {' | '.join(f'without {name}' for name in names)} |",
        f"|---|---|---|{'---:|' * len(names)}",
    ]
    for row in kept:
        factors = [f"{row.levers[name] / row.estimate:.2f}" if name in row.levers else "" for name in names]
        lines.append(f"| {row.model} | {row.machine} | {row.convention} | {' | '.join(factors)} |")
    return "\n".join(lines) + "\n"


def plot(rows: Iterable[Row], file: Path) -> None:
    """Draw the cycles of each model over multipliers."""
    figure = blank_figure(6, 4)
    axes = figure.subplots()
    for row in rows:
        if row.curve:
            axes.plot(*zip(*row.curve, strict=True), "o-", label=f"{row.model} ({row.machine})")
    axes.set(xscale="log", yscale="log", xlabel="multipliers", ylabel="cycles")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize="small")
    save(figure, file)


@click.command()
@STORE
@DATA_DIR
@click.option("--only", multiple=True, help="Models; all without it.")
@click.option("--convention", "conventions", multiple=True, type=click.Choice(CONVENTIONS), help="All without it.")
@click.option("--machine", default="rda", show_default=True)
@click.option("--top", default=1, show_default=True, help="How many of the best by estimate are simulated; 0: none.")
@click.option(
    "--take", type=click.Path(path_type=Path, exists=True), help="Make a row of a JSON file of `fuseflow schedule`, run nothing."
)
@click.option("--table", "show", is_flag=True, help="Print the tables, run nothing.")
@click.option("--plot", "image", type=click.Path(path_type=Path), help="Draw cycles over lanes.")
def main(
    store: Path,
    data_dir: Path | None,
    only: tuple[str, ...],
    conventions: tuple[str, ...],
    machine: str,
    top: int,
    take: Path | None,
    show: bool,
    image: Path | None,
) -> None:
    """Compare what is chosen with unfused programs, under both conventions."""
    hardware, known = load_machine(machine), load(store, Row)
    if take is not None:
        if len(only) != 1 or len(conventions) != 1:
            raise click.UsageError("`--take` makes one row: name its model by `--only` and its `--convention`")
        work = next((work for work in WORKLOADS if work.name == only[0]), None)
        if work is None:
            raise click.UsageError(f"no model is called `{only[0]}`: {', '.join(work.name for work in WORKLOADS)}")
        row = taken(work, conventions[0], take)
        known[row.key] = row
        append(store, row)
    for work in WORKLOADS if not show and take is None else ():
        if only and work.name not in only:
            continue
        source = source_of(work, data_dir)
        for convention in conventions or CONVENTIONS:
            key = key_of(work, machine, convention)
            if key not in known:
                make = unlimited if convention == "unlimited" else equal
                arguments = () if convention == "unlimited" else (convention,)
                known[key] = make(work, source, hardware, top, *arguments)
                append(store, known[key])
    rows = [row for row in known.values() if not only or row.model in only]
    click.echo(table(rows), nl=False)
    click.echo(f"\n{lever_table(rows)}", nl=False)
    if image is not None:
        plot(rows, image)


if __name__ == "__main__":
    main()
