"""The cycles that the estimate expects on `rda`, against runs of four families in 1 to 32 lanes, unfused, by layers and as a whole.

    python evaluation/estimate_runs.py --store rows.jsonl [--data-dir DIR] [--only 'gcn/*'] [--again]
    python evaluation/estimate_runs.py --store rows.jsonl --table [--data-dir DIR]
    python evaluation/estimate_runs.py --held-out [--table] [--data-dir DIR]
    python evaluation/estimate_runs.py --memories [--table] [--data-dir DIR]
    python evaluation/estimate_runs.py --per-bank [--table] [--data-dir DIR]

A row is one run: its point, the cycles of its regions, and what the estimate expected of them on the day when it was run. `--table` makes
the estimate of every point again, so that both stand beside the run. It exits with 1 if an estimate of now is above a bar. A study that
is ended goes on behind its last row. `--held-out` takes other data, sizes and numbers of lanes: points that no constant of the estimate was
chosen on. `--memories` takes five memories, with bars of their own: every second run is held out, so that each program and each memory
is in both halves. `--per-bank` takes the same programs on memories that refresh one bank at a time, which no constant was chosen on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import click
from claims import markdown
from scipy.stats import kendalltau
from store import AGAIN, DATA_DIR, ONLY, ROOT, TABLE, append, like, load

import fuseflow as ff
from fuseflow.estimate.program import Estimator

ROWS = Path(__file__).resolve().parent / "rows" / "estimate_runs.jsonl"
HELD_OUT = ROWS.with_name("estimate_runs_held_out.jsonl")
MACHINE = "rda"
MEMORY_ROWS = ROWS.with_name("estimate_runs_memories.jsonl")
PER_BANK_ROWS = ROWS.with_name("estimate_runs_per_bank.jsonl")
MEMORIES = ("hbm2", "hbm3-6400", "ddr5-4800", "ddr4-3200", "gddr6-14000")
PER_BANK = ("hbm4-8000", "hbm3-6400", "hbm2-2400-perbank", "lpddr5-6400")
BARS = {"median": 5.0, "worst": 20.0}
"""Percent that the cycles may be off, over all points."""
MEMORY_BARS = {"median": 8.0, "worst": 25.0}
"""The same for the points on other memories."""
LEAST_TAU = 0.9
"""Kendall's tau that the estimates and the runs of a family have at least."""
DECODER = "bigbird:block=8,length=64,features=48"
BLOCKED = "bigbird:block=8,length=512,features=96"
OUTER = {
    "gcn/unfused": "T0.i T1.i T2.i H.i T4.n T5.n T6.n Y.n",
    "gcn/partial": "layer1.i layer2.n",
    "gcn/full": "n",
    "graphsage/unfused": "P0.i P.i Q0.i Q1.i Q.i H0.i H1.i H.i R0.n R.n U0.n U1.n U.n Y0.n Y.n",
    "graphsage/partial": "layer1.i layer2.n",
    "graphsage/full": "n",
    "sae/unfused": "h e",
    "sae/partial": "h e",
    "sae/full": "h",
    "gpt/unfused": "d0.y.l d0.p0.l d0.p.l d0.S.i d0.P.i d0.P8.i d0.i d0.O.i d0.o0.l d0.o.l d0.r.l d0.z.l d0.f0.l d0.f1.l d0.f.l d0.g0.l"
    " d0.g.l d0.x.l",
    "gpt/partial": "decoders.0.l decoders.0-2.i decoders.0-3.l",
}
"""The loops that are dealt to lanes: over the rows of graphs and sequences, and over the columns of the weights of the autoencoder."""
TILES = {"mask": "8x8", "q": "1x8x8", "k": "1x8x8", "v": "1x8x8"}
"""The blocks of attention."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run: a model on data, the file of its schedule, and what that is changed by, as the flags of `fuseflow run` have it."""

    family: str
    data: str
    fused: str
    lanes: int = 1
    par: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What tells it from all other points."""
        lanes = (f"{self.lanes} lanes",) if len(self.par) > 3 else self.par
        words = (*lanes, *self.formats, *self.blocks, *(f"{k}={v}" for k, v in {**self.options, **self.settings}.items()))
        return f"{self.family}/{self.data}/{self.fused}" + "".join(f"+{word}" for word in words)

    def compiled(self, data_dir: Path | None) -> ff.Compiled:
        """The program, compiled for the machine."""
        attention = self.options.get("part") == "attention"
        path = ROOT / "models" / ("gpt_bigbird.py" if attention else f"paper/{self.family}.py")
        schedule = ff.Schedule.load(ROOT / "schedules" / f"{self.family}_{self.fused}.yaml")
        if attention:
            schedule = ff.Schedule.fuse({"unfused": "none"}.get(self.fused, self.fused))
        schedule = schedule.lower(writers="once")
        for word in self.par:
            index, _, count = word.partition("=")
            schedule = schedule.par(**{index: int(count)})
        for word in self.formats:
            schedule = schedule.format(*word.split("="))
        for word in self.blocks:
            tensor, _, sizes = word.partition("=")
            schedule = schedule.block(tensor, *map(int, sizes.split("x")))
        machine = ff.load_machine(MACHINE, self.settings)
        directory = data_dir if self.data.partition(":")[0] in ("cora", "citeseer") else None
        return ff.compile(path, data=self.data, data_dir=directory, options=self.options, schedule=schedule, machine=machine)


@dataclass(frozen=True, slots=True)
class Row:
    """A run: the cycles of each region, all its repeats together, and what was expected of them when it was run. `seconds` are those of the
    processor that the simulation took."""

    key: str
    point: dict[str, Any]
    cycles: dict[str, int]
    expected: dict[str, float]
    firings: int
    seconds: float


def points() -> Iterator[Point]:
    """All points, one family after the other."""
    for family, sparse in (("gcn", ("X=csr", "W1=csr")), ("graphsage", ("X=csr", "Ws1=csr", "Wn1=csr"))):
        for fused in ("unfused", "partial", "full"):
            for lanes in (1, 4, 16):
                yield dealt(family, "cora:nodes=300", fused, lanes)
        for fused in ("unfused", "partial"):
            for lanes in (1, 2, 8, 32):
                yield replace(dealt(family, "cora", fused, lanes), formats=sparse)
        for index in ("f", "h"):
            yield Point(family, "cora:nodes=300", "partial", 4, (f"layer1.{index}=4",))
    for side, fused in ((32, "unfused"), (32, "partial"), (32, "full"), (64, "partial")):
        for lanes in (1, 2, 4, 8, 16, 32):
            yield dealt("sae", f"images:side={side}", fused, lanes)
    yield from decoders()


def held_out_points() -> Iterator[Point]:
    """Points on data and in sizes and lanes that `points` does not have."""
    for family, sparse in (("gcn", ("X=csr", "W1=csr")), ("graphsage", ("X=csr", "Ws1=csr", "Wn1=csr"))):
        for fused in ("unfused", "partial", "full"):
            for lanes in (1, 6):
                yield dealt(family, "citeseer:nodes=250", fused, lanes)
        for lanes in (1, 12):
            yield replace(dealt(family, "citeseer", "partial", lanes), formats=sparse)
    for fused in ("unfused", "partial", "full"):
        for lanes in (1, 6, 24):
            yield dealt("sae", "images:side=48", fused, lanes)
    for fused, lanes in product(("unfused", "partial"), (1, 6, 12)):
        yield replace(dealt("gpt", "bigbird:block=8,length=96,features=36", fused, lanes), options={"decoders": 1, "heads": 2})


def memory_points(memories: Sequence[str] = MEMORIES, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[Point]:
    """Sixteen programs at each memory. The memories of a program follow each other, and are odd in number."""
    decoder, attention = {"decoders": 1, "heads": 3}, {"part": "attention", "heads": 3}
    programs = [
        dealt("gcn", "cora:nodes=300", "partial", 4),
        dealt("gcn", "cora:nodes=300", "unfused", 16),
        dealt("graphsage", "cora:nodes=300", "full", 4),
        replace(dealt("gcn", "cora", "partial", 8), formats=("X=csr", "W1=csr")),
        *(dealt("sae", "images:side=32", fused, lanes) for fused, lanes in product(("unfused", "partial", "full"), (1, 8))),
        *(
            replace(dealt("gpt", DECODER, fused, lanes), options=decoder)
            for fused, lanes in product(("unfused", "partial"), (1, 16))
        ),
        Point("gpt", DECODER, "full", 4, ("j=4",), options=attention),
        Point("gpt", DECODER, "unfused", 16, ("j=16",), options=attention),
    ]
    for program, memory in product(programs, memories):
        yield replace(program, settings={"memory": memory, **settings})


def per_bank_points() -> Iterator[Point]:
    """The same programs at memories that refresh one bank at a time."""
    return memory_points(PER_BANK, {"memory.refresh": "per-bank"})


def decoders() -> Iterator[Point]:
    """A small decoder of GPT-3, and its attention alone, in elements and in blocks."""
    decoder = {"decoders": 1, "heads": 3}
    for fused in ("unfused", "partial"):
        for lanes in (1, 2, 4, 8, 16, 32):
            yield replace(dealt("gpt", DECODER, fused, lanes), options=decoder)
    yield Point("gpt", DECODER, "full", options=decoder)
    yield Point("gpt", DECODER, "partial", 4, ("decoders.0-3.e=4", "decoders.0-3.g=4"), options=decoder)
    yield Point("gpt", DECODER, "partial", options=decoder, settings={"fifo_depth_start": 4096})
    for fused, lanes, blocks in product(("unfused", "full"), (1, 4, 16), ({}, TILES)):
        par = (f"j={lanes}",) if lanes > 1 else ()
        stored = tuple(f"{tensor}={sizes}" for tensor, sizes in blocks.items())
        yield Point(
            "gpt", BLOCKED if blocks else DECODER, fused, lanes, par, blocks=stored, options={"part": "attention", "heads": 3}
        )


def dealt(family: str, data: str, fused: str, lanes: int) -> Point:
    """The point with so many lanes of the loops of `OUTER`."""
    names = OUTER[f"{family}/{fused}"].split() if lanes > 1 else ()
    return Point(family, data, fused, lanes, tuple(f"{name}={lanes}" for name in names))


def run(point: Point, data_dir: Path | None) -> Row:
    """Run a point, and estimate it."""
    compiled = point.compiled(data_dir)
    start = time.process_time()
    result = compiled.run(check=False)
    seconds = round(time.process_time() - start, 1)
    cycles = {region.name: region.times * region.cycles for region in result.regions}
    return Row(
        point.key, asdict(point), cycles, expected(compiled), sum(r.times * r.simulation.firings for r in result.regions), seconds
    )


def expected(compiled: ff.Compiled) -> dict[str, float]:
    """What the estimate expects of each region."""
    return {r.name: round(r.times * r.bound.cycles) for r in compiled.estimate(Estimator()).regions}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The cycles of a run, and what was and is expected."""

    point: Point
    cycles: int
    then: float
    now: float

    def error(self, which: str) -> float:
        """In percent of the run."""
        return 100 * (getattr(self, which) - self.cycles) / self.cycles


