"""Simulators against each other on random graphs.

    python tools/fuzz.py [--graphs 100000] [--seed 0] [--jobs 2] [--engines reference,fast] [--size small|medium|large]

Every graph runs on every engine, and all must say the same as the first: outputs to the last bit, cycles, statistics of nodes and
edges, FLOPs, traffic, the tokens of every stream and the cycles in which they are visible, the text of a deadlock. Prints every
difference with its seed, and the first few as tests to paste, made smaller. Exit status 1 if there is any.
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

from random_graphs import Case, Size, describe, random_case, shrink
from random_graphs.compare import Found, differences, found

from fuseflow.errors import DeadlockError
from fuseflow.samml.verify import verify
from fuseflow.sim import Simulation, simulate

CHUNK = 25
"""Graphs that a job takes at a time."""
SHRUNK = 3
"""Differing graphs that are made smaller."""
PROGRESS = 5.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Outcome:
    """What the engines said of one seed."""

    seed: int
    firings: int
    deadlock: bool
    lines: tuple[str, ...]


def compare(case: Case, engines: tuple[str, ...]) -> tuple[Found, tuple[str, ...]]:
    """What the first engine says, and in what the others differ. A graph that is refused, or ends otherwise than in its outputs or a
    deadlock, is a fault too."""
    try:
        verify(case.graph)
    except Exception as error:
        return error, (f"does not verify: {error}",)
    # The engine is named only where there is a choice: `simulate` need not know the keyword before there are two.
    runs = [found(case, partial(simulate, engine=name) if len(engines) > 1 else simulate) for name in engines]
    first = runs[0]
    lines = [f"{name}: {line}" for name, run in zip(engines[1:], runs[1:], strict=True) for line in differences(first, run)]
    if not isinstance(first, Simulation | DeadlockError):
        lines.insert(0, f"{engines[0]}: {type(first).__name__}: {first}")
    return first, tuple(lines)


def check(seed: int, engines: tuple[str, ...], size: Size | None) -> Outcome:
    try:
        first, lines = compare(random_case(seed, size), engines)
    except Exception as error:  # the generator itself
        return Outcome(seed, 0, False, (f"no graph: {type(error).__name__}: {error}",))
    firings = first.firings if isinstance(first, Simulation) else 0
    return Outcome(seed, firings, isinstance(first, DeadlockError), lines)


def outcomes(seeds: range, engines: tuple[str, ...], size: Size | None, jobs: int) -> Iterator[Outcome]:
    """In the order of the seeds."""
    one = partial(check, engines=engines, size=size)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(one, seeds, CHUNK)


def smaller(seed: int, engines: tuple[str, ...], size: Size | None) -> str:
    """The case of a seed that differs, as a test to paste."""
    return describe(shrink(random_case(seed, size), lambda case: bool(compare(case, engines)[1])))


@click.command()
@click.option("--graphs", default=1000, show_default=True, type=click.IntRange(1), help="how many")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="of the first; the others follow")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="processes")
@click.option("--engines", default="reference", show_default=True, help="names, the first is the one to agree with")
@click.option("--size", type=click.Choice(["small", "medium", "large"]), help="of the graphs; mixed if not given")
def main(graphs: int, seed: int, jobs: int, engines: str, size: Any) -> None:
    names = tuple(engines.split(","))
    start = last = time.monotonic()
    deadlocks = firings = done = 0
    wrong: list[int] = []
    for outcome in outcomes(range(seed, seed + graphs), names, size, jobs):
        done, firings, deadlocks = done + 1, firings + outcome.firings, deadlocks + outcome.deadlock
        for line in outcome.lines:
            click.echo(f"seed {outcome.seed}: {line}")
        if outcome.lines:
            wrong.append(outcome.seed)
            if len(wrong) <= SHRUNK and not outcome.lines[0].startswith(("no graph", "does not verify")):
                click.echo(smaller(outcome.seed, names, size))
        if time.monotonic() - last > PROGRESS:
            last = time.monotonic()
            click.echo(f"{done:,} of {graphs:,} graphs, {len(wrong)} differ, {last - start:.0f} s", err=True)
    seconds = time.monotonic() - start
    counts = f"{len(wrong)} differ, {deadlocks} deadlocks, {firings} firings, {seconds:.0f} s"
    click.echo(f"{done} graphs from seed {seed} on {', '.join(names)}: {counts}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
