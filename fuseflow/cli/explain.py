"""The command group `fuseflow explain`, which explains decisions of the compiler and the cycles of a run."""

from __future__ import annotations

import click

from fuseflow.cli.array_options import array_option
from fuseflow.cli.command import CommandGroup, debug_option, options_of
from fuseflow.cli.common import json_option, machine_options, output_option
from fuseflow.cli.deferred import command
from fuseflow.cli.program_options import program_options
from fuseflow.cli.run_options import target_options

_option = options_of("Explanation")
_no_changes = _option("--no-changes", is_flag=True, help="Do not compile and compare other schedules.")


@click.group(cls=CommandGroup, default="summary", short_help="Why a program takes its cycles, and what would help.")
@debug_option
def explain() -> None:
    """Say why a program was compiled as it was, why it takes its cycles, and what would take fewer.

    `fuseflow explain MODEL` is short for `fuseflow explain summary MODEL`.
    """


@command(
    "All of it, short: what limits it, and what would help.",
    program_options(simulates=True),
    target_options,
    _no_changes,
    json_option("the summary"),
    group=explain,
    often="data tensors sparsify fuse order par schedule machine set no-changes json",
)
def summary() -> None:
    """Run MODEL, and say what limits it: the slowest region and node, what was fused, what would help and by how much.

    The last lines are the commands that say more. Values are not checked.
    """


@command(
    "What a loop order must respect, and why it was chosen.",
    program_options(),
    machine_options(),
    _option("--count", "rule", type=click.Choice(["reference", "merged"]), help="Count the orders of each region by this rule."),
    json_option("the report"),
    group=explain,
    often="data tensors fuse order par schedule machine set count json",
)
def order() -> None:
    """Explain the loop order of every region of MODEL.

    Says what each loop runs over, which loops must enclose which and why, and which orders were compared at what expected cost. Nothing is
    executed; statistics are assumed for tensors without data. --count reference counts as the published compiler does, which inlines
    every use of an intermediate on its own; --count merged with equal views merged.
    """


@command(
    "What is fused and why, and what that costs.",
    program_options(),
    machine_options(),
    array_option("Say what each region would take on this array (a name, or a YAML file) with the operator behind it."),
    json_option("the report"),
    group=explain,
    often="data tensors sparsify fuse par schedule machine set propagate array json",
)
def fusion() -> None:
    """Explain the regions of MODEL: which neighbouring Einsums are fused, and why or why not.

    The second table says how often each value of a producer is computed, inside which loops that it lacks, and what storing it instead
    means. With `--propagate`, the next one says what is left out, since no output needs it. If the program keeps parts of results, another
    one says where each is kept, why, and what that costs. With public primitives, the next one says what these are expected to cost in each
    region. With `--array`, the default cut has regions that fit the array, and a line for each cut says what its region would take
    with the operator behind it. A last one lists the stages of every region, which may have lanes of their own
    (`--par REGION/STAGE.INDEX=4`), each with the loops that it runs in. Nothing is executed: numbers are expected from the statistics of
    the tensors, which are assumed for those without data.
    """


@command(
    "What a run spends its cycles on, and what would take fewer.",
    program_options(simulates=True),
    target_options,
    output_option("--top", metavar="N", type=click.IntRange(min=1), default=5, show_default=True, help="Rows of each table."),
    _no_changes,
    json_option("the report"),
    group=explain,
    often="data tensors sparsify fuse order par schedule machine set top no-changes json",
)
def cycles() -> None:
    """Run MODEL and follow the critical path of every region, from its last event back to its first.

    The path goes from each event to what it waited for last: its own work, a token, room in a FIFO, an answer of the memory. Its steps add
    up to all cycles of the region. The changes next to the schedule are compiled and their costs estimated. Values are not checked.
    """


@command(
    "What the parts of a plan hold and cost.",
    program_options(simulates=True),
    machine_options(),
    _option("--simulate", is_flag=True, help="Also run the program with the plan and without it."),
    json_option("the report"),
    group=explain,
    often="data tensors fuse schedule plan machine set simulate json",
)
def plan() -> None:
    """Explain the plan of MODEL: a row for each part of each operand that is divided.

    Costs are those of one product unit, measured on the machine for full blocks. The second table compares the whole program with the plan
    and without it. With `--plan auto`, the plans that were considered come first.
    """
