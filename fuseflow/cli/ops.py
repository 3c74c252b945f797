"""The command `fuseflow ops`, which prints the operator table."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.deferred import deferred


@click.command(cls=StrictCommand)
@debug_option
@deferred
def ops() -> None:
    """List the operators and reductions that an Einsum may use."""
