"""The command `fuseflow report`, which writes a run as one HTML page."""

from __future__ import annotations

import click

from fuseflow.cli.common import FILE, json_option, output_option
from fuseflow.cli.deferred import command


@command(
    "Write a run, two runs or a sweep as one HTML page.",
    click.argument("run", type=FILE),
    click.argument("other", type=FILE, required=False),
    output_option(
        "-o",
        "--output",
        metavar="FILE",
        type=FILE,
        help="Where to write it; - is stdout.  [default: RUN/report.html, of two runs comparison.html]",
    ),
    output_option("--cycles", metavar="FILE", type=FILE, help="What `explain cycles --json FILE` found in the same run."),
    output_option(
        "--baseline", metavar="RUN", type=FILE, help="Say on the page how much faster RUN is than this run, by region."
    ),
    output_option("--store", metavar="FILE", type=FILE, help="The results of a sweep.  [default: out/NAME.sqlite]"),
    output_option("--no-runs", is_flag=True, help="Of a sweep: leave out the runs of its points, for a smaller page."),
    json_option("what the page is about, and where it is,"),
    legend=False,
)
def report() -> None:
    """Write one HTML page about RUN: the directory that `fuseflow run -o DIR` wrote, the file of `--json`, or the file of a sweep.

    With OTHER, the page compares the two runs: RUN is the baseline. The page needs no network and no other file. Of a `--json` file it has
    everything but loops, tables and graphs, and is written beside it. That of a sweep is written beside the file, too, and every point that
    was simulated opens its run.
    """
