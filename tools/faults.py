"""How soon random programs find faults that are planted in the compiler, its operators and a simulator.

    python tools/faults.py [--limit 2000] [--seed 0] [--jobs 2] [FAULT...]

Plants one fault after the other, runs programs until one differs, and prints after how many. Faults that a run does not show are looked
for in wide programs, which are asked everything else, too; faults of offsets, selections and the like in programs with views. FAULT:
words of the faults to plant, all if none are given. Exit status 1 if one is not found.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import program_fuzz
from program_faults import FAULTS, WIDE_FAULTS
from view_faults import VIEW_FAULTS

ALL = FAULTS | WIDE_FAULTS | VIEW_FAULTS


@dataclass(frozen=True)
class Found:
    """After how many programs a fault was found, and by what; `differs` is empty if it was not."""

    fault: str
    programs: int
    differs: str


def find(fault: str, seed: int, limit: int) -> Found:
    done = 0
    wide, views = fault in WIDE_FAULTS, fault in VIEW_FAULTS
    with ALL[fault]():
        while done < limit:
            programs = min(program_fuzz.CHUNK, limit - done)
            tally = program_fuzz.run(seed, programs, smaller=False, wide=wide, views=views, surfaces=int(wide))
            done, seed = done + tally.programs, seed + 1
            if tally.differing:
                return Found(fault, done, tally.differing[0].differs)
    return Found(fault, done, "")


def results(work: list[tuple[str, int, int]], jobs: int) -> Iterator[Found]:
    if jobs == 1:
        yield from (find(*one) for one in work)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap(_find, work, chunksize=1)


def _find(work: tuple[str, int, int]) -> Found:
    return find(*work)


@click.command(help=__doc__.partition("\n")[0])
@click.option("--limit", default=2000, show_default=True, type=click.IntRange(1), help="programs before a fault counts as missed")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="of the first programs")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="processes")
@click.argument("words", nargs=-1)
def main(limit: int, seed: int, jobs: int, words: tuple[str, ...]) -> None:
    faults = [fault for fault in ALL if not words or any(word in fault for word in words)]
    missed = 0
    for found in results([(fault, seed, limit) for fault in faults], jobs):
        missed += not found.differs
        what = found.differs.splitlines()[0][:70] if found.differs else "NOT FOUND"
        click.echo(f"{found.fault:<75} {found.programs:>5}  {what}")
    click.echo(f"{len(faults)} faults from seed {seed}: {missed} not found within {limit} programs")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
