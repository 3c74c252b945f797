"""The whole evaluation of figure 12 on `rda`: 16 models and data, unfused, partially and fully fused, 48 points in one command.

    python evaluation/evaluation.py --store evaluation.jsonl [--data-dir DIR] [--jobs 2] [--seed 0] [--points 'gcn/*/full'] [--budget 60]
    python evaluation/evaluation.py --store evaluation.jsonl --table | --list

A point that the estimate expects to take at most `--exact` seconds is run exactly, each other one by samples with an error of `--error`.
Its row is on disk as soon as it is there: a command that was killed goes on where it was, when it is given again. Two points run at a
time, the longest first, as far as both fit into `--memory`. The rows are the same whatever the jobs are. Graphs whose files are not in
`--data-dir` are replaced by stand-ins, which are other points and say so.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from claims import published
from evaluation_table import disagreements, table
from model_runs import GRANULARITIES, Point, is_named
from process_pool import CommandEnd, Limits, Task, run_tasks
from store import AGAIN, DATA_DIR, LIST, ROWS, STORE, TABLE, append, load

from fuseflow.frontend.data import VARIANTS, has_files

POINT_SCRIPT = Path(__file__).with_name("evaluation_point.py")
FIRINGS_A_SECOND = 20e6
"""How many firings the engine simulates in a second at HBM2: 17 to 32 million on one core. It is no measurement of this computer, so that
the same points are exact everywhere."""
SEEN_MB = {
    "cora": 500,
    "cora_ml": 900,
    "dblp": 2_100,
    "collab": 3_500,
    "mag": 6_800,
    "imagenet": 600,
    "luna16": 1_300,
    "nih": 3_200,
    "b16": 2_000,
    "b32": 2_000,
    "b64": 2_000,
}
"""The most memory that a process of each workload was seen to take, and some more: for points of which no row is known."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of every point: which are exact, how sure the others are, and the seed of the sampler."""

    exact_seconds: float
    error: float
    seed: int
    machine: str = "rda"

    @property
    def key(self) -> str:
        """What tells rows of this ask from those of others."""
        return f"exact={self.exact_seconds:g}s,error={self.error * 100:g}%,seed={self.seed}"

    def words(self) -> list[str]:
        firings = self.exact_seconds * FIRINGS_A_SECOND
        return ["--machine", self.machine, "--error", repr(self.error), "--firings", repr(firings), "--seed", str(self.seed)]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a point: `done`, `failed` or `limit`.

    `kind` is `exact` or `sampled`. Only an exact row has `exact_cycles`, and only a sampled one `sampled_cycles`: an estimate with its
    interval. Seconds are those of the processor, `peak_mb` is the most memory that the process had.
    """

    key: str
    point: dict[str, Any]
    asked: dict[str, Any]
    state: str
    processor_seconds: float
    seconds: float
    peak_mb: int
    kind: str = ""
    exact_cycles: int | None = None
    sampled_cycles: dict[str, Any] | None = None
    flops: int = 0
    bytes: dict[str, int] = field(default_factory=dict)
    firings: int = 0
    regions: list[dict[str, Any]] = field(default_factory=list)
    checks: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    error: str = ""


def points(machine: str, data_dir: Path | None) -> Iterator[Point]:
    """The points of figure 12, in its order."""
    for workload in published("figure12"):
        model, _, name = workload.partition("/")
        for granularity in GRANULARITIES:
            yield Point(model, name, _data(name, data_dir), granularity, machine)


def _data(name: str, data_dir: Path | None) -> str:
    """The data set of a workload: the graph if its files are there, else a stand-in; images; a sequence with its mask."""
    if name in VARIANTS["images"]:
        return f"images:{name}"
    if name[0] == "b" and name[1:].isdigit():
        return f"bigbird:block={name[1:]}"
    return name if data_dir is not None and has_files(name, data_dir) else f"synthetic:{name}"


def row_key(point: Point, ask: Ask) -> str:
    return f"{point.key}?{ask.key}"


def task(point: Point, ask: Ask, data_dir: Path | None, known: Iterable[Row], memory_mb: int) -> Task:
    """The process of a point, with what it is expected to take: as much as it took before, whatever was asked then."""
    files = ["--data-dir", str(data_dir)] if data_dir is not None and ":" not in point.data else []
    options = [word for option in point.options for word in ("-O", option)]
    words = [point.model, point.data, point.granularity, *options, *files, *ask.words(), "--while-stdin"]
    same = [row for row in known if row.point["workload"] == point.workload and row.state == "done"]
    own = [row for row in same if row.point["model"] == point.model and row.point["granularity"] == point.granularity]
    mb = max((row.peak_mb for row in own or same), default=SEEN_MB[point.workload])
    seconds = max((row.processor_seconds for row in own or same), default=float("inf"))
    return Task(row_key(point, ask), [sys.executable, str(POINT_SCRIPT), *words], seconds, min(mb, memory_mb))


def row_of(point: Point, ask: Ask, ended: CommandEnd) -> Row:
    """The row of a process that ended."""
    asked = {k: v for k, v in asdict(ask).items() if k != "machine"}
    about = (row_key(point, ask), asdict(point), asked)
    took = (ended.processor_seconds, ended.seconds, ended.peak_mb)
    if ended.late:
        return Row(*about, "limit", *took, error=f"took more than {ended.seconds:.0f} s")
    run = ended.result if ended.status == 0 else None
    if run is None:
        return Row(*about, "failed", *took, error=ended.said[-2000:] or f"exit status {ended.status}")
    checks = {name: run[name] for name in ("check", "rows_check") if run.get(name)}
    passed = bool(checks) and all(check["passed"] for check in checks.values())
    return Row(
        *about,
        "done" if passed else "failed",
        *took,
        kind=run["kind"],
        exact_cycles=run.get("cycles"),
        sampled_cycles=run.get("sampled_cycles"),
        flops=run["flops"],
        bytes={direction: run["bytes"][direction] for direction in ("read", "write")},
        firings=sum(region["firings"] * region["times"] for region in run["regions"]),
        regions=[_region(region) for region in run["regions"]],
        checks=checks,
        stages=run["processor_seconds"],
        notices=run["notices"],
        error="" if passed else f"outputs differ: {json.dumps(checks)}",
    )


def _region(region: Mapping[str, Any]) -> dict[str, Any]:
    """What a row keeps of a region."""
    kept = {key: region[key] for key in ("name", "times", "exact_cycles", "sampled_cycles", "sample") if key in region}
    return kept | ({"exact_cycles": region["cycles"]} if "cycles" in region else {})


def run(asked: list[Point], ask: Ask, store: Path, rows: dict[str, Row], data_dir: Path | None, limits: Limits) -> None:
    """Complete the rows of these points, each in `store` and in `rows` as soon as it is there."""
    known = [*load(ROWS / "evaluation.jsonl", Row).values(), *rows.values()]
    by_key = {row_key(point, ask): point for point in asked}
    tasks = [task(point, ask, data_dir, known, limits.memory_mb) for point in asked]
    place = itertools.count(1)

    def ended(key: str, outcome: CommandEnd) -> None:
        row = row_of(by_key[key], ask, outcome)
        append(store, row)
        rows[row.key] = row
        name = f"{row.point['model']}/{row.point['workload']}/{row.point['granularity']}"
        why = f": {row.error.splitlines()[-1]}" if row.error else ""
        took = f"{row.processor_seconds:,.0f} s, {row.peak_mb:,} MB"
        click.echo(f"[{next(place)}/{len(tasks)}] {name}: {row.kind or row.state}, {took}{why}", err=True)

    run_tasks(tasks, ended, limits)


@click.command(help=__doc__.partition("\n")[0])
@STORE
@DATA_DIR
@click.option("--points", "patterns", multiple=True, metavar="PATTERN", help="Points like gcn/cora/*; repeatable.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Points that run at a time.")
@click.option("--memory", type=click.FloatRange(0.5), default=8, show_default=True, help="GB for all of them.")
@click.option("--exact", type=click.FloatRange(0), default=60, show_default=True, help="Seconds that an exact point may take.")
@click.option("--error", type=click.FloatRange(0, 1, True, True), default=0.02, show_default=True, help="Of each sampled point.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the sampler.")
@click.option("--machine", default="rda", show_default=True)
@click.option("--limit", type=click.FloatRange(1), default=3600, show_default=True, help="Seconds for a point.")
@click.option("--budget", type=click.FloatRange(0), default=60, show_default=True, help="Minutes after which no point begins.")
@AGAIN
@LIST
@TABLE
def main(
    store: Path,
    data_dir: Path | None,
    patterns: tuple[str, ...],
    jobs: int,
    memory: float,
    exact: float,
    error: float,
    seed: int,
    machine: str,
    limit: float,
    budget: float,
    again: bool,
    listing: bool,
    only_table: bool,
) -> None:
    ask, rows = Ask(exact, error, seed, machine), load(store, Row)
    asked = [point for point in points(machine, data_dir) if not patterns or is_named(point, patterns)]
    if not asked:
        raise click.UsageError(f"no point is like {', '.join(patterns)}")
    keys = {row_key(point, ask) for point in asked}
    fresh = [p for p in asked if row_key(p, ask) not in rows or (again and rows[row_key(p, ask)].state != "done")]
    if listing:
        return click.echo("".join(f"{row_key(point, ask)}\n" for point in fresh), nl=False)
    if not only_table:
        run(fresh, ask, store, rows, data_dir, Limits(jobs, round(memory * 1000), limit, budget * 60))
    mine = [rows[row_key(point, ask)] for point in asked if row_key(point, ask) in rows]
    click.echo(table(mine, published("figure12"), jobs), nl=False)
    for line in disagreements(rows.values()):
        click.echo(line, err=True)
    if len(mine) < len(keys):
        click.echo(f"{len(keys) - len(mine)} of {len(keys)} points are left: the same command goes on with them", err=True)
    if any(row.state != "done" for row in mine):
        sys.exit(1)


if __name__ == "__main__":
    main()
