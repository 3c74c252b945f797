"""The commands `fuseflow machines` and `fuseflow ops`, which list what comes with the package."""

from __future__ import annotations

import click

from fuseflow.cli.deferred import command


@command(
    "List the machines, or print all settings of one.",
    click.argument("name", required=False),
    click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change it, as in latency.add=3; repeatable."),
    quiet=False,
)
def machines() -> None:
    """List the machines that come with fuseflow, or print all settings of NAME, a machine or a YAML file, as `--machine` reads them.

    A file with a `base` is printed with what the base says.
    """


@command(quiet=False)
def ops() -> None:
    """List the operators and reductions that an Einsum may use."""
