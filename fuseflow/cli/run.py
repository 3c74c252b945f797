"""The command `fuseflow run`, which compiles a model, executes it cycle by cycle and checks its outputs."""

from __future__ import annotations

from dataclasses import dataclass

import click

from fuseflow.cli.array_options import placement_options
from fuseflow.cli.common import bundled, output_option
from fuseflow.cli.deferred import command
from fuseflow.cli.program_options import program_options, training_option
from fuseflow.cli.run_options import (
    dump_options,
    energy_options,
    result_options,
    simulation_option,
    target_options,
    trace_options,
)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """How a program is run: all or some of its steps, a sample of it, whether outputs are compared, regions that run like others are
    simulated, long regions run beside each other, and whether its cycles are explained."""

    steps: int | None
    simulate: int | None
    sample_text: str | None
    no_check: bool
    bisect: bool
    no_dedup: bool
    jobs: int | None
    explain: bool


@command(
    "Compile a model, execute it and check its outputs.",
    program_options(simulates=True),
    target_options,
    placement_options,
    bundled(
        "request",
        RunRequest,
        training_option("--steps", metavar="N", type=click.IntRange(min=1), help="Of --train: take N steps.  [default: 1]"),
        training_option(
            "--simulate",
            metavar="N",
            type=click.IntRange(min=1),
            help="Of --steps: simulate at most N steps, evenly spread.  [default: all whose cycles are not known]",
        ),
        simulation_option(
            "--sample",
            "sample_text",
            metavar="SHARE",
            help="Sample long regions: `2%` of the work, or as much as `error=1%` takes. Cycles have an interval then.",
        ),
        simulation_option("--no-check", is_flag=True, help="Do not compare the outputs with PyTorch (or the dense interpreter)."),
        simulation_option(
            "--bisect",
            is_flag=True,
            help="Run Einsum by Einsum too, and say which is the first whose value differs from PyTorch.",
        ),
        simulation_option("--no-dedup", is_flag=True, help="Simulate every region, those that run like one before it too."),
        simulation_option(
            "--jobs",
            metavar="N",
            type=click.IntRange(min=1),
            help="Long regions at a time.  [default: the cores of this machine]",
        ),
        output_option(
            "--explain", is_flag=True, help="Find what the cycles go into, for the page of `report`. Needs -o; runs thrice."
        ),
    ),
    result_options("the graphs, outputs and result"),
    energy_options,
    trace_options,
    dump_options,
    often="data tensors sparsify fuse par schedule machine set top json output",
)
def run() -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir), execute it on its data and check the outputs.

    Prints a row for each region: cycles, nodes of the graph, firings, tokens, FLOPs and bytes. Exits with 1 if the check fails.
    """
