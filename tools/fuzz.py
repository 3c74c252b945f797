"""Random programs at every level, or random graphs on both simulators.

    python tools/fuzz.py --programs 20000 [--seed 0] [--jobs 2] [--bitmap] [--nm] [--wide|--views|--hard|--chosen] [--keep] [--narrow]
        [--split] [--recompute] [--surfaces 5] [--linalg] [--tile]
    python tools/fuzz.py --graphs 100000 [--seed 0] [--jobs 2] [--size small|medium|large] [--bitmap] [--nm] [--select] [--narrow]
        [--f32] [--lanes] [--dram] [--hops] [--turns]
    python tools/fuzz.py --training 3000 [--seed 0] [--jobs 2] [--tile]
    python tools/fuzz.py --arrays 1000 [--seed 0] [--jobs 2]

Programs: one to six Einsums with data, formats and a schedule are compiled and run, and must mean the same in PyTorch, to the Einsum
interpreter, to the fused interpreter, as a graph on the reference simulator and on the engine, or be refused with an error that names
the reason. What differs is made smaller and kept in tests/data/programs, where it is a test from then on. The last line sums up.

Graphs: every graph runs on the reference and on the engine, with its usual limits or tiny ones, half of them at HBM2 or another memory
that takes time, of which every second has reuse buffers of one line to hundreds, every fourth preloads and another fourth places in a
scratchpad, and both must say the same:
outputs to the last bit, cycles, statistics of nodes, edges and memory, the tokens of every stream and the cycles in which they are
visible, the text of a deadlock. No run may take less than its roofline.
Prints every difference with its seed, and the first few as tests to paste, made smaller.

Every hundred programs have a seed of their own: --seed goes on where a run was stopped, and every line of progress says with which one.
`--help` says what each option does. With --surfaces N one program of N is also asked everything else: its estimate is compared with its
run, a schedule is chosen for it, its fusion, orders and cycles are explained, the page about its run is made, and what is saved of it is
read again and simulated. With --linalg what is read again must give the same regions, loop orders and graphs to the byte, and the same
values. With --tile outputs, losses, gradients and parameters must be the same to the last bit, and one program of three takes the same
cycles on both engines. With --hard each entry has a bound on what rounding makes of it, and is compared with its own; the others are
compared with the largest as well. With --hops graphs must say the same with a process for each hop, too.

Training: small PyTorch models of random layers, with weights in random layouts, a loss, an optimizer and a cut, take one to three training
steps. Each is checked as every run is, against PyTorch in f32 and f64, and the slope of the loss is measured in f64 for some.

Arrays: a schedule is searched for each program on Onyx, or on a small array whose ports bind. Nothing that is given back may lack tiles,
or fail to be placed, routed and read back, and its cycles must be those of its run and of loading.

Exit status 1 if anything differs, or if a long run of programs misses its quotas.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import array_fuzz
import graph_fuzz
import program_fuzz
import training_fuzz
from program_files import save
from program_fuzz import CHUNK, Tally
from tiled_programs import KINDS as TILE_KINDS

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "data" / "programs"
SHRUNK = 3
"""Differing graphs that are made smaller."""
PROGRESS = 5.0
"""Seconds between two lines of progress."""
LONG = 1000
"""Programs from which the quotas must hold."""
BOTH = {
    "bitmap": "store some levels as bitmaps",
    "nm": "store some compressed levels of inputs n:m",
    "narrow": "store some tensors in elements of few bits",
}
"""The kinds of programs and of graphs."""
OF_PROGRAMS = {
    "wide": "merged and split dimensions, lists of coordinates of rank 3, empty operands, integers, scalars, vectors, any machine",
    "views": "slices, windows, gathers, scatters, concatenations, maxima by pattern, top-k",
    "keep": "keep parts of some results, drop zeros of others, and store some n:m",
    "split": "make some indices two loops",
    "hard": "values that cancel, NaN, infinities, sizes of 0",
    "chosen": "products, softmax and masks of what is chosen by data",
    "recompute": "later regions compute some Einsums again",
}
OF_GRAPHS = {
    "select": "each with a `select`",
    "f32": "on machines that compute in 32-bit floats",
    "lanes": "dense results that are written in lanes",
    "dram": "each at a DRAM of any preset or table",
    "hops": "with none to 12 hops on their edges, in front of FIFOs of 2 to 64 slots",
    "turns": "with turns at ports to the memory, of one to four",
}
OWN_DRAWS = ("wide", "views", "hard", "chosen")
"""The kinds that are drawn in place of the usual programs."""


def kind_options(main: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each kind."""
    for which, kinds in (("graphs: ", OF_GRAPHS), ("programs: ", OF_PROGRAMS), ("", BOTH)):
        for kind, text in reversed(kinds.items()):
            main = click.option(f"--{kind}", is_flag=True, help=which + text)(main)
    return main


