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

With --wide the programs have merged and split dimensions, scalars beside sparse tensors, empty operands, lists of coordinates of rank 3,
integers, vectors and public primitives, and are for any machine. With --surfaces N one program of N is also asked everything else: its
estimate is compared with its run, a schedule is chosen for it, its fusion, orders and cycles are explained, the page about its run is
made, and what is saved of it is read again and simulated. Every hundred programs have a seed of their own: --seed goes on where a run
was stopped, and every line of progress says with which one.

With --linalg each program is also written as scheduled Linalg and read again, which must give the same regions, loop orders and graphs to
the byte, and the same values.

With --tile each program also runs with regions in tiles and tensors in a scratchpad, at several memories, and must give the same to the
last bit. One of three runs so on both engines, which must take the same cycles.

With --views the programs have what real models have: slices with offsets and strides, windows, gathers and scatters by known positions,
concatenations, maxima by a pattern, and the largest entries of each row.

With --hard the programs have values that cancel, NaN, infinities and dimensions of size 0. Each entry has a bound on what rounding makes of
it, and is compared with its own; the others are compared with the largest as well.

With --chosen the sparsity of programs depends on data: marks of what is chosen route products, a softmax is over what is chosen, products
read kept values, masks stand in the statement of their product, and products have computed sparse factors.

With --keep the same programs are drawn, and then some statements keep a part of their result, and zeros of others are dropped. Some
results of which every group is kept are stored n:m.

With --bitmap the same programs and graphs are drawn, and then some of their levels are stored as bitmaps. With --nm, some of the
compressed levels of what they read are stored n:m. With --narrow, some of what they read and
write has elements of few bits. With --split, some indices of programs are two loops in their region. With --recompute, later regions of
programs compute some Einsums again. With --select other graphs are
drawn, each of which has a `select`. With --f32 the same graphs run on machines that compute in 32-bit floats. With --lanes other graphs
are drawn, whose dense results are written in lanes. With --dram every graph runs at a DRAM, of any preset with any refresh, queues and
mapping, or of a table made from one. With --hops the same graphs get hops on their edges, none to 12, in front of FIFOs of 2 to 64 slots,
and must say the same with a process for each hop, too. With --turns nodes that ask the memory get turns at ports, of one to four.

Training: small PyTorch models of random layers, with weights in random layouts, a loss, an optimizer and a cut, take one to three training
steps. Each is checked as every run is, against PyTorch in f32 and f64, and the slope of the loss is measured in f64 for some.
With --tile they run with regions in tiles and tensors in a scratchpad, too, and losses, gradients and parameters must be the same to the
last bit.

Arrays: a schedule is searched for each program on Onyx, or on a small array whose ports bind. Nothing that is given back may lack tiles,
or fail to be placed, routed and read back, and its cycles must be those of its run and of loading.

Exit status 1 if anything differs, or if a long run of programs misses its quotas.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import array_fuzz
import graph_fuzz
import program_fuzz
import training_fuzz
from program_files import save
from program_fuzz import CHUNK, Tally
from tiled_programs import KINDS as TILE_KINDS

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "data" / "programs"
SHRUNK = 3
"""Differing graphs that are made smaller."""
PROGRESS = 5.0
"""Seconds between two lines of progress."""
LONG = 1000
"""Programs from which the quotas must hold."""


