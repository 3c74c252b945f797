"""The command `fuseflow compile`, which compiles a model and writes a directory of artifacts or one stage."""

from __future__ import annotations

from fuseflow.cli.array_options import circuit_placement_options
from fuseflow.cli.common import FILE, circuit_machine_options, json_option, output_option
from fuseflow.cli.deferred import command
from fuseflow.cli.program_options import program_options
from fuseflow.cli.run_options import dump_options, known_stage


@command(
    "Compile a model to dataflow graphs.",
    program_options(),
    output_option(
        "-o",
        "--output",
        metavar="PATH",
        type=FILE,
        help="Directory to write; with --emit a file, or -. Some stages are a directory.",
    ),
    output_option("--emit", metavar="STAGE", callback=known_stage, help="Write this stage only, to standard output without -o."),
    circuit_machine_options,
    circuit_placement_options,
    dump_options,
    json_option("what was compiled"),
    name="compile",
    often="data tensors sparsify fuse order par schedule emit output json",
)
def compile_command() -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir) to a dataflow graph for each region.

    Without --emit, writes a directory (out/NAME unless -o says otherwise) with the schedule and every stage of every region.
    """
