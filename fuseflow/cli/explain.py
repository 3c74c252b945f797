"""The command group `fuseflow explain`, which explains decisions of the compiler and the cycles of a run."""

from __future__ import annotations

import click

from fuseflow.cli.command import debug_option
from fuseflow.cli.explain_cycles import cycles
from fuseflow.cli.explain_fusion import fusion
from fuseflow.cli.explain_order import order
from fuseflow.cli.explain_plan import plan


@click.group()
@debug_option
def explain() -> None:
    """Say why a program was compiled as it was, and why it takes its cycles."""


for command in (order, fusion, cycles, plan):
    explain.add_command(command)
