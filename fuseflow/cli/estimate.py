"""The command `fuseflow estimate`, which estimates FLOPs, bytes and cycles without simulation."""

from __future__ import annotations

import click

from fuseflow.cli.array_options import estimated_placement_options
from fuseflow.cli.command import options_of
from fuseflow.cli.common import FILE, json_option, machine_options, output_option, resources_option
from fuseflow.cli.deferred import command, deferred
from fuseflow.cli.program_options import program_options
from fuseflow.cli.run_options import energy_options

_option = options_of("Statistics")


@deferred
def saved_schedule() -> None:
    """Return the schedule in a directory of artifacts."""


@command(
    "FLOPs, bytes and cycles of a model, without running it.",
    program_options(saved_schedule=saved_schedule),
    machine_options(),
    _option(
        "--stats", multiple=True, metavar="SPEC", help="Statistics in the place of a tensor: A.density=0.001,degree=powerlaw:2.3"
    ),
    _option("--statistics-only", is_flag=True, help="Know of tensors how much they store, not where."),
    output_option(
        "--by",
        multiple=True,
        type=click.Choice(("operator", "tensor")),
        help="Print FLOPs by operator, or bytes by tensor; repeatable.",
    ),
    resources_option,
    estimated_placement_options,
    energy_options,
    output_option("--against", metavar="RUN.json", type=FILE, help="Compare with a run (`run --json`)."),
    json_option("the estimate"),
    often="data tensors sparsify fuse par schedule machine set stats by json",
)
def estimate() -> None:
    """Estimate MODEL (.py, .ein, .mlir, or a directory that `compile -o` wrote) on its data: FLOPs, bytes, firings, cycles.

    FLOPs, bytes and firings are those of the simulator, counted from where the tensors store something, or expected from statistics
    (marked ~). Cycles are what the busiest node, the memory and the longest wait let expect.
    """
