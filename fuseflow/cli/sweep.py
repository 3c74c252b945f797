"""The command group `fuseflow sweep`, which compares schedules, data and machines point by point."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import FILE, console, quiet_option, require_writable, say, write_out
from fuseflow.cli.progress import working
from fuseflow.cli.sweep_progress import sweep_progress
from fuseflow.errors import SweepError, UsageError, visible
from fuseflow.filesystem import replace_file
from fuseflow.report import sweep_table as tables
from fuseflow.report.sweep_plot import IMAGE_FORMATS
from fuseflow.report.sweep_plot import write_figures as draw
from fuseflow.report.sweep_status import count_progress, status_lines
from fuseflow.report.tables import print_table
from fuseflow.run.cores import cores
from fuseflow.sweep import Pool, Store, Sweep, build_space, read_sweep
from fuseflow.sweep.progress import SweepProgress
from fuseflow.sweep.runner import Runner


class DefaultCommandGroup(click.Group):
    """A command group in which `run` may be left out: its arguments may stand in the place of a command name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help", "--debug"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=DefaultCommandGroup, short_help="Compare schedules on data and machines.")
@debug_option
def sweep() -> None:
    """Estimate or simulate every point of a sweep file: schedules x data x machines.

    `fuseflow sweep FILE` is short for `fuseflow sweep run FILE`.
    """


def sweep_options(command: Any) -> Any:
    """Add the file of a sweep, and the option of where its results are."""
    store = click.option("--store", metavar="FILE", type=FILE, help="Where results are kept.  [default: out/NAME.sqlite]")
    return click.argument("file", type=FILE)(store(command))


@contextmanager
def open_sweep(file: Path, store: Path | None, must_exist: bool, again: tuple[str, ...] = ()) -> Iterator[Sweep]:
    """Open a sweep with its store. Raises `SweepError` if it `must_exist` and has no results."""
    description = read_sweep(file)
    points = build_space(description)
    path = store or Path("out") / f"{file.stem}.sqlite"
    if must_exist and not path.exists():
        raise SweepError(
            f"there are no results in `{path}`", hint=f"`fuseflow sweep {file}` makes them, or name them: `--store FILE`"
        )
    with Store.open(path) as opened:
        yield Sweep(description, points, opened, frozenset(again))


@sweep.command(cls=StrictCommand, short_help="Do what is left of a sweep.")
@sweep_options
@click.option("--jobs", metavar="N", type=click.IntRange(min=1), help="Points at a time.  [default: the cores of this machine]")
@click.option("--memory", metavar="SIZE", help="Memory of all of them together, as in 8GB.  [default: most of what is free]")
@click.option("--scheduler", metavar="ADDRESS", help="Run the points on the Dask cluster of this scheduler.")
@click.option(
    "--again",
    type=click.Choice(["failed", "stale"]),
    multiple=True,
    help="Points that failed, or ran in another fuseflow; repeatable.",
)
@quiet_option
@debug_option
def run(
    file: Path,
    store: Path | None,
    jobs: int | None,
    memory: str | None,
    scheduler: str | None,
    again: tuple[str, ...],
    quiet: bool,
) -> None:
    """Do every point of FILE that is not done yet.

    Each result is kept at once: after an interruption the same command goes on where it was. A point that fails is a row with its error.
    """
    if scheduler is not None and (jobs or memory):
        flag = "--jobs" if jobs else "--memory"
        raise UsageError(f"`{flag}` is for processes of this machine, not for a cluster", hint="set it where its workers start")
    limit = None if memory is None else _bytes(memory)
    with open_sweep(file, store, must_exist=False, again=again) as opened, opened.store.writing():
        tally = count_progress(opened)
        if tally.left or opened.redo:
            _run(opened, tally, jobs or cores(), limit, scheduler, quiet)
        opened = replace(opened, redo=frozenset())
        tally = count_progress(opened)
        if not quiet:
            for line in status_lines(opened, tally):
                say(line)
    if tally.failed:
        how_many = "all" if tally.failed == tally.done else f"{tally.failed:,} of {tally.done:,}"
        click.echo(visible(f"{how_many} points failed; `fuseflow sweep show {file}` shows why"), err=True)
        raise click.exceptions.Exit(1)


