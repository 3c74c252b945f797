"""The command `fuseflow place`, which lays the graphs of a model out on an array of tiles."""

from __future__ import annotations

from typing import Any

import click

from fuseflow.cli.array_options import array_option, array_setting
from fuseflow.cli.command import options_of
from fuseflow.cli.common import FILE, json_option, machine_options, output_option
from fuseflow.cli.deferred import command
from fuseflow.cli.program_options import program_options
from fuseflow.cli.run_options import simulation_option

_option = options_of("Placement")


class PositiveNumber(click.FloatRange):
    """A number above 0, and at most some other."""

    def __init__(self, most: float) -> None:
        super().__init__(0, most, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return self.fail(f"{value} is no number", param, ctx) if number != number else number


LONGEST = 86_400
"""The most seconds of an exact search: a day."""


@command(
    "Lay a model out on an array of tiles.",
    program_options(),
    machine_options(),
    array_option("An array: its name, or a YAML file.", required=True),
    array_setting(
        "--tracks", metavar="N", type=click.IntRange(1, 64), help="Links each way between two tiles.  [default: the array's]"
    ),
    _option(
        "--effort",
        metavar="X",
        type=PositiveNumber(10_000),
        default=10.0,
        show_default=True,
        help="How many moves each run of annealing tries; 10 takes about half a second for 150 cells.",
    ),
    _option(
        "--seeds",
        metavar="N",
        type=click.IntRange(1, 1000),
        default=4,
        show_default=True,
        help="The number of runs; the best one counts.",
    ),
    _option(
        "--exact",
        metavar="SECONDS",
        type=PositiveNumber(LONGEST),
        help="Then look for the shortest placement, and for a bound, for that long in each region.",
    ),
    simulation_option(
        "--run", "runs", is_flag=True, help="Run it, and print its cycles beside those without distances, at equal slots."
    ),
    json_option("the placements in numbers"),
    output_option("-o", "--output", metavar="DIR", type=FILE, help="Write REGION.place.json and REGION.svg of each region here."),
    often="data tensors fuse par schedule array effort exact run json output",
)
def place() -> None:
    """Compile MODEL (.py, module:function, .ein or .mlir), and place and route the graph of each region on an array of tiles.

    Prints a row for each region: its tiles, how long its wires are, its clock, and the cycles that loading it takes. With --run, also its
    cycles, and pictures show how busy each tile is. Exits with 2 if a region does not fit.
    """
