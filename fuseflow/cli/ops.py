"""The command `fuseflow ops`, which prints the operator table."""

from __future__ import annotations

from fuseflow.cli.deferred import command


@command(quiet=False)
def ops() -> None:
    """List the operators and reductions that an Einsum may use."""
