"""Random graphs as circuits, against the reference simulator.

Every graph is a case of `tests/support/hardware_cases.py`. The rules of its nodes run in Python, cycle by cycle, and every token of every
stream, its cycle, every firing of every node and every deadlock must be those of the reference simulator. Prints each difference with its
seed, then how many graphs had each primitive.

Exit status 1 if anything differs, or if, of 2,000 graphs or more, a primitive is in fewer than 50 or a form of one in fewer than 20.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from hardware_cases import Tally, check, hardware_case

from fuseflow.hardware.python_code import Step

CHUNK = 50
LONG = 2000
QUOTA, FORM_QUOTA = 50, 20
"""In how many graphs each primitive must be, and each form of one."""


@click.command(help=__doc__.partition("\n")[0])
@click.option("--graphs", default=LONG, show_default=True, type=click.IntRange(1), help="how many graphs, without tiles")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="of the first graph")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="processes")
def main(graphs: int, seed: int, jobs: int) -> None:
    total, wrong, start = Tally(), 0, time.process_time()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for tally, lines in pool.imap(run, (seed + CHUNK * k for k in range(2 * graphs // CHUNK + 2))):
            add(total, tally)
            wrong += len(lines)
            for line in lines:
                click.echo(line)
            if total.graphs >= graphs:
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
    click.echo(f"{total.graphs} graphs from seed {seed}: {wrong} differ, {total.deadlocks} deadlocks, {total.firings} firings")
    click.echo(f"{time.process_time() - start:.0f} s here", err=True)
    sys.exit(bool(wrong or rare))


def add(total: Tally, more: Tally) -> None:
    total.graphs += more.graphs
    total.deadlocks += more.deadlocks
    total.firings += more.firings
    total.refused += more.refused
    total.primitives += more.primitives


def run(first: int) -> tuple[Tally, list[str]]:
    """Check the seeds from `first` on, a chunk of them."""
    tally, steps, lines = Tally(), dict[str, Step](), list[str]()
    for seed in range(first, first + CHUNK):
        case = hardware_case(seed)
        if case is not None:
            found = check(case, tally, steps)
            lines += [f"seed {seed}: {line}" for line in found[:3]]
    return tally, lines


if __name__ == "__main__":
    main()
