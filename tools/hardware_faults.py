"""Faults that are planted in circuits of random graphs, and must be found by the comparison with the simulator.

Each fault is planted in graphs that have its primitive, until one of them shows it. Prints for each fault how many graphs that took.

Exit status 1 if a fault is not found in any of the graphs.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import get_args

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from hardware_cases import MemoryKind
from hardware_faults import faults, noticed

from fuseflow.hardware.comparison import Simulated, simulated
from fuseflow.hardware.python_code import Step

KINDS = ((False, False), (True, False), (False, True))
"""Whether cases have tiles, and whether they are those of writers of lanes."""


@click.command(help=__doc__.partition("\n")[0])
@click.option("--graphs", default=400, show_default=True, type=click.IntRange(1), help="how many seeds are tried")
def main(graphs: int) -> None:
    left = dict.fromkeys(faults(), 0)
    total, steps = len(left), dict[str, Step]()
    for seed, memory, (tiles, lanes) in product(range(graphs), get_args(MemoryKind), KINDS):
        tried = [fault for fault in left if (fault.memory, fault.tiles, fault.lanes) == (memory, tiles, lanes)]
        if not tried:
            continue
        case = tried[0].case(seed)
        ops, answers = {node.op for node in case.graph.nodes}, dict[bool, Simulated]()
        for fault in [fault for fault in tried if not fault.op or fault.op in ops]:
            if fault.slow not in answers:
                answers[fault.slow] = simulated(case.graph, case.tensors, fault.machine(case), engine="reference")
            left[fault] += 1
            if noticed(fault, case, answers[fault.slow], steps):
                click.echo(f"{fault.name}: found with seed {seed}, in graph {left.pop(fault)} of those that can show it")
    for fault, count in left.items():
        click.echo(f"{fault.name}: NOT FOUND in {count} graphs")
    click.echo(f"{total - len(left)} of {total} faults found")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
