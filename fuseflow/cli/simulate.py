"""The command `fuseflow simulate`, which executes an existing graph cycle by cycle."""

from __future__ import annotations

import click

from fuseflow.cli.array_options import placement_options
from fuseflow.cli.common import FILE, data_option
from fuseflow.cli.deferred import command
from fuseflow.cli.run_options import result_options, target_options, trace_options


@command(
    "Execute a graph on tensors from files.",
    click.argument("graph", type=FILE),
    data_option("--tensors", metavar="FILE", type=FILE, required=True, help="YAML that names the graph's inputs."),
    target_options,
    placement_options,
    result_options("the outputs and the result"),
    trace_options,
    often="tensors machine set engine top memory trace json output",
)
def simulate() -> None:
    """Execute GRAPH, a SAMML graph of any tool: protobuf (.bin, or its text form .txtpb), or .samml.

    Prints a row like those of `fuseflow run`. Nothing is checked: the graph does not say what it should compute.
    """