def comparisons(rows: Iterable[Row], data_dir: Path | None) -> list[Comparison]:
    """Every row with the estimate of now."""
    made = []
    for row in rows:
        point = Point(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.point.items()})
        now = expected(point.compiled(data_dir))
        made.append(Comparison(point, sum(row.cycles.values()), sum(row.expected.values()), sum(now.values())))
    return made


def figures(compared: Iterable[Comparison], which: str) -> dict[str, float]:
    """The median and the worst error, in percent, and Kendall's tau. Runs of equal cycles count for neither order."""
    compared = list(compared)
    errors = [abs(each.error(which)) for each in compared]
    tau = kendalltau([each.cycles for each in compared], [getattr(each, which) for each in compared]).statistic
    return {"median": median(errors), "worst": max(errors), "tau": float(tau)}


def table(compared: list[Comparison]) -> str:
    """Markdown: a line for each family and one for all, then a line for each run."""
    lines, runs = list[list[str]](), list[list[str]]()
    families = {name: [c for c in compared if c.point.family == name] for name in dict.fromkeys(c.point.family for c in compared)}
    for name, some in {**families, "all": compared}.items():
        then, now = figures(some, "then"), figures(some, "now")
        taus = ["" if name == "all" else f"{f['tau']:.2f}" for f in (then, now)]
        lines.append([name, str(len(some)), *errors_of(then), taus[0], *errors_of(now), taus[1]])
    for each in compared:
        errors = [f"{each.error(which):+.1f} %" for which in ("then", "now")]
        runs.append([f"`{each.point.key}`", str(each.point.lanes), f"{each.cycles:,}", *errors])
    heads = "family | runs | median then | worst then | tau then | median now | worst now | tau now"
    return f"{markdown(heads, lines)}\n{markdown('run | lanes | cycles | then | now', runs)}"