@click.command(help=__doc__.partition("\n")[0])
@click.option("--programs", type=click.IntRange(1), help="how many programs")
@click.option("--graphs", type=click.IntRange(1), help="how many graphs")
@click.option("--training", type=click.IntRange(1), help="how many training steps")
@click.option("--arrays", type=click.IntRange(1), help="how many programs with a schedule for an array")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help=f"of the first graph, or {CHUNK} programs")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="processes")
@click.option("--size", type=click.Choice(["small", "medium", "large"]), help="of the graphs; mixed if not given")
@kind_options
@click.option("--linalg", is_flag=True, help="programs: write them as scheduled Linalg and read them again, too")
@click.option("--tile", is_flag=True, help="programs and training: run them in tiles and with a scratchpad, too")
@click.option("--surfaces", default=0, metavar="N", type=click.IntRange(0), help="programs: ask one of N everything else, too")
def main(
    programs: int | None,
    graphs: int | None,
    training: int | None,
    arrays: int | None,
    seed: int,
    jobs: int,
    size: Any,
    linalg: bool,
    tile: bool,
    surfaces: int,
    **kinds: bool,
) -> None:
    if [programs, graphs, training, arrays].count(None) != 3:
        raise click.UsageError("give one of --programs, --graphs, --training and --arrays")
    asked = {kind for kind, on in kinds.items() if on}
    of_programs = {*OF_PROGRAMS} & asked | {name for name, on in (("linalg", linalg), ("surfaces", surfaces)) if on}
    of_graphs = {*OF_GRAPHS} & asked | ({"size"} if size else set())
    if programs is None and of_programs:
        raise click.UsageError(f"{flags(of_programs)}: of --programs alone")
    if graphs is None and of_graphs:
        raise click.UsageError(f"{flags(of_graphs)}: of --graphs alone")
    if (graphs or arrays) is not None and tile:
        raise click.UsageError("--tile is of --programs and --training")
    if (training or arrays) is not None and asked:
        raise click.UsageError("--training and --arrays take no options but --seed, --jobs and, of --training, --tile")
    if len({*OWN_DRAWS} & asked) > 1:
        raise click.UsageError(f"give one of {flags(OWN_DRAWS)}")
    if {"hard", "chosen"} & asked and {"keep", "narrow", "split", "recompute"} & asked:
        raise click.UsageError(
            "--hard and --chosen draw programs of their own, which take no --keep, --narrow, --split or --recompute"
        )
    if "lanes" in asked and (size or len(asked) > 1):
        raise click.UsageError("--lanes draws graphs of its own, which take no other options")
    if programs is not None:
        sys.exit(fuzz_programs(programs, seed, jobs, dict.fromkeys(asked, True), surfaces, linalg, tile))
    if training is not None:
        sys.exit(fuzz_training(training, seed, jobs, tile))
    if arrays is not None:
        sys.exit(fuzz_arrays(arrays, seed, jobs))
    sys.exit(fuzz_graphs(graphs or 0, seed, jobs, size, {"single" if kind == "f32" else kind: True for kind in asked}))


def flags(names: Iterable[str]) -> str:
    return ", ".join(f"--{name}" for name in sorted(names))


def fuzz_programs(programs: int, seed: int, jobs: int, kinds: dict[str, bool], surfaces: int, linalg: bool, tile: bool) -> bool:
    """Whether anything is wrong."""
    start = last = time.monotonic()
    total = Tally()
    run = partial(run_programs, surfaces=surfaces, linalg=linalg, tile=tile, kinds=kinds)
    prefix = "".join(f"{kind}_" for kind in sorted(kinds))
    for at, tally in enumerate(in_processes(run, chunks(programs, seed, CHUNK), jobs), seed):
        total.add(tally)
        for kept in tally.differing:
            kept = program_fuzz.with_orders(kept)
            path = KEPT / f"{prefix}seed_{kept.seed}.yaml"
            save(kept, path)
            click.echo(f"seed {kept.seed}: {kept.differs}\n{kept.case!r}kept as {path.relative_to(ROOT)}")
        if time.monotonic() - last > PROGRESS:
            last = time.monotonic()
            click.echo(
                f"{total.programs:,} of {programs:,} programs, {len(total.differing)} differ, {last - start:.0f} s, "
                f"go on with --seed {at + 1}",
                err=True,
            )
    for kind, count in total.refused.most_common():
        click.echo(f"refused {count} times, {kind}\n{total.examples[kind]}")
    wrong = program_fuzz.missed(total, **kinds) if total.programs >= LONG else []
    for line in wrong:
        click.echo(f"missed, {line}")
    names = [
        *program_fuzz.quotas_of(**kinds),
        *([program_fuzz.SURFACES] if surfaces else []),
        *(TILE_KINDS if tile else ()),
    ]
    quotas = ", ".join(f"{name} {total.share(name):.0%}" for name in names)
    click.echo(
        f"{total.programs} programs from seed {seed}: {len(total.differing)} differ, {total.refused.total()} refused "
        f"({total.refusals:.2%}), {total.too_large} too large to run, {total.regions} regions, {quotas}, {time.monotonic() - start:.0f} s"
    )
    if tile:
        click.echo(", ".join(f"{total.quotas[kind]} with {kind}" for kind in TILE_KINDS))
    return bool(total.differing or wrong)


