"""Figure 16: attention with a mask in blocks of 16, 32 and 64, executed in blocks of that size against single elements.

    python evaluation/figures.py figure16 --run [--only 'ideal/64/*']

The rows are those of `blocks.py`, which has more ways to run them. Nothing is published but that the speed is "proportional to the block
size".
"""

from __future__ import annotations

from typing import Any

import blocks
from claims import Check, as_published, cell, markdown, ratio, rising, together, within
from frame import Data, Figure, Options
from pictures import legend
from store import ROWS, left, like, load, rows, work

from fuseflow.sim import load_machine

MACHINES = ("ideal", "rda")
NEAR = 0.02


def collect() -> Data:
    """Cycles and bytes by machine and size; what a machine multiplies and moves in a cycle."""
    found = rows("blocks")
    at = {m: {str(size): {way: found.get(f"{m}/{size}/{way}") for way in blocks.WAYS} for size in blocks.SIZES} for m in MACHINES}
    what = ("cycles", "bound", "moved", "flops")
    return {
        "points": {
            m: {
                size: {way: {w: row[w] for w in what} if row else None for way, row in ways.items()}
                for size, ways in sizes.items()
            }
            for m, sizes in at.items()
        },
        "multiplied": {m: load_machine(m).tile_macs for m in MACHINES},
        "seconds": {m: sum(row["seconds"] for ways in sizes.values() for row in ways.values() if row) for m, sizes in at.items()},
    }


def speed(data: Data, machine: str, size: int, of: str = "cycles") -> float | None:
    elements, in_blocks = (data["points"][machine][str(size)][way] for way in ("elements", "blocks"))
    return ratio(elements[of], in_blocks[of]) if elements and in_blocks else None


def table(data: Data) -> str:
    heads = "machine | block | cycles, elements | cycles, blocks | speed | roofline, elements | roofline, blocks | predicted"
    lines = []
    for machine in MACHINES:
        for size in blocks.SIZES:
            ways = [data["points"][machine][str(size)][way] or {} for way in ("elements", "blocks")]
            cycles, bound = ([cell(way.get(what), ",") for way in ways] for what in ("cycles", "bound"))
            lines.append(
                [machine, str(size), *cycles, cell(speed(data, machine, size)), *bound, cell(speed(data, machine, size, "bound"))]
            )
    return markdown(heads, lines)


def checks(data: Data) -> list[Check]:
    found = []
    for machine in MACHINES:
        speeds = [speed(data, machine, size) for size in blocks.SIZES]
        found.append(rising(f"{machine}: speed rises with the block", speeds, 1))
        least = blocks.SIZES[0]
        over = {size: ratio(number, speeds[0]) for size, number in zip(blocks.SIZES, speeds, strict=True)}
        parts = [as_published(f"{size}:", number, size / least) for size, number in over.items()]
        found.append(together(f"{machine}: speed over that of blocks of {least}, proportional to the block", parts[1:]))
        parts = []
        for size, number in zip(blocks.SIZES, speeds, strict=True):
            predicted = speed(data, machine, size, "bound")
            parts.append(within(f"{size}:", ratio(number, predicted), 1 - NEAR, 1 + NEAR, 3))
        found.append(together(f"{machine}: speed within 2 % of the ratio of the rooflines", parts))
    return found


def draw(data: Data, figure: Any) -> None:
    cycles, speeds = figure.subplots(1, 2)
    for machine, style, marker in zip(MACHINES, ("-", "--"), ("o", "s"), strict=True):
        for way, color in (("elements", "C0"), ("blocks", "C1")):
            of = {size: data["points"][machine][str(size)][way] for size in blocks.SIZES}
            line = [(size, point["cycles"]) for size, point in of.items() if point]
            cycles.plot([s for s, _ in line], [c for _, c in line], style, marker=marker, color=color, label=f"{way}, {machine}")
        line = [(size, number) for size in blocks.SIZES if (number := speed(data, machine, size)) is not None]
        speeds.plot([s for s, _ in line], [n for _, n in line], style, marker=marker, color="C2", label=f"speed, {machine}")
        multiplied = data["multiplied"][machine]
    speeds.axhline(multiplied, color="grey", linewidth=0.8, label=f"{multiplied} multiplications a cycle in a block")
    cycles.set(yscale="log", ylabel="cycles")
    speeds.set(ylabel="speed of blocks over elements", ylim=(0, 300))
    for axes in (cycles, speeds):
        axes.set_xscale("log", base=2)
        axes.set(xlabel="block", xticks=blocks.SIZES, xticklabels=blocks.SIZES)
        axes.grid(alpha=0.3)
    speeds.set_title("above the line: elements also wait for the memory of rda", fontsize="small")
    legend(figure)


def run(options: Options) -> None:
    store = ROWS / "blocks.jsonl"
    known = load(store, blocks.Row)
    points = [p for p in blocks.points(["ideal"], 12) if like(p.key, options.only)]
    work(left(points, known), lambda point: blocks.run(point, options.limit), store, known)


FIGURE = Figure("figure16", "Figure 16, attention in blocks", ("blocks",), collect, table, checks, draw, run)
