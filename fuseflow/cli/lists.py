"""The commands `fuseflow machines`, `fuseflow data` and `fuseflow ops`, which list what a run may name."""

from __future__ import annotations

import click

from fuseflow.cli.common import json_option, setting_option
from fuseflow.cli.deferred import command
from fuseflow.cli.model_options import DATA_DIR, SEED


@command(
    "List the machines, or print all settings of one.",
    click.argument("name", required=False),
    setting_option,
    json_option("the list, or the settings,"),
)
def machines() -> None:
    """List the machines that come with fuseflow, or print all settings of NAME, a machine or a YAML file, as `--machine` reads them.

    A file with a `base` is printed with what the base says. With --quiet, the list has the names alone.
    """


@command(
    "List the data sets, or say how large one is.",
    click.argument("spec", required=False),
    DATA_DIR,
    SEED,
    json_option("the list, or the sizes,"),
)
def data() -> None:
    """List the data that `--data` of other commands takes: which files each needs, where these are looked for, and which are there.

    With SPEC, such as `cora:nodes=300` or `graph.mtx`, load it, and say how large it is. With --quiet, the list has the names alone.
    """


@command("", json_option("the list"))
def ops() -> None:
    """List the operators and reductions that an Einsum may use.

    With --quiet, the list has the names alone.
    """
