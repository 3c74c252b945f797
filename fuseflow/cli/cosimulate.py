"""The command `fuseflow cosimulate`, which runs regions as circuits beside the simulator and compares all that they do."""

from __future__ import annotations

import click

from fuseflow.cli.common import CIRCUIT_MACHINE, FILE, machine_options
from fuseflow.cli.completion import names_of_model
from fuseflow.cli.deferred import command
from fuseflow.cli.program import program_options
from fuseflow.hardware.tools import NAMES, PYTHON


@command(
    "Run a model as circuits, beside the simulator.",
    program_options(),
    click.option("--tool", default=PYTHON, show_default=True, metavar="TOOL", help=f"What runs the circuit: {', '.join(NAMES)}."),
    machine_options(CIRCUIT_MACHINE),
    click.option("--region", metavar="NAME", shell_complete=names_of_model("parts"), help="Compare this region only."),
    click.option("--wave", metavar="FILE", type=FILE, help="Write the waveform of the circuit of one region (VCD)."),
    name="cosimulate",
)
def cosimulate_command() -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir), and run its regions as circuits on what they really read.

    Every token of every stream must be given in the cycle that the simulator says, and every node must fire as often, first and last.
    Prints a row for each region. Exits with 1 at a difference, and shows the earliest one.
    """
