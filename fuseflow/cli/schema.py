"""The command `fuseflow schema`, which prints the JSON schemas of YAML files."""

from __future__ import annotations

import click

from fuseflow.cli.common import FILE, output_option
from fuseflow.cli.deferred import command
from fuseflow.filesystem.schemas import KINDS


@command(
    "Print the JSON schema of a kind of YAML file, for editors.",
    click.argument("kind", type=click.Choice(KINDS)),
    output_option("-o", "--output", metavar="FILE", type=FILE, help="Write it here, as KIND.schema.json beside the YAML files."),
    legend=False,
)
def schema() -> None:
    """Print the JSON schema (draft 2020-12) of a KIND of YAML file, by which an editor completes keys and marks mistakes.

    Files that fuseflow writes name it in their first line, as `schedule.schema.json` beside them.
    """