def errors_of(found: Mapping[str, float]) -> list[str]:
    return [f"{found[what]:.1f} %" for what in ("median", "worst")]


def memory_table(compared: list[Comparison]) -> str:
    """Markdown: for each memory, and for all, the errors of the runs that rates and rules were chosen on, and of those held out."""
    places = {point.key: place for place, point in enumerate(memory_points())}
    lines = []
    for memory in (*MEMORIES, "all"):
        own = [each for each in compared if memory in ("all", each.point.settings["memory"])]
        halves = [[each for each in own if places[each.point.key] % 2 == half] for half in (0, 1)]
        lines.append([memory, *(cell for half in halves for cell in (str(len(half)), *errors_of(figures(half, "now"))))])
    return markdown("memory | runs | median | worst | held out | median | worst", lines)


def per_bank_table(compared: list[Comparison]) -> str:
    """Markdown: the errors for each memory that refreshes one bank at a time, and for all."""
    lines = []
    for memory in (*PER_BANK, "all"):
        own = [each for each in compared if memory in ("all", each.point.settings["memory"])]
        lines.append([memory, str(len(own)), *errors_of(figures(own, "now"))])
    return markdown("memory | runs | median | worst", lines)


def above(compared: list[Comparison], bars: dict[str, float]) -> list[str]:
    """What is above a bar."""
    errors = figures(compared, "now")
    return [f"the {what} error is {errors[what]:.1f} %, more than {bar:g} %" for what, bar in bars.items() if errors[what] > bar]


