"""The command `fuseflow ops`, which prints the operator table."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.deferred import deferred
from fuseflow.cli.legend import legend_option


@click.command(cls=StrictCommand)
@legend_option
@debug_option
@deferred
def ops() -> None:
    """List the operators and reductions that an Einsum may use."""
