"""The command `fuseflow compile`, which compiles a model and writes a directory of artifacts or one stage."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import (
    FILE,
    circuit_machine_options,
    quiet_option,
)
from fuseflow.cli.deferred import deferred
from fuseflow.cli.dump import dump_options, known_stage
from fuseflow.cli.legend import legend_option
from fuseflow.cli.program import program_options


@click.command("compile", cls=StrictCommand, short_help="Compile a model to dataflow graphs.")
@program_options()
@click.option(
    "-o", "--output", metavar="PATH", type=FILE, help="Directory to write; with --emit a file, or -. Some stages are a directory."
)
@click.option("--emit", metavar="STAGE", callback=known_stage, help="Write this stage only, to standard output without -o.")
@circuit_machine_options
@dump_options
@quiet_option
@legend_option
@debug_option
@deferred
def compile_command() -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir) to a dataflow graph for each region.

    Without --emit, writes a directory (out/NAME unless -o says otherwise) with the schedule and every stage of every region.
    """
