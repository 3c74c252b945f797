"""Random graphs as circuits, against the reference simulator.

Every graph is a case of `tests/support/hardware_cases.py`. The rules of its nodes run in Python, cycle by cycle, and every token of every
stream, its cycle, every firing of every node and every deadlock must be those of the reference simulator. Prints each difference with its
seed, then how many graphs had each primitive.

With `--memory fixed` every graph is at a memory that answers 1 to 200 cycles later, and with `--memory any` three of five are at HBM2 or
the fixed pipe instead. Then every request of every port must be that of the reference, too, in its cycle.

With `--stalls` the ports of the memory are not ready in some cycles. Then every token must be that of the reference, in whatever cycle.

With `--tiles` all graphs have tiles, else one in five. With `--lanes` all copy a dense tensor, which is written in lanes
(`tests/support/lane_cases.py`).

With `--tool icarus` or `--tool verilator` the printed SystemVerilog of each graph runs instead of its rules, and is compared in the same
way.

Exit status 1 if anything differs, or if, of 2,000 graphs or more, a primitive is in fewer than 50 or a form of one in fewer than 20.
"""

from __future__ import annotations

import functools
import multiprocessing
import sys
import time
from pathlib import Path
from typing import get_args

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from hardware_cases import MemoryKind, Tally, check, check_in, check_stalled, hardware_case, has_tiles
from lane_cases import lane_case

from fuseflow.hardware.python_code import Step
from fuseflow.hardware.tools import NAMES, PYTHON, find_tool

CHUNK = 50
FEW = 5
"""The seeds that a process checks at once, of the rules and in a tool."""
LONG = 2000
QUOTA, FORM_QUOTA = 50, 20
"""In how many graphs each primitive must be, and each form of one."""


@click.command(help=__doc__.partition("\n")[0])
@click.option("--graphs", default=LONG, show_default=True, type=click.IntRange(1), help="how many graphs")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="of the first graph")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="processes")
@click.option("--tool", default=PYTHON, show_default=True, type=click.Choice(NAMES), help="what runs the circuits")
@click.option("--memory", default="ideal", show_default=True, type=click.Choice(get_args(MemoryKind)), help="behind the graphs")
@click.option("--tiles", is_flag=True, help="graphs with tiles alone")
@click.option("--lanes", is_flag=True, help="graphs with writers of lanes alone")
@click.option("--stalls", is_flag=True, help="the memory is not always ready")
@click.option("--seconds", type=click.IntRange(1), help="begin no further graphs after so many, of the clock")
def main(
    graphs: int, seed: int, jobs: int, tool: str, memory: MemoryKind, tiles: bool, lanes: bool, stalls: bool, seconds: int | None
) -> None:
    find_tool(tool)
    if tiles and lanes:
        raise click.UsageError("--tiles and --lanes are different graphs")
    if stalls and (tool == PYTHON or memory == "ideal"):
        raise click.UsageError("--stalls goes with --tool icarus or verilator, and with --memory fixed or any")
    total, wrong, start, begun = Tally(), 0, time.process_time(), time.perf_counter()
    chunk = CHUNK if tool == PYTHON else FEW
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        firsts = (seed + chunk * k for k in range(2 * graphs // chunk + 2))
        for tally, lines in pool.imap(functools.partial(run, chunk, tool, memory, tiles, lanes, stalls), firsts):
            add(total, tally)
            wrong += len(lines)
            for line in lines:
                click.echo(line)
            over = seconds is not None and time.perf_counter() - begun > seconds
            if total.graphs >= graphs or over:
                pool.terminate()
                break
    for name, count in sorted(total.primitives.items()):
        click.echo(f"{name:24} in {count:5} graphs")
    for why, count in total.refused.most_common():
        click.echo(f"refused {count} times: {why}")
    rare = [name for name, count in total.primitives.items() if count < (FORM_QUOTA if " " in name else QUOTA)]
    rare = rare if total.graphs >= LONG else []
    if rare:
        click.echo(f"in too few graphs: {', '.join(rare)}")
    click.echo(
        f"{total.graphs} graphs from seed {seed}, {total.tiled} with tiles: {wrong} differ, {total.deadlocks} deadlocks, "
        f"{total.firings} firings" + (f", {total.delayed} later than the simulator" if stalls else "")
    )
    click.echo(f"{time.process_time() - start:.0f} s here", err=True)
    sys.exit(bool(wrong or rare))


def add(total: Tally, more: Tally) -> None:
    total.graphs += more.graphs
    total.tiled += more.tiled
    total.deadlocks += more.deadlocks
    total.delayed += more.delayed
    total.firings += more.firings
    total.refused += more.refused
    total.primitives += more.primitives


def run(count: int, tool: str, memory: MemoryKind, tiles: bool, lanes: bool, stalls: bool, first: int) -> tuple[Tally, list[str]]:
    """Check so many seeds from `first` on."""
    tally, steps, lines = Tally(), dict[str, Step](), list[str]()
    for seed in range(first, first + count):
        case = lane_case(seed, memory) if lanes else hardware_case(seed, memory, tiles)
        if tiles and not has_tiles(case):
            continue
        if stalls:
            found = check_stalled(tool, case, tally, seed)
        else:
            found = check(case, tally, steps) if tool == PYTHON else check_in(tool, case, tally)
        lines += [f"seed {seed}: {line}" for line in found[:3]]
    return tally, lines


if __name__ == "__main__":
    main()
