"""The command `fuseflow sparsify`, which prunes a PyTorch model and says what is kept of each tensor."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import FILE, quiet_option
from fuseflow.cli.deferred import deferred
from fuseflow.cli.json_file import json_option
from fuseflow.cli.legend import legend_option
from fuseflow.cli.model_options import model_options


@click.command(cls=StrictCommand, short_help="Prune a PyTorch model and say what is kept of it.")
@model_options
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=FILE,
    help="Write the weights, masks and spec there, which `--sparsity DIR` reads.",
)
@json_option("the rows")
@quiet_option
@legend_option
@debug_option
@deferred
def sparsify() -> None:
    """Make MODEL (.py, module:function) sparse as `--sparsify` and `--sparsity` say, without compiling it.

    Prints a row for each tensor: its shape, rule and layout, the share of its entries and of its magnitudes that is kept, and its bytes
    before and after.
    """
