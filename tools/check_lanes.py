"""Whether models compute with lanes what they do without.

    python tools/check_lanes.py [--all] [--model gcn]... [--from 0]

Runs every model of the repository at its small size: a few combinations of two factors, fusion, machine and dealt loops that hold every
two choices together, or (`--all`) every combination, thousands. Values must be those of one lane, whole numbers exactly, others up to 1e-5
of the largest, and as near to PyTorch's. Prints what differs and the number of each line of progress, from which `--from` goes on. Exit
status 1 if anything differs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from model_lanes import MODELS, covering, every, wrong

PROGRESS = 10.0
"""Seconds between two lines of progress."""


@click.command(help=__doc__.partition("\n")[0])
@click.option("--all", "everything", is_flag=True, help="every combination")
@click.option("--model", "models", multiple=True, type=click.Choice(list(MODELS)), help="one of them; repeatable")
@click.option("--from", "start", default=0, show_default=True, type=click.IntRange(0), help="the first combination to run")
def main(everything: bool, models: tuple[str, ...], start: int) -> None:
    chosen = every(models or list(MODELS)) if everything else list(covering(models or list(MODELS)))
    begun = last = time.monotonic()
    differ = 0
    for number, combination in enumerate(chosen[start:], start):
        found = wrong(combination)
        if found:
            differ += 1
            click.echo(f"{combination}: {found}")
        if time.monotonic() - last > PROGRESS:
            last = time.monotonic()
            click.echo(f"{number + 1:,} of {len(chosen):,} combinations, {differ} differ, {last - begun:.0f} s", err=True)
    click.echo(f"{len(chosen[start:]):,} combinations, {differ} differ, {time.monotonic() - begun:.0f} s")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