@click.command(help=__doc__.partition("\n")[0])
@click.option("--programs", type=click.IntRange(1), help="how many programs")
@click.option("--graphs", type=click.IntRange(1), help="how many graphs")
@click.option("--training", type=click.IntRange(1), help="how many training steps")
@click.option("--arrays", type=click.IntRange(1), help="how many programs with a schedule for an array")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help=f"of the first graph, or {CHUNK} programs")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="processes")
@click.option("--size", type=click.Choice(["small", "medium", "large"]), help="of the graphs; mixed if not given")
@click.option("--bitmap", is_flag=True, help="store some levels as bitmaps")
@click.option("--nm", is_flag=True, help="store some compressed levels of inputs n:m")
@click.option("--split", is_flag=True, help="make some indices two loops")
@click.option("--recompute", is_flag=True, help="programs: later regions compute some Einsums again")
@click.option("--narrow", is_flag=True, help="store some tensors in elements of few bits")
@click.option("--select", is_flag=True, help="graphs: each with a `select`")
@click.option("--f32", is_flag=True, help="graphs: on machines that compute in 32-bit floats")
@click.option("--lanes", is_flag=True, help="graphs: dense results that are written in lanes")
@click.option("--dram", is_flag=True, help="graphs: each at a DRAM of any preset or table")
@click.option("--hops", is_flag=True, help="graphs: with hops on their edges")
@click.option("--turns", is_flag=True, help="graphs: with turns at ports to the memory")
@click.option("--wide", is_flag=True, help="programs: merged dimensions, integers, vectors and more")
@click.option("--views", is_flag=True, help="programs: slices, gathers, concatenations, maxima by pattern, top-k")
@click.option("--hard", is_flag=True, help="programs: values that cancel, NaN, infinities, sizes of 0")
@click.option("--chosen", is_flag=True, help="programs: products, softmax and masks of what is chosen by data")
@click.option("--keep", is_flag=True, help="programs: keep parts of some results")
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
    bitmap: bool,
    nm: bool,
    split: bool,
    recompute: bool,
    narrow: bool,
    select: bool,
    f32: bool,
    lanes: bool,
    dram: bool,
    hops: bool,
    turns: bool,
    wide: bool,
    views: bool,
    hard: bool,
    chosen: bool,
    keep: bool,
    linalg: bool,
    tile: bool,
    surfaces: int,
) -> None:
    if [programs, graphs, training, arrays].count(None) != 3:
        raise click.UsageError("give one of --programs, --graphs, --training and --arrays")
    if programs is None and any((wide, views, hard, chosen, keep, split, recompute, linalg, surfaces)):
        raise click.UsageError(
            "--wide, --views, --hard, --chosen, --keep, --split, --recompute, --linalg and --surfaces are of --programs"
        )
    if (graphs or arrays) is not None and tile:
        raise click.UsageError("--tile is of --programs and --training")
    if wide + views + hard + chosen > 1:
        raise click.UsageError("give one of --wide, --views, --hard and --chosen")
    if (hard or chosen) and (keep or narrow or split or recompute):
        raise click.UsageError(
            "--hard and --chosen draw programs of their own, which take no --keep, --narrow, --split or --recompute"
        )
    if programs is not None and (select or f32 or lanes or dram or hops or turns):
        raise click.UsageError("--select, --f32, --lanes, --dram, --hops and --turns are of --graphs")
    if (training or arrays) is not None and (size or bitmap or nm or select or narrow or f32 or lanes or dram or hops or turns):
        raise click.UsageError("--training and --arrays take no options but --seed, --jobs and, of --training, --tile")
    if lanes and (size or bitmap or nm or select or narrow or f32 or dram or hops or turns):
        raise click.UsageError("--lanes draws graphs of its own, which take no other options")
    if programs is not None:
        sys.exit(
            fuzz_programs(
                programs,
                seed,
                jobs,
                Options(bitmap, nm, wide, views, keep, narrow, split, surfaces, hard, linalg, chosen, recompute, tile),
            )
        )
    if training is not None:
        sys.exit(fuzz_training(training, seed, jobs, tile))
    if arrays is not None:
        sys.exit(fuzz_arrays(arrays, seed, jobs))
    sys.exit(fuzz_graphs(graphs or 0, seed, jobs, size, bitmap, nm, select, narrow, f32, lanes, dram, hops, turns))


@dataclass(frozen=True)
class Options:
    """Which programs are drawn, and how many of them are asked everything else."""

    bitmap: bool
    nm: bool
    wide: bool
    views: bool
    keep: bool
    narrow: bool
    split: bool
    surfaces: int
    hard: bool = False
    linalg: bool = False
    chosen: bool = False
    recompute: bool = False
    tile: bool = False

    @property
    def prefix(self) -> str:
        """Of the names of the files of programs that differ."""
        return "".join(f"{mode}_" for mode, on in self.modes.items() if on)

    @property
    def modes(self) -> dict[str, bool]:
        return {
            "bitmap": self.bitmap,
            "nm": self.nm,
            "wide": self.wide,
            "views": self.views,
            "keep": self.keep,
            "narrow": self.narrow,
            "split": self.split,
            "hard": self.hard,
            "chosen": self.chosen,
            "recompute": self.recompute,
        }

    @property
    def kinds(self) -> dict[str, bool]:
        """The modes that have quotas."""
        return {mode: on for mode, on in self.modes.items() if mode not in ("bitmap", "split", "recompute")}


