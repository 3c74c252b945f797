"""The command `fuseflow ops`, which prints the operator table."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import console
from fuseflow.report.tables import operator_table, print_table, reducer_table


@click.command(cls=StrictCommand)
@debug_option
def ops() -> None:
    """List the operators and reductions that an Einsum may use."""
    out = console()
    print_table(out, operator_table())
    out.print()
    print_table(out, reducer_table())
