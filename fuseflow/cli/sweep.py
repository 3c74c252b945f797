"""The command group `fuseflow sweep`, which compares schedules, data and machines point by point."""

from __future__ import annotations

from typing import Any

import click

from fuseflow.cli.command import CommandGroup, debug_option, options_of
from fuseflow.cli.common import FILE, json_option, output_option
from fuseflow.cli.deferred import command
from fuseflow.report.figure_files import IMAGE_FORMATS

_option = options_of("Sweep")


@click.group(cls=CommandGroup, default="run", short_help="Compare schedules on data and machines.")
@debug_option
def sweep() -> None:
    """Estimate or simulate every point of a sweep file: schedules x data x machines.

    `fuseflow sweep FILE` is short for `fuseflow sweep run FILE`.
    """


def sweep_options(command: Any) -> Any:
    """Add the file of a sweep, and the option of where its results are."""
    store = _option("--store", metavar="FILE", type=FILE, help="Where results are kept.  [default: out/NAME.sqlite]")
    return click.argument("file", type=FILE)(store(command))


@command(
    "Do what is left of a sweep.",
    sweep_options,
    _option("--jobs", metavar="N", type=click.IntRange(min=1), help="Points at a time.  [default: the cores of this machine]"),
    _option("--memory", metavar="SIZE", help="Memory of all of them together, as in 8GB.  [default: most of what is free]"),
    _option("--scheduler", metavar="ADDRESS", help="Run the points on the Dask cluster of this scheduler."),
    _option(
        "--again",
        type=click.Choice(["failed", "stale", "unkept"]),
        multiple=True,
        help="Points that failed, ran in another fuseflow, or whose run was not kept; repeatable.",
    ),
    _option("--no-runs", is_flag=True, help="Do not keep the runs of simulations, which `report` opens, in the store."),
    json_option("the progress"),
    group=sweep,
    legend=False,
)
def run() -> None:
    """Do every point of FILE that is not done yet.

    Each result is kept at once: after an interruption the same command goes on where it was. A point that fails is a row with its error.
    """


@command("How far a sweep is, and the best so far.", sweep_options, json_option("the progress"), group=sweep, legend=False)
def status() -> None:
    """Say how many points of FILE are done, failed and left, how long that may take, and which are the best so far."""


@command(
    "The results of a sweep.",
    sweep_options,
    output_option("--format", "form", type=click.Choice(["table", "csv", "parquet"]), default="table", show_default=True),
    output_option("-o", "--output", metavar="FILE", type=FILE, help="Write here; - is stdout."),
    output_option("--sort", metavar="COLUMN", help="The least first; -COLUMN: the most.  [default: the best first]"),
    output_option("--where", multiple=True, metavar="TEXT", help="Lines for which it holds: fuse=full, cycles<1000; repeatable."),
    output_option("--top", metavar="N", type=click.IntRange(min=1), help="The first N lines only."),
    output_option("--timing", is_flag=True, help="Seconds and memory of each point, too; they differ from run to run."),
    output_option("--others", is_flag=True, help="Rows of points that are no longer in FILE, too."),
    json_option("the lines"),
    group=sweep,
    often="format output sort where top store json",
)
def show() -> None:
    """Print what is known of the points of FILE, the best first.

    CSV and Parquet have all columns; the table those in which points differ.
    """


@command(
    "Figures of a sweep.",
    sweep_options,
    output_option("-o", "--output", metavar="DIR", type=FILE, required=True, help="Write the figures here."),
    output_option("--format", "form", type=click.Choice(IMAGE_FORMATS), default="png", show_default=True),
    json_option("the list of figures"),
    group=sweep,
    legend=False,
)
def plot() -> None:
    """Draw what is known of the points of FILE.

    Speed-ups by what is fused, FLOPs and bytes against the first schedule, curves over numbers (lanes, blocks), the spread of orders:
    those that the axes of the sweep allow. Shown are simulations if the sweep makes all of them, else estimates.
    """
