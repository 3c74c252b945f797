"""Firings a second of the simulator's engine on graphs with lanes: BigBird's attention with heads, query rows or both dealt.

    python tools/bench/engine_with_lanes.py [--heads 12] [--data bigbird:block=64] [--machine ideal] [--repeats 3] [--json FILE|-]

The processor time of a simulation, from tensors to tensors, after one that loads the compiled kernels; medians, all graphs in turn. More
lanes are more nodes for about as many firings. Exit status 1 if 4 x 4 lanes reach less than half the firings a second of one.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import click
from host import JSON, finish

import fuseflow as ff
from fuseflow.errors import FuseFlowError
from fuseflow.run.compiled import Compiled
from fuseflow.sim import simulate

MODEL = Path(__file__).resolve().parents[2] / "models" / "gpt_bigbird.py"
LANES = ((1, 1), (4, 1), (1, 4), (4, 4), (4, 16))
"""Of heads and of rows."""
LEAST = 0.5
"""Of the firings a second of one lane, what 4 x 4 must reach."""


def compiled(heads: int, rows: int, data: str, all_heads: int, machine: str) -> Compiled:
    schedule = ff.Schedule.fuse("layerwise").par(i=heads, j=rows)
    return ff.compile(MODEL, data=data, options={"part": "attention", "heads": all_heads}, schedule=schedule, machine=machine)


def seconds(program: Compiled) -> tuple[float, int, int]:
    """Of one simulation; its firings and cycles."""
    (region,) = program.regions
    start = time.process_time()
    result = simulate(region.graph, program.inputs(), program.machine, engine="fast")
    return time.process_time() - start, result.firings, result.cycles


@click.command(help=__doc__.partition("\n")[0])
@click.option("--heads", default=12, show_default=True, type=click.IntRange(1), help="of the attention")
@click.option("--data", default="bigbird:block=64", show_default=True, help="its mask")
@click.option("--machine", default="ideal", show_default=True)
@click.option("--repeats", default=3, show_default=True, type=click.IntRange(1))
@JSON
def main(heads: int, data: str, machine: str, repeats: int, output: str | None) -> None:
    try:
        programs = {lanes: compiled(*lanes, data, heads, machine) for lanes in LANES}
        seconds(compiled(1, 1, "bigbird:block=4,length=32,features=8", 2, machine))
    except FuseFlowError as error:
        raise click.UsageError(str(error)) from error
    found: dict[tuple[int, int], list[tuple[float, int, int]]] = {lanes: [] for lanes in LANES}
    for _ in range(repeats):
        for lanes, program in programs.items():
            found[lanes].append(seconds(program))
    cases = [case(lanes, runs, len(programs[lanes].regions[0].graph.nodes)) for lanes, runs in found.items()]
    rates = {(c["heads"], c["rows"]): c["firings_per_second"] for c in cases}
    share = rates[4, 4] / rates[1, 1]
    line = "{heads:2} x {rows:2} lanes {nodes:6,} nodes {cpu_seconds:8.2f} s  {firings:14,} firings  {firings_per_second:13,} a second"
    less = f"4 x 4 lanes reach {share:.2f} of the firings a second of one lane"
    figures = {"repeats": repeats, "simulated": machine, "data": data, "of_heads": heads, "share_of_one_lane": round(share, 3)}
    lines = [*(line.format(**one) for one in cases), less]
    finish("lanes", output, lines, {**figures, "cases": cases}, [f"{less}, less than {LEAST}"] if share < LEAST else [])


def case(lanes: tuple[int, int], runs: list[tuple[float, int, int]], nodes: int) -> dict[str, Any]:
    median = statistics.median(run[0] for run in runs)
    _, firings, cycles = runs[0]
    return {
        "heads": lanes[0],
        "rows": lanes[1],
        "nodes": nodes,
        "cpu_seconds": round(median, 3),
        "firings": firings,
        "firings_per_second": round(firings / median),
        "cycles": cycles,
    }


if __name__ == "__main__":
    main()
