"""How short recorded netlists are placed, how short they can be, and what that takes.

    python tools/bench/placing.py [--effort 10] [--seeds 4] [--exact SECONDS] [--case NAME] [--json FILE|-]

`known` is the best length on record, with a star if it is proven. `annealed` has the lengths of all seeds, the shortest first, and the
processor seconds of one. `bound` is the lower bound of groups of nets; with `--exact`, it is that of the exact search, and `exact` the
length that this ends with. Exits with 1 if an annealed length is more than 3 % above the best on record.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
from host import JSON, finish

from fuseflow.array.anneal import anneal, anneal_seed
from fuseflow.array.exact import exact_placement, lower_bound
from fuseflow.array.grid import Grid

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from arrays import RecordedNetlist, recorded_netlists

MOST = 1.03


def measured(recorded: RecordedNetlist, effort: float, seeds: int, seconds: float) -> dict[str, Any]:
    netlist, grid = recorded.netlist, Grid.of(recorded.array)
    anneal(netlist, grid, effort=0.001, seeds=1)  # loads the kernel
    start = time.process_time()
    placements = [anneal_seed(netlist, grid, effort, seed) for seed in range(seeds)]
    annealed = time.process_time()
    best = min(placements, key=lambda placement: placement.wirelength)
    figures = {"known": recorded.wirelength, "proven": recorded.proven, "annealed": sorted(p.wirelength for p in placements)}
    figures["seconds_a_seed"] = (annealed - start) / seeds
    if seconds:
        exact = exact_placement(netlist, grid, best, seconds)
        figures |= {"exact": exact.placement.wirelength, "bound": exact.bound}
    else:
        figures["bound"] = lower_bound(netlist, grid)
    return {**figures, "bound_seconds": time.process_time() - annealed}


@click.command(help=__doc__)
@click.option("--effort", default=10.0, show_default=True)
@click.option("--seeds", default=4, show_default=True)
@click.option("--exact", "seconds", default=0.0, help="Search for so many seconds, too.")
@click.option("--case", default="", help="Only netlists whose names have this in them.")
@JSON
def main(effort: float, seeds: int, seconds: float, case: str, output: str | None) -> None:
    cases = {r.name: measured(r, effort, seeds, seconds) for r in recorded_netlists() if case in r.name}
    lines = [f"{'':34} known  annealed (s a seed)  exact  bound (s)"]
    for name, f in cases.items():
        lengths = " ".join(map(str, f["annealed"]))
        lines.append(
            f"{name:34} {f['known']:4}{'*' if f['proven'] else ' '}  {lengths} ({f['seconds_a_seed']:.2f})  {f.get('exact', '-')}"
            f"  {f['bound']} ({f['bound_seconds']:.1f})"
        )
    long = [f"{name}: {f['annealed'][0]} is too long" for name, f in cases.items() if f["annealed"][0] > MOST * f["known"]]
    finish("placing", output, lines, {"effort": effort, "seeds": seeds, "cases": cases}, long)


if __name__ == "__main__":
    main()