def _run(opened: Sweep, tally: SweepProgress, jobs: int, memory: int | None, scheduler: str | None, quiet: bool) -> None:
    try:
        with working("connecting", quiet or scheduler is None):
            connection = _runner(jobs, memory, scheduler)
        with closing(connection) as runner, sweep_progress(tally, opened.space.axes, quiet) as report:
            opened.run(runner, report)
    except KeyboardInterrupt:
        done = count_progress(opened)
        click.echo(f"interrupted: {done.done} of {done.total} points are kept; the same command goes on", err=True)
        raise click.exceptions.Exit(130) from None


def _runner(jobs: int, memory: int | None, scheduler: str | None) -> Runner:
    if scheduler is None:
        return Pool(jobs, memory)
    try:
        from fuseflow.sweep.dask_runner import DaskRunner
    except ImportError:
        raise UsageError("`--scheduler` needs Dask", hint="pip install 'fuseflow[cluster]'") from None
    return DaskRunner(scheduler)


def _bytes(text: str) -> int:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise UsageError(f"`--memory {text}` is no size", hint="as in `--memory 8GB`")
    return int(float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " "))


@sweep.command(cls=StrictCommand, short_help="How far a sweep is, and the best so far.")
@sweep_options
@debug_option
def status(file: Path, store: Path | None) -> None:
    """Say how many points of FILE are done, failed and left, how long that may take, and which are the best so far."""
    with open_sweep(file, store, must_exist=True) as opened:
        for line in status_lines(opened, count_progress(opened)):
            say(line)


@sweep.command(cls=StrictCommand, short_help="The results of a sweep.")
@sweep_options
@click.option("--format", "form", type=click.Choice(["table", "csv", "parquet"]), default="table", show_default=True)
@click.option("-o", "--output", metavar="FILE", type=FILE, help="Write here; - is stdout.")
@click.option("--sort", metavar="COLUMN", help="The least first; -COLUMN: the most.  [default: the best first]")
@click.option("--where", multiple=True, metavar="TEXT", help="Lines for which it holds: fuse=full, cycles<1000; repeatable.")
@click.option("--top", metavar="N", type=click.IntRange(min=1), help="The first N lines only.")
@click.option("--timing", is_flag=True, help="Seconds and memory of each point, too; they differ from run to run.")
@click.option("--others", is_flag=True, help="Rows of points that are no longer in FILE, too.")
@debug_option
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
    """Print what is known of the points of FILE, the best first.

    CSV and Parquet have all columns; the table those in which points differ.
    """
    to_file = output is not None and str(output) != "-"
    if form == "parquet" and not to_file:
        raise UsageError("Parquet is binary, not for a terminal", hint="write it to a file: `-o FILE.parquet`")
    if form == "table" and to_file:
        raise UsageError("a table is for the terminal", hint="write `--format csv` or `--format parquet`")
    if to_file and output is not None:
        require_writable(output, directory=False)
    with open_sweep(file, store, must_exist=True) as opened:
        lines = tables.records(opened, clocked=timing, others=others)
        lines = tables.take_lines(
            tables.sort_lines(tables.filter_lines(lines, where), sort, tables.objective_column(opened)), top
        )
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
            out.print(same, soft_wrap=True, markup=False)
        print_table(out, tables.sweep_table(lines))


@sweep.command(cls=StrictCommand, short_help="Figures of a sweep.")
@sweep_options
@click.option("-o", "--output", metavar="DIR", type=FILE, required=True, help="Write the figures here.")
@click.option("--format", "form", type=click.Choice(IMAGE_FORMATS), default="png", show_default=True)
@debug_option
def plot(file: Path, store: Path | None, output: Path, form: str) -> None:
    """Draw what is known of the points of FILE.

    Speed-ups by what is fused, FLOPs and bytes against the first schedule, curves over numbers (lanes, blocks), the spread of orders:
    those that the axes of the sweep allow. Shown are simulations if the sweep makes all of them, else estimates.
    """
    require_writable(output, directory=True)
    with open_sweep(file, store, must_exist=True) as opened:
        for drawn in draw(opened, output, form):
            say(f"written to {drawn.path}" if drawn.path else f"no figure `{drawn.name}`: {drawn.why_not}")
