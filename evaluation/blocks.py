"""What blocks do for BigBird's attention: the same mask as single elements and in blocks of its own size, on the same memory.

    python evaluation/blocks.py --store blocks.jsonl [--machine ideal] [--only 'rda/64/*'] [--limit 3600]
    python evaluation/blocks.py --store blocks.jsonl --table [--plot blocks.svg]

A point is a machine, the block size of the mask and how it is executed: `elements`, `blocks`, or `narrow`, in blocks by units of a
single multiply-accumulate a cycle, as elements have them. So the speed of blocks comes apart exactly, into three factors: control (fewer
tokens: elements over narrow blocks where memory is ideal), memory (by how much more that is where memory is not) and compute (narrow
blocks over blocks). Each point runs in a process of its own and is a line of the store, written when it is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from claims import markdown
from pictures import blank_figure, save
from process_pool import run_apart
from store import AGAIN, LIMIT, ONLY, ROOT, STORE, TABLE, left, like, load, work

MACHINES = ("ideal", "rda")
SIZES = (16, 32, 64)
WAYS = ("blocks", "narrow", "elements")
LABELS = {"blocks": "blocks", "narrow": "blocks, one product a cycle", "elements": "single elements"}
DENSE = ("q", "k", "v")
"""What attention reads beside the mask: [heads, sequence, width of a head]."""


@dataclass(frozen=True, slots=True)
class Point:
    """The mask has `size` elements in each direction of a block."""

    machine: str
    size: int
    way: str
    heads: int = 12

    @property
    def key(self) -> str:
        return f"{self.machine}/{self.size}/{self.way}" + (f"/{self.heads} heads" if self.heads != 12 else "")

    def command(self) -> list[str]:
        model = [str(ROOT / "models" / "gpt_bigbird.py"), "--data", f"bigbird:block={self.size}"]
        options = ["-O", "part=attention", "-O", f"heads={self.heads}", "--fuse", "full", "--machine", self.machine]
        if self.way != "elements":
            both = f"{self.size}x{self.size}"
            options += [f"--block=mask={both}", *(f"--block={name}=1x{both}" for name in DENSE)]
        if self.way == "narrow":
            options += ["--set", "tile_macs=1"]
        return [sys.executable, "-m", "fuseflow", "run", *model, *options, "--json", "-", "--quiet"]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a point: `done`, `failed` or `limit` (it took too long). `moved`: bytes that memory moved."""

    key: str
    point: dict[str, Any]
    state: str
    seconds: float
    peak_mb: int
    cycles: int = 0
    firings: int = 0
    flops: int = 0
    requested: int = 0
    moved: int = 0
    bound: int = 0
    max_rel_error: float = 0.0
    error: str = ""


def points(machines: Iterable[str], heads: int) -> Iterator[Point]:
    """All of them, what runs fast first."""
    for way in WAYS:
        for machine in machines:
            for size in SIZES:
                yield Point(machine, size, way, heads)


def run(point: Point, limit: float) -> Row:
    ran = run_apart(point.command(), limit)
    return Row(point.key, asdict(point), **ran.ended(limit), **(measured(ran.result) if ran.result else {}))


def measured(result: dict[str, Any]) -> dict[str, Any]:
    memory = [region["statistics"]["memory"] for region in result["regions"] if region["statistics"]["memory"]]
    return {
        "cycles": result["cycles"],
        "firings": sum(region["firings"] for region in result["regions"]),
        "flops": result["flops"],
        "requested": result["bytes"]["read"] + result["bytes"]["write"],
        "moved": sum(found["read_bytes"] + found["written_bytes"] for found in memory),
        "bound": sum(region["roofline"]["bound"] for region in result["regions"]),
        "max_rel_error": result["check"]["max_rel_error"] if result["check"] else 0.0,
    }


# What is shown ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gain:
    """How much faster blocks are than elements: the product of what fewer tokens, less traffic and wider units give."""

    control: float
    memory: float
    compute: float

    @property
    def whole(self) -> float:
        return self.control * self.memory * self.compute


