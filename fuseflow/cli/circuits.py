"""The commands `fuseflow area` and `fuseflow cosimulate`: how large the circuits of a model are, and whether they do what is simulated."""

from __future__ import annotations

import click

from fuseflow.cli.array_options import circuit_placement_options
from fuseflow.cli.command import options_of
from fuseflow.cli.common import CIRCUIT_MACHINE, FILE, json_option, machine_options
from fuseflow.cli.deferred import command
from fuseflow.cli.model_options import names_of_model
from fuseflow.cli.program_options import program_options
from fuseflow.hardware.rtl_simulators import NAMES, PYTHON

_option = options_of("Circuits")


@command(
    "How large the circuits of a model are.",
    program_options(),
    machine_options(CIRCUIT_MACHINE),
    circuit_placement_options,
    _option("--region", metavar="NAME", shell_complete=names_of_model("parts"), help="Of this region only."),
    _option(
        "--by",
        multiple=True,
        type=click.Choice(("part", "node")),
        help="Print a row for each part, or for each node with its FIFOs and units; repeatable.",
    ),
    _option("--liberty", metavar="FILE", type=FILE, help="Take the cells of this library, in the Liberty format."),
    json_option("the areas"),
    often="data tensors fuse par schedule machine set region by json",
)
def area() -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir), and say how large the circuit of each region is, in gate equivalents.

    A gate equivalent is the area of a NAND of two inputs. Yosys makes the gates; what it made once is kept.
    """


@command(
    "Run a model as circuits, beside the simulator.",
    program_options(),
    _option("--tool", default=PYTHON, show_default=True, metavar="TOOL", help=f"What runs the circuit: {', '.join(NAMES)}."),
    machine_options(CIRCUIT_MACHINE),
    circuit_placement_options,
    _option("--region", metavar="NAME", shell_complete=names_of_model("parts"), help="Compare this region only."),
    _option("--wave", metavar="FILE", type=FILE, help="Write the waveform of the circuit of one region (VCD)."),
    json_option("the rows"),
    name="cosimulate",
    often="data tensors fuse schedule machine set tool region wave json",
)
def cosimulate_command() -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir), and run its regions as circuits on what they really read.

    Every token of every stream must be given in the cycle that the simulator says, and every node must fire as often, first and last.
    Prints a row for each region. Exits with 1 at a difference, and shows the earliest one.
    """
