"""`fuseflow ops`: the operator table."""

from __future__ import annotations

import click

from fuseflow.cli.common import StrictCommand, console, debug_option
from fuseflow.report.tables import operator_table, reducer_table


@click.command(cls=StrictCommand)
@debug_option
def ops() -> None:
    """List the operators and reductions that an Einsum may use."""
    out = console()
    out.print(operator_table())
    out.print(reducer_table())
