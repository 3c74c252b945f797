"""The engine against the reference on random graphs.

    python tools/fuzz.py [--graphs 100000] [--seed 0] [--jobs 2] [--size small|medium|large]

Every graph runs on both, on the engine with its usual limits or tiny ones, and both must say the same: outputs to the last bit, cycles,
statistics of nodes and edges, the tokens of every stream and the cycles in which they are visible, the text of a deadlock. Prints
every difference with its seed, and the first few as tests to paste, made smaller. Exit status 1 if there is any.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from engines import LIMITS, Found, differences, on_engine, on_reference
from random_graphs import Case, Size, describe, random_case, shrink

from fuseflow.errors import SimulationError
from fuseflow.samml.verify import verify
from fuseflow.sim.deadlock import Deadlock
from fuseflow.sim.statistics import Outcome

CHUNK = 25
"""Graphs that a job takes at a time."""
SHRUNK = 3
"""Differing graphs that are made smaller."""
PROGRESS = 5.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Seen:
    """What both said of one seed."""

    seed: int
    firings: int
    deadlock: bool
    lines: tuple[str, ...]


def compare(case: Case, seed: int) -> tuple[Found, tuple[str, ...]]:
    """What the reference says, and in what the engine differs. A graph that is refused, or ends otherwise than in its outputs or a
    deadlock, is a fault too."""
    verify(case.graph)
    expected = on_reference(case)
    lines = list(differences(case, expected, on_engine(case, LIMITS[seed % len(LIMITS)])))
    if isinstance(expected, SimulationError):
        lines.insert(0, f"reference: {expected}")
    return expected, tuple(lines)


def check(seed: int, size: Size | None) -> Seen:
    try:
        expected, lines = compare(random_case(seed, size), seed)
    except Exception as error:  # the generator itself, or a traceback of a simulator
        return Seen(seed, 0, False, (f"{type(error).__name__}: {error}",))
    firings = sum(node.firings for node in expected.nodes) if isinstance(expected, Outcome) else 0
    return Seen(seed, firings, isinstance(expected, Deadlock), lines)


def outcomes(seeds: range, size: Size | None, jobs: int) -> Iterator[Seen]:
    """In the order of the seeds."""
    one = partial(check, size=size)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(one, seeds, CHUNK)


def smaller(seed: int, size: Size | None) -> str:
    """The case of a seed that differs, as a test to paste."""
    return describe(shrink(random_case(seed, size), lambda case: differs(case, seed)))


def differs(case: Case, seed: int) -> bool:
    try:
        return bool(compare(case, seed)[1])
    except Exception:
        return True


@click.command()
@click.option("--graphs", default=1000, show_default=True, type=click.IntRange(1), help="how many")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="of the first; the others follow")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="processes")
@click.option("--size", type=click.Choice(["small", "medium", "large"]), help="of the graphs; mixed if not given")
def main(graphs: int, seed: int, jobs: int, size: Any) -> None:
    start = last = time.monotonic()
    deadlocks = firings = done = 0
    wrong: list[int] = []
    for outcome in outcomes(range(seed, seed + graphs), size, jobs):
        done, firings, deadlocks = done + 1, firings + outcome.firings, deadlocks + outcome.deadlock
        for line in outcome.lines:
            click.echo(f"seed {outcome.seed}: {line}")
        if outcome.lines:
            wrong.append(outcome.seed)
            if len(wrong) <= SHRUNK:
                click.echo(smaller(outcome.seed, size))
        if time.monotonic() - last > PROGRESS:
            last = time.monotonic()
            click.echo(f"{done:,} of {graphs:,} graphs, {len(wrong)} differ, {last - start:.0f} s", err=True)
    seconds = time.monotonic() - start
    counts = f"{len(wrong)} differ, {deadlocks} deadlocks, {firings} firings, {seconds:.0f} s"
    click.echo(f"{done} graphs from seed {seed}: {counts}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
