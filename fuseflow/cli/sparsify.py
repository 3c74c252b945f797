"""The command `fuseflow sparsify`, which prunes a PyTorch model and says which part of each tensor is kept."""

from __future__ import annotations

import click

from fuseflow.cli.common import FILE
from fuseflow.cli.deferred import command
from fuseflow.cli.json_file import json_option
from fuseflow.cli.model_options import model_options


@command(
    "Prune a PyTorch model and say what is kept of it.",
    model_options,
    click.option(
        "-o",
        "--output",
        metavar="DIR",
        type=FILE,
        help="Write the weights, masks and spec there, which `--sparsity DIR` reads.",
    ),
    json_option("the rows"),
)
def sparsify() -> None:
    """Make MODEL (.py, module:function) sparse as `--sparsify` and `--sparsity` say, without compiling it.

    Prints a row for each tensor: its shape, rule and layout, the share of its entries and of its magnitudes that is kept, and its bytes
    before and after.
    """
