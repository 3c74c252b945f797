"""The actions of the commands of `fuseflow sweep`, which `cli/sweep.py` declares."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import click

from fuseflow.cli import progress
from fuseflow.cli.common import JsonFile, console, print_lines, require_writable, require_writable_file, write_out
from fuseflow.cli.progress import terminal_bar, working
from fuseflow.errors import UsageError, visible
from fuseflow.filesystem import replace_file
from fuseflow.interface import sweeps
from fuseflow.report import sweep_table as tables
from fuseflow.report.sweep_plot import FigureFile
from fuseflow.report.sweep_plot import write_figures as draw
from fuseflow.report.sweep_table import count_progress, status_json, status_lines
from fuseflow.report.table_width import print_table
from fuseflow.sweep.design_space import DesignSpace, LabeledPoint
from fuseflow.sweep.point import Task, TaskOutcome
from fuseflow.sweep.sweep import PointCallback as PointReport
from fuseflow.sweep.sweep import Sweep, SweepProgress


def run(
    file: Path,
    store: Path | None,
    jobs: int | None,
    memory: str | None,
    scheduler: str | None,
    again: tuple[str, ...],
    no_runs: bool,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    sweeps.refuse_kept_runs(again, no_runs)
    limit, path = sweeps.memory_limit(jobs, memory, scheduler), store or sweeps.default_store(file)
    with sweeps.open_sweep(DesignSpace.of(file), path, again, not no_runs) as opened, opened.store.writing():
        tally = count_progress(opened)
        if tally.left or opened.redo:
            _run(opened, tally, jobs, limit, scheduler, quiet)
        opened = replace(opened, redo=frozenset())
        tally = count_progress(opened)
        _tell_status(opened, tally, json_file, quiet)
    if tally.failed:
        how_many = "all" if tally.failed == tally.done else f"{tally.failed:,} of {tally.done:,}"
        click.echo(visible(f"{how_many} points failed; `fuseflow sweep show {file}` shows why"), err=True)
        raise click.exceptions.Exit(1)


def _run(opened: Sweep, tally: SweepProgress, jobs: int | None, memory: int | None, scheduler: str | None, quiet: bool) -> None:
    try:
        with working("connecting", quiet or scheduler is None):
            connection = sweeps.make_runner(jobs, memory, scheduler)
        with closing(connection) as runner, _sweep_progress(tally, opened, runner.jobs, quiet) as report:
            opened.run(runner, report)
    except KeyboardInterrupt:
        done = count_progress(opened)
        click.echo(f"interrupted: {done.done} of {done.total} points are kept; the same command goes on", err=True)
        raise click.exceptions.Exit(130) from None


def status(file: Path, store: Path | None, json_file: JsonFile, quiet: bool) -> None:
    with sweeps.open_results(file, store) as opened:
        _tell_status(opened, count_progress(opened), json_file, quiet)


def _tell_status(opened: Sweep, tally: SweepProgress, json_file: JsonFile, quiet: bool) -> None:
    json_file.write(lambda: status_json(opened, tally))
    if not quiet:
        print_lines(json_file.console(), status_lines(opened, tally))


def show(
    file: Path,
    store: Path | None,
    form: str,
    output: Path | None,
    sort: str | None,
    where: tuple[str, ...],
    top: int | None,
    timing: bool,
    others: bool,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    to_file = output is not None and str(output) != "-"
    if form == "parquet" and not to_file:
        raise UsageError("Parquet is binary, not for a terminal", hint="write it to a file: `-o FILE.parquet`")
    if form == "table" and to_file:
        raise UsageError("a table is for the terminal", hint="write `--format csv` or `--format parquet`")
    if form == "csv" and not to_file and json_file.to_stdout:
        raise UsageError("`--json` and `--format csv` both write standard output", hint="give one of them a file")
    require_writable_file(output)
    with sweeps.open_results(file, store) as opened:
        lines = tables.records(opened, clocked=timing, others=others)
        lines = tables.sort_lines(tables.filter_lines(lines, where), sort, tables.objective_column(opened))
        lines = replace(lines, lines=lines.lines[:top])
    json_file.write(lambda: {"schema": 1, "sweep": str(file), "lines": list(lines.lines)})
    if form == "csv":
        write_out(tables.csv_text(lines), output)
    elif form == "parquet" and output is not None:
        with replace_file(output) as temporary:
            tables.write_parquet(lines, temporary)
    elif quiet:
        return
    elif not lines.lines:
        print_lines(json_file.console(), ["no line is like that"])
    else:
        out = json_file.console()
        if same := tables.shared_values(lines):
            print_lines(out, [same])
        print_table(out, tables.sweep_table(lines))


def plot(file: Path, store: Path | None, output: Path, form: str, json_file: JsonFile, quiet: bool) -> None:
    require_writable(output, directory=True)
    figures = list[FigureFile]()
    with sweeps.open_results(file, store) as opened:
        for drawn in draw(opened, output, form):
            figures.append(drawn)
            if not quiet:
                told = f"written to {drawn.path}" if drawn.path else f"no figure `{drawn.name}`: {drawn.why_not}"
                print_lines(json_file.console(), [told])
    json_file.write(lambda: {"schema": 1, "sweep": str(file), "figures": [figure.to_json() for figure in figures]})


@contextmanager
def _sweep_progress(tally: SweepProgress, opened: Sweep, jobs: int, quiet: bool) -> Iterator[PointReport]:
    """Yield a callback for `Sweep.run` that counts points and shows the progress: a bar on a terminal, else a line now and then."""
    err, axes, mode = console(stderr=True), opened.space.axes, opened.modes[0]
    tally.time.jobs = jobs
    with terminal_bar(None if quiet else err, "spinner", "wide bar", "activity", "passed") as bar:
        task_id = None if bar is None else bar.add_task(tally.line(axes), total=tally.total, completed=tally.done)
        shown = time.monotonic()

        def report(place: LabeledPoint, task: Task, outcome: TaskOutcome) -> None:
            nonlocal shown, mode
            if task.mode != mode:  # of `prune`: the simulations are known now
                mode = task.mode
                tally.take_tasks(count_progress(opened))
            tally.note(place, task.mode, outcome)
            if bar is not None and task_id is not None:
                bar.update(task_id, total=tally.total, completed=tally.done, description=tally.line(axes))
            elif not quiet and time.monotonic() > shown + progress.LOG_SECONDS:
                shown = time.monotonic()
                print_lines(err, [tally.line(axes)])

        yield report
