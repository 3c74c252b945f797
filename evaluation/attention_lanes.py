"""How far lanes speed up BigBird's attention: heads, query rows or both dealt, on a memory without limits and on HBM2.

    python evaluation/attention_lanes.py --store lanes.jsonl [--machine ideal] [--only 'rda/rows=*'] [--limit 3600]
    python evaluation/attention_lanes.py --store lanes.jsonl --table | --plot lanes.svg

A point is a machine and how many lanes heads and query rows have. Each runs in a process of its own and is a line of the store, written
when it is there: a run that is killed loses the point that it was at, and goes on there. Points that fail or take longer than the limit
are lines too, tried again only with `--again`. `--data` and `--heads` make other points, which tables and pictures name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from claims import markdown
from pictures import blank_figure, legend, save
from process_pool import run_apart
from store import AGAIN, LIMIT, LIST, ONLY, ROOT, STORE, TABLE, left, like, load, work

MACHINES = ("ideal", "rda")
FACTORS = (1, 2, 4, 8, 16, 32, 64)
PAIRS = ((2, 2), (2, 4), (4, 2), (4, 4), (4, 8), (8, 4), (4, 16), (8, 8))
"""Lanes of heads and of rows."""
INDICES = {"heads": "i", "rows": "j"}
"""As the region calls them: `fuseflow explain order models/gpt_bigbird.py -O part=attention`."""
DATA, HEADS = "bigbird:block=64", 12


@dataclass(frozen=True, slots=True)
class Point:
    """`all_heads`: how many the attention has."""

    heads: int
    rows: int
    machine: str
    data: str = DATA
    all_heads: int = HEADS

    @property
    def lanes(self) -> int:
        return self.heads * self.rows

    @property
    def key(self) -> str:
        """What tells it from all other points."""
        size = "" if (self.data, self.all_heads) == (DATA, HEADS) else f"/{self.data}/{self.all_heads} heads"
        return f"{self.machine}/heads={self.heads},rows={self.rows}{size}"

    def command(self) -> list[str]:
        par = [f"--par={INDICES[level]}={count}" for level, count in (("heads", self.heads), ("rows", self.rows)) if count > 1]
        model = [str(ROOT / "models" / "gpt_bigbird.py"), "--data", self.data]
        options = ["-O", "part=attention", "-O", f"heads={self.all_heads}"]
        run = [sys.executable, "-m", "fuseflow", "run", *model, *options, *par]
        return [*run, "--writers", "once", "--machine", self.machine, "--json", "-", "--quiet"]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a point: `done`, `failed` or `limit` (it took too long). `spread`: by index, the firings of the lane that has most
    over the mean. `busy`: firings of the busiest node. `moved`: bytes a cycle, `peak` of them the memory has at most. `slots`: of the
    FIFOs that were deepened, all together."""

    key: str
    point: dict[str, Any]
    state: str
    seconds: float
    peak_mb: int
    cycles: int = 0
    nodes: int = 0
    firings: int = 0
    bound: int = 0
    busiest: str = ""
    busy: int = 0
    spread: dict[str, float] = field(default_factory=dict)
    moved: float = 0.0
    peak: float = 0.0
    slots: int = 0
    max_rel_error: float = 0.0
    simulate_seconds: float = 0.0
    error: str = ""


def points(machines: Iterable[str], data: str, heads: int) -> Iterator[Point]:
    """All of them, one machine after the other, few lanes first."""
    lanes = {*((n, 1) for n in FACTORS), *((1, n) for n in FACTORS), *PAIRS}
    for machine in machines:
        for head, row in sorted(lanes, key=lambda pair: (pair[0] * pair[1], pair)):
            yield Point(head, row, machine, data, heads)


def run(point: Point, limit: float) -> Row:
    ran = run_apart(point.command(), limit)
    return Row(point.key, asdict(point), **ran.ended(limit), **(measured(ran.result) if ran.result else {}))


def measured(result: dict[str, Any]) -> dict[str, Any]:
    (region,) = result["regions"]
    found = region["statistics"]
    busiest = max(found["nodes"], key=lambda node: node["occupied"])
    firings = {index: [lane["firings"] for lane in lanes] for index, lanes in found["lanes"].items()}
    memory = found["memory"] or {}
    return {
        "cycles": result["cycles"],
        "nodes": region["nodes"],
        "firings": region["firings"],
        "bound": region["roofline"]["bound"],
        "busiest": busiest["name"],
        "busy": busiest["occupied"],
        "spread": {index: round(max(counts) * len(counts) / sum(counts), 4) for index, counts in firings.items()},
        "moved": memory.get("bytes_per_cycle", 0.0),
        "peak": memory.get("peak_bytes_per_cycle", 0.0),
        "slots": sum(region["depths"].values()),
        "max_rel_error": result["check"]["max_rel_error"] if result["check"] else 0.0,
        "simulate_seconds": result["seconds"]["simulate"],
    }


# What is shown ---------------------------------------------------------------------------------------------------------------


