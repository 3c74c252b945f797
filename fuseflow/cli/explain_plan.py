"""The command `fuseflow explain plan`, which says which entries the parts of a plan hold, and what they cost."""

from __future__ import annotations

import click

from fuseflow.cli.common import machine_options
from fuseflow.cli.deferred import command
from fuseflow.cli.json_file import json_option
from fuseflow.cli.program import program_options


@command(
    "What the parts of a plan hold and cost.",
    program_options(simulates=True),
    machine_options(),
    click.option("--simulate", is_flag=True, help="Also run the program with the plan and without it."),
    json_option("the report"),
    quiet=False,
)
def plan() -> None:
    """Explain the plan of MODEL: a row for each part of each operand that is divided.

    Costs are those of one product unit, measured on the machine for full blocks. The second table compares the whole program with the plan
    and without it. With `--plan auto`, the plans that were considered come first.
    """