def fuzz_programs(programs: int, seed: int, jobs: int, options: Options) -> bool:
    """Whether anything is wrong."""
    start = last = time.monotonic()
    total = Tally()
    for at, tally in enumerate(tallies(programs, seed, jobs, options), seed):
        total.add(tally)
        for kept in tally.differing:
            kept = program_fuzz.with_orders(kept)
            path = KEPT / f"{options.prefix}seed_{kept.seed}.yaml"
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
    wrong = program_fuzz.missed(total, **options.kinds) if total.programs >= LONG else []
    for line in wrong:
        click.echo(f"missed, {line}")
    names = [
        *program_fuzz.quotas_of(**options.kinds),
        *([program_fuzz.SURFACES] if options.surfaces else []),
        *(TILE_KINDS if options.tile else ()),
    ]
    quotas = ", ".join(f"{name} {total.share(name):.0%}" for name in names)
    click.echo(
        f"{total.programs} programs from seed {seed}: {len(total.differing)} differ, {total.refused.total()} refused "
        f"({total.refusals:.2%}), {total.too_large} too large to run, {total.regions} regions, {quotas}, {time.monotonic() - start:.0f} s"
    )
    if options.tile:
        click.echo(", ".join(f"{total.quotas[kind]} with {kind}" for kind in TILE_KINDS))
    return bool(total.differing or wrong)


def tallies(programs: int, seed: int, jobs: int, options: Options) -> Iterator[Tally]:
    """Of every seed, in order: a hundred programs each."""
    work = [(seed + n, min(CHUNK, programs - n * CHUNK), options) for n in range(-(-programs // CHUNK))]
    if jobs == 1:
        yield from map(_run, work)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_run, work)


def _run(work: tuple[int, int, Options]) -> Tally:
    seed, examples, options = work
    return program_fuzz.run(seed, examples, surfaces=options.surfaces, linalg=options.linalg, tile=options.tile, **options.modes)


def fuzz_graphs(
    graphs: int,
    seed: int,
    jobs: int,
    size: Any,
    bitmap: bool,
    nm: bool,
    select: bool,
    narrow: bool,
    f32: bool,
    lanes: bool,
    dram: bool,
    hops: bool,
    turns: bool,
) -> bool:
    """Whether anything differs."""
    start = last = time.monotonic()
    deadlocks = firings = done = 0
    wrong: list[int] = []
    for outcome in graph_fuzz.outcomes(
        range(seed, seed + graphs), size, jobs, bitmap, nm, select, narrow, f32, lanes, dram, hops, turns
    ):
        done, firings, deadlocks = done + 1, firings + outcome.firings, deadlocks + outcome.deadlock
        for line in outcome.lines:
            click.echo(f"seed {outcome.seed}: {line}")
        if outcome.lines:
            wrong.append(outcome.seed)
            if len(wrong) <= SHRUNK:
                click.echo(graph_fuzz.smaller(outcome.seed, size, bitmap, nm, select, narrow, f32, lanes, dram, hops, turns))
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
    chunks = [(seed + n, min(array_fuzz.CHUNK, programs - n * array_fuzz.CHUNK)) for n in range(-(-programs // array_fuzz.CHUNK))]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for tally in pool.imap(_run_arrays, chunks):
            total.update(tally)
            for fault in tally.faults:
                click.echo(fault)
            click.echo(f"{total.summary}, {len(total.faults)} wrong, {time.monotonic() - start:.0f} s", err=True)
    click.echo(f"from seed {seed}: {total.summary}, {len(total.faults)} wrong, {time.monotonic() - start:.0f} s")
    return bool(total.faults)


def _run_arrays(chunk: tuple[int, int]) -> array_fuzz.Tally:
    return array_fuzz.run(*chunk)


if __name__ == "__main__":
    main()