def table(rows: Iterable[Row]) -> str:
    """Markdown: machines apart, then by lanes."""
    kept = sorted(rows, key=lambda row: (size(row), row.point["machine"], lanes_of(row), row.point["heads"]))
    serial = {group(row): row for row in kept if lanes_of(row) == 1 and row.state == "done"}
    heads = "machine | heads x rows | nodes | cycles | speed | of linear | of roofline | most / mean | bytes a cycle"
    lines = []
    for row in kept:
        lanes = f"{row.point['heads']} x {row.point['rows']}"
        machine = row.point["machine"] + (f", {' '.join(map(str, size(row)))} heads" if size(row) != (DATA, HEADS) else "")
        if row.state != "done":
            lines.append([machine, lanes, why(row), *[""] * 8])
            continue
        base = serial.get(group(row))
        speed = base.cycles / row.cycles if base else 0.0
        cells = [
            machine,
            lanes,
            f"{row.nodes:,}",
            f"{row.cycles:,}",
            f"{speed:.2f}" if base else "",
            f"{speed / lanes_of(row):.0%}" if base else "",
            f"{row.bound / row.cycles:.0%}",
            f"{max(row.spread.values(), default=1.0):.2f}",
            f"{row.moved:.0f}" if row.peak else "",
            f"{row.slots:,}",
            f"{row.seconds:,.0f}",
        ]
        lines.append(cells)
    return markdown(f"{heads} | slots added | seconds", lines)


def why(row: Row) -> str:
    return row.error.splitlines()[0].replace("|", "/")[:80] if row.error else row.state


def size(row: Row) -> tuple[str, int]:
    return row.point["data"], row.point["all_heads"]


def lanes_of(row: Row) -> int:
    return row.point["heads"] * row.point["rows"]


def group(row: Row) -> tuple[Any, ...]:
    return size(row), row.point["machine"]


def plot(rows: Mapping[str, Row], picture: str, data: str, heads: int) -> None:
    """Speed over one lane, and beside it bytes a cycle, both over the number of lanes."""
    figure = blank_figure(13, 4)
    speeds, bytes_moved = figure.subplots(1, 2)
    machines = list(dict.fromkeys(row.point["machine"] for row in rows.values()))
    kept = [row for row in rows.values() if row.state == "done" and size(row) == (data, heads)]
    for machine, style in zip(dict.fromkeys(row.point["machine"] for row in kept), ("-", "--", ":", "-."), strict=False):
        here = [row for row in kept if row.point["machine"] == machine]
        base = next((row.cycles for row in here if lanes_of(row) == 1), None)
        for level, mark in (("heads", "s"), ("rows", "o"), ("both", "^")):
            line = sorted((row for row in here if dealt(row) in (level, "none")), key=lanes_of)
            if level == "both":
                line = best(here)
            at = [lanes_of(row) for row in line]
            color = f"C{machines.index(machine)}"
            look = {"linestyle": style, "marker": mark, "color": color, "label": f"{level}, {machine}", "markersize": 5}
            look |= {"fillstyle": "none", "markersize": 10} if machine == machines[0] else {}
            if base:
                speeds.plot(at, [base / row.cycles for row in line], **look)
            if any(row.peak for row in line):
                bytes_moved.plot(at, [row.moved for row in line], **look)
                bytes_moved.axhline(max(row.peak for row in line), color="grey", linewidth=0.8, label="peak of the memory")
    speeds.plot(FACTORS, FACTORS, color="grey", linewidth=0.8, label="linear")
    for axes, what in ((speeds, "speed over one lane"), (bytes_moved, "bytes a cycle")):
        axes.set_xscale("log", base=2)
        axes.set(xlabel="lanes", ylabel=what, xticks=FACTORS, xticklabels=FACTORS)
        axes.set_yscale("log", base=2)
        axes.grid(alpha=0.3)
    speeds.set(yticks=FACTORS, yticklabels=FACTORS)
    bytes_moved.yaxis.set_major_formatter("{x:.0f}")
    speeds.set(title="speed")
    bytes_moved.set(title="traffic, of machines whose memory has a bound")
    legend(figure, title="what is dealt to lanes, and the machine", columns=4)
    save(figure, picture)


def dealt(row: Row) -> str:
    heads, rows = row.point["heads"] > 1, row.point["rows"] > 1
    return "both" if heads and rows else "heads" if heads else "rows" if rows else "none"


def best(rows: Iterable[Row]) -> list[Row]:
    """Of the points in which both are dealt, the fastest for every number of lanes."""
    found: dict[int, Row] = {}
    for row in sorted((row for row in rows if dealt(row) == "both"), key=lambda row: -row.cycles):
        found[lanes_of(row)] = row
    return [found[lanes] for lanes in sorted(found)]


@click.command(help=__doc__.partition("\n")[0])
@STORE
@click.option("--machine", "machines", multiple=True, default=MACHINES, show_default=True)
@click.option("--data", default=DATA, show_default=True, help="A mask: block, length, features.")
@click.option(
    "--heads", type=click.IntRange(1), default=HEADS, show_default=True, help="Of the attention; fewer are other points."
)
@ONLY
@LIMIT
@AGAIN
@LIST
@TABLE
@click.option("--plot", "picture", metavar="FILE", help="Run nothing; draw what there is (.svg, .png, .pdf).")
def main(
    store: Path,
    machines: tuple[str, ...],
    data: str,
    heads: int,
    only: tuple[str, ...],
    limit: float,
    again: bool,
    listing: bool,
    only_table: bool,
    picture: str | None,
) -> None:
    rows = load(store, Row)
    asked = [p for p in points(machines, data, heads) if like(p.key, only)]
    if not asked:
        raise click.UsageError(f"no point is like {', '.join(only)}")
    todo = left(asked, rows, again)
    if listing:
        return click.echo("".join(f"{point.key}\n" for point in todo), nl=False)
    if not (only_table or picture):
        work(todo, lambda point: run(point, limit), store, rows)
    click.echo(table(rows.values()), nl=False)
    if picture:
        plot(rows, picture, data, heads)


if __name__ == "__main__":
    main()
