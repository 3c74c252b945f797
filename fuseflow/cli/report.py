"""The command `fuseflow report`, which writes a run as one HTML page."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import FILE, quiet_option
from fuseflow.cli.deferred import deferred


@click.command(cls=StrictCommand, short_help="Write a run as one HTML page.")
@click.argument("run", type=FILE)
@click.option("-o", "--output", metavar="FILE", type=FILE, help="Where to write it; - is stdout.  [default: RUN/report.html]")
@click.option("--cycles", metavar="FILE", type=FILE, help="What `explain cycles --json FILE` found in the same run.")
@quiet_option
@debug_option
@deferred
def report() -> None:
    """Write one HTML page about RUN: the directory that `fuseflow run -o DIR` wrote, or the file of `--json`.

    The page needs no network and no other file. Of a `--json` file it has everything but loops, tables and graphs, and is written
    beside it.
    """
