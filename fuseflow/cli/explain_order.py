"""The command `fuseflow explain order`, which says what the loop order of a region must respect, and why it was chosen."""

from __future__ import annotations

import click

from fuseflow.cli.deferred import command
from fuseflow.cli.json_file import json_option
from fuseflow.cli.program import program_options


@command(
    "What a loop order must respect, and why it was chosen.",
    program_options(),
    click.option(
        "--count", "rule", type=click.Choice(["reference", "merged"]), help="Count the orders of each region by this rule."
    ),
    json_option("the report"),
    quiet=False,
)
def order() -> None:
    """Explain the loop order of every region of MODEL.

    Says what each loop runs over, which loops must enclose which and why, and which orders were compared at what expected cost. Nothing is
    executed; statistics are assumed for tensors without data. --count reference counts as the published compiler does, which inlines
    every use of an intermediate on its own; --count merged with equal views merged.
    """
