"""The command `fuseflow explain cycles`, which says what takes the cycles of a run, and which changes would take fewer."""

from __future__ import annotations

import click

from fuseflow.cli.deferred import command
from fuseflow.cli.json_file import json_option
from fuseflow.cli.program import program_options
from fuseflow.cli.target import target_options


@command(
    "What a run spends its cycles on, and what would take fewer.",
    program_options(simulates=True),
    target_options,
    click.option("--top", metavar="N", type=click.IntRange(min=1), default=5, show_default=True, help="Rows of each table."),
    click.option("--no-changes", is_flag=True, help="Do not compile and compare other schedules."),
    json_option("the report"),
)
def cycles() -> None:
    """Run MODEL and follow the critical path of every region, from its last event back to its first.

    The path goes from each event to what it waited for last: its own work, a token, room in a FIFO, an answer of the memory. Its steps add
    up to all cycles of the region. The changes next to the schedule are compiled and their costs estimated. Values are not checked.
    """
