"""`fuseflow explain`: why the compiler did what it did, and what a run spends its cycles on."""

from __future__ import annotations

import click

from fuseflow.cli.common import debug_option
from fuseflow.cli.explain_cycles import cycles
from fuseflow.cli.explain_fusion import fusion
from fuseflow.cli.explain_order import order


@click.group()
@debug_option
def explain() -> None:
    """Say why a program was compiled as it was, and why it takes its cycles."""


for command in (order, fusion, cycles):
    explain.add_command(command)
