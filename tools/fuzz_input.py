"""Damaged and made-up files of every kind that fuseflow reads.

    python tools/fuzz_input.py [--inputs 1000] [--seed 0] [--kind npz ...] [--command 500]
    python tools/fuzz_input.py --kind npz --seed 0 --only 17 --show

Half of the inputs of a kind are good files with changed bytes: flipped, cut off, spliced, repeated, with numbers and words that mean
something. The other half are containers that were taken apart, changed in one part and put together again with checksums that fit, or
texts and messages that follow a grammar. A reader must return, or raise an error that a command ends with as status 2, in 2 seconds of a
processor and 1 GB of memory. At least 30 % of each kind must get past the first parser. A process that an input ends is told with the
input, and another one goes on behind it.

With --command N, N of the inputs are also given to the real command, which must end with 0 or 2, without a traceback. A graph may end with
1 as well, since a graph that is well-formed may come to a deadlock, or write outside of its tensor.

Exit status 1 if anything is wrong.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from input_fuzz import command_lines
from input_fuzz.campaign import Tally, bounded_memory, content_of, judge, run_in_child
from input_fuzz.kinds import KINDS, Kind, prepare

LEAST_PAST = 0.3
"""The share of each kind that must get past the first parser."""
LONGEST = 120
"""The seconds that a command may take, of which other processes may have most."""
CHUNK = 5000
"""Inputs that one child reads."""


@click.command(help=__doc__.partition("\n")[0])
@click.option("--inputs", default=1000, show_default=True, type=click.IntRange(1), help="Of each kind.")
@click.option("--seed", default=0, show_default=True)
@click.option("--kind", "names", multiple=True, type=click.Choice(sorted(KINDS)), help="Only this kind; repeatable.")
@click.option("--only", type=click.IntRange(0), help="Only the input of this number.")
@click.option("--show", is_flag=True, help="Write the input of --only to standard output.")
@click.option("--command", "commands", default=0, show_default=True, type=click.IntRange(0), help="Inputs for the real command.")
def main(inputs: int, seed: int, names: tuple[str, ...], only: int | None, show: bool, commands: int) -> None:
    kinds = [KINDS[name] for name in names] or list(KINDS.values())
    if only is not None:
        sys.exit(_one(kinds[0], seed, only, show))
    faults = 0 if commands else sum(_campaign(kind, seed, inputs) for kind in kinds)
    if commands:
        faults += _commands(kinds, seed, commands)
    sys.exit(1 if faults else 0)


def _campaign(kind: Kind, seed: int, inputs: int) -> int:
    """Read inputs of a kind, print what became of them, and return the number of faults."""
    start, total = time.process_time() + sum(os.times()[2:4]), Tally()
    for first in range(0, inputs, CHUNK):
        part = run_in_child(kind, seed, range(first, min(first + CHUNK, inputs)))
        total.inputs, total.past = total.inputs + part.inputs, total.past + part.past
        total.accepted, total.faults = total.accepted + part.accepted, total.faults + part.faults
    seconds = time.process_time() + sum(os.times()[2:4]) - start
    click.echo(f"{total.line(kind.name)}, {total.inputs / max(seconds, 1e-9):,.0f} a processor second")
    told = set[str]()
    for fault in total.faults:
        signature = fault.partition(": ")[2].partition(": ")[0]
        if signature not in told:
            told.add(signature)
            click.echo(f"  {fault}")
    few = total.past < LEAST_PAST * total.inputs
    if few:
        click.echo("  too few get past the first parser")
    return len(total.faults) + few


def _one(kind: Kind, seed: int, number: int, show: bool) -> int:
    content = content_of(kind, seed, number)
    if show:
        sys.stdout.buffer.write(content)
        return 0
    prepare([kind])
    bounded_memory()
    with tempfile.TemporaryDirectory() as folder:
        past, accepted, fault = judge(kind, content, Path(folder))
    click.echo(fault or f"{'accepted' if accepted else 'refused'}, {'past' if past else 'not past'} the first parser")
    return 1 if fault else 0


def _commands(kinds: list[Kind], seed: int, count: int) -> int:
    """Give inputs to the real command, and return the number of faults."""
    chance, faults, statuses = random.Random(seed), 0, dict[int, int]()
    for turn in range(count):
        kind, number = kinds[turn % len(kinds)], chance.randrange(1_000_000)
        with tempfile.TemporaryDirectory() as name:
            line = command_lines.command_line(kind, content_of(kind, seed, number), Path(name))
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "fuseflow", *line.words],
                    capture_output=True,
                    timeout=LONGEST,
                    cwd=name,
                    env={**os.environ, **line.variables},
                )
            except subprocess.TimeoutExpired:
                faults += 1
                click.echo(f"  {kind.name}, the {number}th: no end within {LONGEST} seconds")
                continue
        statuses[done.returncode] = statuses.get(done.returncode, 0) + 1
        told = done.stderr.decode("utf-8", "replace")
        if done.returncode not in line.statuses or "internal error" in told or "Traceback" in told or "\x1b" in told:
            faults += 1
            click.echo(f"  {kind.name}, the {number}th: status {done.returncode}: {told[:400]}")
    click.echo(
        f"{count} inputs for the command: {', '.join(f'{n} ended with {status}' for status, n in sorted(statuses.items()))}"
    )
    return faults


if __name__ == "__main__":
    main()
