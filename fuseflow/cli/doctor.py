"""The command `fuseflow doctor`, which checks whether this installation works."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.deferred import deferred
from fuseflow.cli.legend import legend_option


@click.command(cls=StrictCommand)
@legend_option
@debug_option
@deferred
def doctor() -> None:
    """Check the installation; exits with 1 if something is wrong."""