def misses(compared: list[Comparison]) -> list[str]:
    """What is above a bar, or below one."""
    lines = above(compared, BARS)
    for name in dict.fromkeys(each.point.family for each in compared):
        tau = figures([each for each in compared if each.point.family == name], "now")["tau"]
        if tau < LEAST_TAU:
            lines.append(f"{name}: Kendall's tau is {tau:.2f}, less than {LEAST_TAU:g}")
    return lines


@click.command(help=__doc__.partition("\n")[0])
@click.option("--store", type=click.Path(path_type=Path, dir_okay=False), help="JSON lines; those of the repository without it.")
@DATA_DIR
@ONLY
@AGAIN
@click.option("--held-out", is_flag=True, help="Points that no constant was chosen on.")
@click.option("--memories", is_flag=True, help="Points on five memories, of which every second one is held out.")
@click.option("--per-bank", is_flag=True, help="Points on memories that refresh one bank at a time.")
@TABLE
def main(
    store: Path | None,
    data_dir: Path | None,
    only: tuple[str, ...],
    again: bool,
    held_out: bool,
    memories: bool,
    per_bank: bool,
    only_table: bool,
) -> None:
    usual, of = (HELD_OUT, held_out_points) if held_out else (MEMORY_ROWS, memory_points) if memories else (ROWS, points)
    if per_bank:
        usual, of = PER_BANK_ROWS, per_bank_points
    store = store or usual
    rows = load(store, Row)
    if not only_table:
        for point in of():
            if like(point.key, only) and (again or point.key not in rows):
                row = run(point, data_dir)
                append(store, row)
                click.echo(f"{row.key}: {sum(row.cycles.values()):,} cycles, {row.seconds:,.1f} s", err=True)
        return
    compared = comparisons([row for key, row in rows.items() if like(key, only)], data_dir)
    if memories:
        click.echo(memory_table(compared))
    if per_bank:
        click.echo(per_bank_table(compared))
    click.echo(table(compared), nl=False)
    missed = above(compared, MEMORY_BARS) if memories or per_bank else misses(compared)
    for miss in missed:
        click.echo(miss, err=True)
    raise SystemExit(1 if missed else 0)


if __name__ == "__main__":
    main()
