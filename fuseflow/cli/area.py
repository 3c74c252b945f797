"""The command `fuseflow area`, which says how large the circuits of a model are."""

from __future__ import annotations

import click

from fuseflow.cli.common import CIRCUIT_MACHINE, FILE, machine_options
from fuseflow.cli.completion import names_of_model
from fuseflow.cli.deferred import command
from fuseflow.cli.json_file import json_option
from fuseflow.cli.program import program_options


@command(
    "How large the circuits of a model are.",
    program_options(),
    machine_options(CIRCUIT_MACHINE),
    click.option("--region", metavar="NAME", shell_complete=names_of_model("parts"), help="Of this region only."),
    click.option(
        "--by",
        multiple=True,
        type=click.Choice(("part", "node")),
        help="Print a row for each part, or for each node with its FIFOs and units; repeatable.",
    ),
    click.option("--liberty", metavar="FILE", type=FILE, help="Take the cells of this library, in the Liberty format."),
    json_option("the areas"),
)
def area() -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir), and say how large the circuit of each region is, in gate equivalents.

    A gate equivalent is the area of a NAND of two inputs. Yosys makes the gates; what it made once is kept.
    """
