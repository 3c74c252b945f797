"""The command `fuseflow schedule`, which chooses a schedule within a budget of resources."""

from __future__ import annotations

import click

from fuseflow.autoscheduler.search_defaults import ALLOWED, DEFAULT_TOP
from fuseflow.cli.array_options import array_option
from fuseflow.cli.command import options_of
from fuseflow.cli.common import FILE, json_option, machine_options, output_option
from fuseflow.cli.deferred import command
from fuseflow.cli.model_options import model_options
from fuseflow.cli.program_options import propagation_options, schedule_options, training_options

_option = options_of("Budget and search")


@command(
    "Choose a schedule within a budget of resources, or for an array of tiles.",
    model_options,
    training_options,
    propagation_options,
    schedule_options,
    machine_options(),
    _option("--budget", "budget_text", metavar="BUDGET", default="", help="mul=64,port=256,fifo=1MB, or small, medium, large."),
    array_option("Each region fits this array: one that ships with fuseflow, or a YAML file."),
    output_option("-o", "--output", metavar="FILE", type=FILE, help="Write the chosen schedule; - is stdout."),
    _option("--allow", multiple=True, metavar="LEVER", help=f"What else may be chosen: {', '.join(ALLOWED)}; repeatable."),
    _option("--pareto", metavar="RESOURCE", help="The curve of cycles over a resource, up to the budget."),
    _option("--pareto-to", metavar="FILE", type=FILE, help="Write the curve as .csv, .png, .svg or .pdf, with its schedules."),
    _option(
        "--top",
        metavar="K",
        type=click.IntRange(min=0),
        default=DEFAULT_TOP,
        show_default=True,
        help="Simulate the K best by estimate.",
    ),
    _option("--limit", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), help="Stop then with what there is."),
    _option(
        "--jobs", metavar="N", type=click.IntRange(min=1), help="Simulations at a time.  [default: the cores of this machine]"
    ),
    _option("--store", metavar="FILE", type=FILE, help="Where simulations are kept.  [default: out/schedule.sqlite]"),
    _option("--no-store", is_flag=True, help="Simulate in this process, and keep nothing."),
    json_option("the choice, and all that was considered,"),
    often="data tensors machine budget array allow limit jobs top pareto json output",
)
def schedule() -> None:
    """Choose what is fused, the loop orders and the lanes of MODEL, so that it takes the fewest cycles within a budget.

    Each region of the program may take as much as the budget has, because regions run one after the other. The best schedules by estimate
    are simulated, and so is the unfused program in the formats that it has. With `--array`, each region fits the array, the cycles have
    those of loading it in them, and what is chosen was placed and routed.
    """
