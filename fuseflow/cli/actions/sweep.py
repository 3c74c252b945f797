"""The actions of the commands of `fuseflow sweep`, which `cli/sweep.py` declares."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import click

from fuseflow.cli import progress
from fuseflow.cli.common import console, print_lines, require_writable, require_writable_file, say, write_out
from fuseflow.cli.progress import terminal_bar, working
from fuseflow.errors import UsageError, visible
from fuseflow.filesystem import replace_file
from fuseflow.interface import sweeps
from fuseflow.report import sweep_table as tables
from fuseflow.report.sweep_plot import write_figures as draw
from fuseflow.report.sweep_status import count_progress, status_lines
from fuseflow.report.tables import print_table
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
        if not quiet:
            for line in status_lines(opened, tally):
                say(line)
    if tally.failed:
        how_many = "all" if tally.failed == tally.done else f"{tally.failed:,} of {tally.done:,}"
        click.echo(visible(f"{how_many} points failed; `fuseflow sweep show {file}` shows why"), err=True)
        raise click.exceptions.Exit(1)


def _run(opened: Sweep, tally: SweepProgress, jobs: int | None, memory: int | None, scheduler: str | None, quiet: bool) -> None:
    try:
        with working("connecting", quiet or scheduler is None):
            connection = sweeps.make_runner(jobs, memory, scheduler)
        with closing(connection) as runner, _sweep_progress(tally, opened.space.axes, quiet) as report:
            opened.run(runner, report)
    except KeyboardInterrupt:
        done = count_progress(opened)
        click.echo(f"interrupted: {done.done} of {done.total} points are kept; the same command goes on", err=True)
        raise click.exceptions.Exit(130) from None


def status(file: Path, store: Path | None) -> None:
    with sweeps.open_results(file, store) as opened:
        for line in status_lines(opened, count_progress(opened)):
            say(line)


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
) -> None:
    to_file = output is not None and str(output) != "-"
    if form == "parquet" and not to_file:
        raise UsageError("Parquet is binary, not for a terminal", hint="write it to a file: `-o FILE.parquet`")
    if form == "table" and to_file:
        raise UsageError("a table is for the terminal", hint="write `--format csv` or `--format parquet`")
    require_writable_file(output)
    with sweeps.open_results(file, store) as opened:
        lines = tables.records(opened, clocked=timing, others=others)
        lines = tables.sort_lines(tables.filter_lines(lines, where), sort, tables.objective_column(opened))
        lines = replace(lines, lines=lines.lines[:top])
    if form == "csv":
        write_out(tables.csv_text(lines), output)
    elif form == "parquet" and output is not None:
        with replace_file(output) as temporary:
            tables.write_parquet(lines, temporary)
    elif not lines.lines:
        click.echo("no line is like that")
    else:
        out = console()
        if same := tables.shared_values(lines):
            print_lines(out, [same])
        print_table(out, tables.sweep_table(lines))


def plot(file: Path, store: Path | None, output: Path, form: str) -> None:
    require_writable(output, directory=True)
    with sweeps.open_results(file, store) as opened:
        for drawn in draw(opened, output, form):
            say(f"written to {drawn.path}" if drawn.path else f"no figure `{drawn.name}`: {drawn.why_not}")


@contextmanager
def _sweep_progress(tally: SweepProgress, axes: tuple[str, ...], quiet: bool) -> Iterator[PointReport]:
    """Yield a callback for `Sweep.run` that counts points and shows the progress: a bar on a terminal, else a line now and then."""
    err = console(stderr=True)
    with terminal_bar(None if quiet else err, "spinner", "wide bar", "activity", "passed") as bar:
        task_id = None if bar is None else bar.add_task(tally.line(axes), total=tally.total, completed=tally.done)
        shown = time.monotonic()

        def report(place: LabeledPoint, task: Task, outcome: TaskOutcome) -> None:
            nonlocal shown
            tally.note(place, task.mode, outcome)
            if bar is not None and task_id is not None:
                bar.update(task_id, completed=tally.done, description=tally.line(axes))
            elif not quiet and time.monotonic() > shown + progress.LOG_SECONDS:
                shown = time.monotonic()
                print_lines(err, [tally.line(axes)])

        yield report