def chunks(count: int, seed: int, size: int) -> list[tuple[int, int]]:
    """The seeds of chunks, and how many cases each has."""
    return [(seed + n, min(size, count - n * size)) for n in range(-(-count // size))]


def in_processes(run: Callable[[tuple[int, int]], T], work: list[tuple[int, int]], jobs: int) -> Iterator[T]:
    """What becomes of every chunk, in order."""
    if jobs == 1:
        yield from map(run, work)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(run, work)


def run_programs(chunk: tuple[int, int], kinds: dict[str, bool], surfaces: int, linalg: bool, tile: bool) -> Tally:
    return program_fuzz.run(*chunk, surfaces=surfaces, linalg=linalg, tile=tile, **kinds)


def fuzz_graphs(graphs: int, seed: int, jobs: int, size: Any, kinds: dict[str, bool]) -> bool:
    """Whether anything differs."""
    start = last = time.monotonic()
    deadlocks = firings = done = 0
    wrong: list[int] = []
    for outcome in graph_fuzz.outcomes(range(seed, seed + graphs), size, jobs, **kinds):
        done, firings, deadlocks = done + 1, firings + outcome.firings, deadlocks + outcome.deadlock
        for line in outcome.lines:
            click.echo(f"seed {outcome.seed}: {line}")
        if outcome.lines:
            wrong.append(outcome.seed)
            if len(wrong) <= SHRUNK:
                click.echo(graph_fuzz.smaller(outcome.seed, size, **kinds))
        if time.monotonic() - last > PROGRESS:
            last = time.monotonic()
            click.echo(f"{done:,} of {graphs:,} graphs, {len(wrong)} differ, {last - start:.0f} s", err=True)
    counts = f"{len(wrong)} differ, {deadlocks} deadlocks, {firings} firings, {time.monotonic() - start:.0f} s"
    click.echo(f"{done} graphs from seed {seed}: {counts}")
    return bool(wrong)


def fuzz_training(steps: int, seed: int, jobs: int, tile: bool) -> bool:
    """Whether anything is wrong."""
    start = last = time.monotonic()
    total = training_fuzz.Tally()
    for at, outcome in enumerate(training_fuzz.outcomes(range(seed, seed + steps), jobs, tile), seed + 1):
        total.add(*outcome)
        if outcome[1] in ("wrong", "crash"):
            click.echo(total.faults[-1])
        if time.monotonic() - last > PROGRESS:
            last = time.monotonic()
            click.echo(f"{at - seed:,} of {steps:,} training steps, {last - start:.0f} s, go on with --seed {at}", err=True)
    for reason, count in total.refusals.most_common():
        click.echo(f"refused {count} times: {reason}")
    click.echo(f"{steps} training steps from seed {seed}: {total.summary}, {time.monotonic() - start:.0f} s")
    return bool(total.faults)


def fuzz_arrays(programs: int, seed: int, jobs: int) -> bool:
    """Whether anything is wrong."""
    start, total = time.monotonic(), array_fuzz.Tally()
    for tally in in_processes(run_arrays, chunks(programs, seed, array_fuzz.CHUNK), jobs):
        total.update(tally)
        for fault in tally.faults:
            click.echo(fault)
        click.echo(f"{total.summary}, {len(total.faults)} wrong, {time.monotonic() - start:.0f} s", err=True)
    click.echo(f"from seed {seed}: {total.summary}, {len(total.faults)} wrong, {time.monotonic() - start:.0f} s")
    return bool(total.faults)


def run_arrays(chunk: tuple[int, int]) -> array_fuzz.Tally:
    return array_fuzz.run(*chunk)


if __name__ == "__main__":
    main()
