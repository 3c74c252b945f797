"""The command `fuseflow check`, which lists everything that is in the way of a model, without running it."""

from __future__ import annotations

import click

from fuseflow.cli.common import json_option
from fuseflow.cli.deferred import command
from fuseflow.cli.program_options import program_options


@command(
    "List all that is in the way of a model, without running it.",
    program_options(),
    json_option("the list"),
    click.pass_context,
    often="data tensors option small sparsify fuse order schedule json",
    legend=False,
)
def check() -> None:
    """Compile MODEL (.py, module:function, .pt2, .ein or .mlir), and list every operator that has no Einsum form.

    Each has its module, the line of the model and of the library, the shape of its value, and what to use instead. Then the program is
    fused and lowered as the schedule says, which finds what only a later stage refuses. Nothing is simulated. Exits with 1 if something
    is in the way.
    """
