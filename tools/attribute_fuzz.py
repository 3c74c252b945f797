"""Random programs with random attributes: is what `fuseflow.propagation` says of them true?

    python tools/attribute_fuzz.py [--programs 10000] [--seed 0] [--jobs 2]

A quarter of the seeds is multilinear, and there every element that is called needed must change an output. A quarter comes from the
generator of `tools/fuzz.py`, and the rest are of the kind that models are made of. Everywhere, junk in what is unknown and not needed, and
the implicit value in what else is dead, must change no output; what is known must be what is computed; and the program without what it
does not need must have the same outputs. Exit status 1 if a program differs, whose seed is printed.
"""

from __future__ import annotations

import multiprocessing
import sys
import traceback
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from attribute_fuzz import Tally, check_drawn, check_model

CHUNK = 50
"""The programs of one seed."""


def checked(seed: int) -> tuple[int, Tally | None, str]:
    """Check the programs of a seed, and return what is wrong with one of them."""
    try:
        if seed % 4 == 0:
            return seed, check_drawn(seed, CHUNK), ""
        tallies = [check_model(seed * CHUNK + number, multilinear=seed % 4 == 1) for number in range(CHUNK)]
        return seed, Tally(*(sum(column) for column in zip(*tallies, strict=True))), ""
    except Exception:  # any error is what is looked for
        return seed, None, traceback.format_exc(limit=-2)


@click.command(help=__doc__.splitlines()[0] if __doc__ else None)
@click.option("--programs", default=10_000, show_default=True)
@click.option("--seed", default=0, show_default=True, help=f"Of the first {CHUNK} programs.")
@click.option("--jobs", default=2, show_default=True)
def main(programs: int, seed: int, jobs: int) -> None:
    chunks, wrong, tallies = -(-programs // CHUNK), 0, list[Tally]()
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for count, (number, tally, problem) in enumerate(pool.imap_unordered(checked, range(seed, seed + chunks)), 1):
            if tally is None:
                wrong += 1
                click.echo(f"seed {number}: {problem}")
            else:
                tallies.append(tally)
            if count % 20 == 0:
                click.echo(f"{count * CHUNK:,} programs")
    dead, cuts, statements = (sum(column) for column in zip(*tallies, strict=True))
    click.echo(f"{chunks * CHUNK:,} programs, {wrong} seeds with a wrong one")
    click.echo(f"{dead:,} dead elements, {cuts:,} dimensions cut, {statements:,} statements gone")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