def gain(cycles: Mapping[str, int], machine: str, size: int) -> Gain | None:
    """From cycles by key; None where a point is missing."""
    at = [f"{m}/{size}/{way}" for m in (machine, "ideal") for way in WAYS]
    if any(key not in cycles for key in at):
        return None
    blocks, narrow, elements, _, ideal_narrow, ideal_elements = (cycles[key] for key in at)
    control = ideal_elements / ideal_narrow
    return Gain(control, elements / narrow / control, narrow / blocks)


def table(rows: Mapping[str, Row]) -> str:
    """Markdown: a line for each machine and size."""
    done = {key: row for key, row in rows.items() if row.state == "done"}
    cycles = {key: row.cycles for key, row in done.items()}
    heads = (
        "machine | block | cycles, elements | cycles, blocks | speed | control | memory | compute | firings | "
        "FLOPs | bytes requested | bytes moved"
    )
    lines = []
    for machine in MACHINES:
        for size in SIZES:
            blocks, elements = (done.get(f"{machine}/{size}/{way}") for way in ("blocks", "elements"))
            found = gain(cycles, machine, size)
            factors = (
                [f"{part:,.2f}" for part in (found.whole, found.control, found.memory, found.compute)] if found else [""] * 4
            )
            ratios = [ratio(blocks, elements, field) for field in ("firings", "flops", "requested", "moved")]
            shown = [f"{row.cycles:,}" if row else "" for row in (elements, blocks)]
            lines.append([machine, str(size), *shown, *factors, *ratios])
    return markdown(heads, lines, 1)


def ratio(blocks: Row | None, elements: Row | None, field: str) -> str:
    """What blocks take, as a multiple of what elements take."""
    if blocks is None or elements is None or not getattr(elements, field):
        return ""
    return f"{getattr(blocks, field) / getattr(elements, field):.3g}x"


def plot(rows: Mapping[str, Row], picture: str) -> None:
    """Cycles of elements and of blocks over the size of a block, a machine beside the other."""
    figure = blank_figure(11, 3.5)
    for axes, machine in zip(figure.subplots(1, 2, sharey=True), MACHINES, strict=True):
        for number, way in enumerate(WAYS):  # two ways take the same cycles at ideal: the first has larger, hollow marks
            line = [row for size in SIZES if (row := rows.get(f"{machine}/{size}/{way}")) is not None and row.state == "done"]
            axes.plot(
                [row.point["size"] for row in line],
                [row.cycles for row in line],
                marker="os^"[number % 3],
                markersize=12 - 4 * number,
                fillstyle="none",
                label=LABELS[way],
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(title=machine, xlabel="block", xticks=SIZES, xticklabels=SIZES)
        axes.grid(alpha=0.3)
    figure.axes[0].set(ylabel="cycles")
    figure.axes[0].legend(fontsize="small")
    save(figure, picture)


@click.command(help=__doc__.partition("\n")[0])
@STORE
@click.option("--machine", "machines", multiple=True, default=MACHINES, show_default=True)
@click.option("--heads", type=click.IntRange(1), default=12, show_default=True, help="Fewer are other points, not in the table.")
@ONLY
@LIMIT
@AGAIN
@TABLE
@click.option("--plot", "picture", metavar="FILE", help="Draw it (.svg, .png, .pdf).")
def main(
    store: Path,
    machines: tuple[str, ...],
    heads: int,
    only: tuple[str, ...],
    limit: float,
    again: bool,
    only_table: bool,
    picture: str | None,
) -> None:
    rows = load(store, Row)
    wanted = [p for p in points(machines, heads) if like(p.key, only)]
    todo = left(wanted, rows, again)
    if not (only_table or picture):
        work(todo, lambda point: run(point, limit), store, rows)
    if picture:
        plot(rows, picture)
    click.echo(table(rows), nl=False)
    sys.exit(any(row.state == "failed" for row in rows.values()))


if __name__ == "__main__":
    main()
