"""After Figure 17 and Table 4 of SparTA: random elements of a product, with one or two of every few in a part of their own.

    python evaluation/figures.py sparta_figure17 --run [--only '256/*']     # complete the rows, three minutes in all

A and B are N x N, and 50 to 90 % of B is pruned anywhere. SparTA computes one of every two on the sparse tensor core of a GPU, which takes
half the time of a full product, and the rest on other cores. What is left to them is Table 4, and follows from the share alone.

An n:m part is as regular here: it has n entries for every m places, zeros among them where there are fewer, and takes n / m of the cycles
of a full product in single elements, whatever was pruned. It stores no coordinates. But single elements skip zeros on this machine, which
no GPU does as fast, and units for blocks take 256 multiply-accumulates a cycle. So single elements on two lanes take fewer cycles than an
n:m part and its residue on two units, at every share, and blocks of 32x32 fewer than both up to a share of about 80 %.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from claims import Check, cell, markdown, published, ratio, together, within
from frame import Data, Figure, Options
from pictures import legend, look
from sparta_products import complete_points, cycles, key_of, operands, planned, product_text, scattered
from store import rows

STORE = "sparta_figure17"
POINTS = ((256, "ideal"), (256, "rda"), (1024, "ideal"))
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
PLANS = {"nm(1:2)": ("nm(1:2)", "elements"), "nm(2:4)": ("nm(2:4)", "elements")}
SINGLE = {"32x32": ("32x32", 1), "elements": ("elements", 1), "elements, two lanes": ("elements", 2)}
WAYS = ("full", *SINGLE, *PLANS)
"""`full` multiplies single elements, and zeros, too."""


def run(options: Options) -> None:
    """Complete the rows, one line when each point is done."""
    complete_points(STORE, ((*point, share, way) for point, share, way in product(POINTS, SHARES, WAYS)), measured, options)


def measured(size: int, machine: str, share: float, way: str) -> dict[str, int]:
    from fuseflow.einsum.parse import parse

    arrays = operands(scattered(size, 1 - share))
    if way == "full":
        program = parse(product_text("A", "dense block 32x1", "B", "dense", size))
        return {"cycles": cycles(machine, program, dict(zip("AB", arrays, strict=True)))}
    form, lanes = SINGLE.get(way, ("", 1))
    program, parts = planned(machine, size, arrays, PLANS.get(way, (form,)))
    return {"cycles": cycles(machine, program, parts, lanes)}


def residue(share: float, n: int, m: int) -> float:
    """What part of all places is left to single elements, in a mask of 1024 x 1024."""
    from fuseflow.plan.partition import nm_part

    mask = scattered(1024, 1 - share)
    return round(float((mask & ~nm_part(mask, n, m)).mean()), 6)


def collect() -> Data:
    residues = {f"{n}:{m}": {str(share): residue(share, n, m) for share in SHARES} for n, m in ((1, 2), (2, 4))}
    return {
        "cycles": {key: row["cycles"] for key, row in sorted(rows(STORE).items())},
        "left": residues,
        "published": published(STORE),
    }


def table(data: Data) -> str:
    heads = ["N", "machine", "pruned", "full", *SINGLE, *(f"{plan} and elements" for plan in PLANS)]
    heads += ["left after 1:2", "published", "after 2:4"]
    lines = []
    for (size, machine), share in product(POINTS, SHARES):
        counts = [cell(data["cycles"].get(key_of(size, machine, share, way)), ",") for way in WAYS]
        left = [f"{data['left'][nm][str(share)]:.1%}" for nm in ("1:2", "2:4")]
        lines.append(
            [str(size), f"`{machine}`", f"{share:.0%}", *counts, left[0], f"{data['published'][f'{share:.0%}']:.1%}", left[1]]
        )
    return markdown(heads, lines, 2)


def checks(data: Data) -> list[Check]:
    theirs = data["published"]
    ours = {s: 100 * data["left"]["1:2"][str(s)] for s in SHARES}
    printed = {s: 100 * theirs[f"{s:.0%}"] for s in SHARES}
    left = (within(f"{s:.0%}", ours[s], printed[s] - 0.1, printed[s] + 0.1, 1, printed[s]) for s in SHARES)
    return [
        together("percent that 1:2 leaves, within 0.1", left),
        *(
            together(f"1:2 and elements over full, a half, {size} on `{machine}`", parts)
            for size, machine in POINTS
            for parts in [[_over(data, size, machine, share, "full", 0.49, 0.56) for share in SHARES]]
        ),
        *(
            together(f"1:2 and elements over elements on two lanes, more than 1, {size} on `{machine}`", parts)
            for size, machine in POINTS
            for parts in [[_over(data, size, machine, share, "elements, two lanes", 1, 20) for share in SHARES]]
        ),
    ]


def _over(data: Data, size: int, machine: str, share: float, way: str, least: float, most: float) -> Check:
    counts = (data["cycles"].get(key_of(size, machine, share, each)) for each in ("nm(1:2)", way))
    return within(f"{share:.0%}", ratio(*counts), least, most)


def draw(data: Data, figure: Any) -> None:
    for plot, (size, machine) in zip(figure.subplots(1, len(POINTS)), POINTS, strict=True):
        for n, way in enumerate(WAYS):
            there = {s: data["cycles"].get(key_of(size, machine, s, way)) for s in SHARES}
            kept = [(f"{share:.0%}", count) for share, count in there.items() if count]
            plot.plot(*np.array(kept, dtype=object).T, label=f"{way} and elements" if way in PLANS else way, **look(n, len(WAYS)))
        plot.set(xlabel="pruned elements", ylabel="cycles", yscale="log", title=f"N = {size}, {machine}")
    legend(figure)


FIGURE = Figure(
    STORE, "After Figure 17 and Table 4 of SparTA: n:m parts", (STORE,), collect, table, checks, draw, run, size=(13, 4)
)
