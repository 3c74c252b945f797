"""After Figure 18 of SparTA: a product of which 50 to 99 % of the elements are pruned anywhere.

    python evaluation/figures.py sparta_figure18 --run [--only '256/*']     # complete the rows, some minutes in all

A and B are N x N. Each way has two units for products, so that formats are compared, and not units. `auto` is what `--plan auto` takes. The
kernels of the paper run on a GPU. Its artifact stores the times of one of them, SparseRT, and how these fall with the share of elements
stands beside ours: a unit of the simulator has no cost of its own for each row, so that its cycles fall faster.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from claims import Check, as_published, cell, markdown, published, ratio, together, within
from frame import Data, Figure, Options
from pictures import legend, look
from sparta_products import complete_points, cycles, key_of, operands, planned, product_text, scattered
from store import rows

STORE = "sparta_figure18"
POINTS = ((256, "ideal"), (256, "rda"), (1024, "ideal"), (1024, "rda"))
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
SINGLE = {"full": "32x32", "8x8": "8x8", "4x4": "4x4", "elements": "elements"}
WAYS = (*SINGLE, "auto")
PUBLISHED = 1024
"""The size of the published product."""
LARGEST = 256
"""The greatest N for which `auto` searches."""


def points() -> list[tuple[int, str, float, str]]:
    every = ((*point, share, way) for point, share, way in product(POINTS, SHARES, WAYS))
    return [point for point in every if point[3] != "auto" or point[0] <= LARGEST]


def run(options: Options) -> None:
    """Complete the rows, one line when each point is done."""
    complete_points(STORE, points(), measured, options)


def measured(size: int, machine: str, share: float, way: str) -> dict[str, Any]:
    arrays = operands(scattered(size, 1 - share))
    if way == "auto":
        return _chosen(machine, size, arrays)
    program, parts = planned(machine, size, arrays, (SINGLE[way],))
    return {"cycles": cycles(machine, program, parts, lanes=2)}


def _chosen(machine: str, size: int, arrays: tuple[Any, Any]) -> dict[str, Any]:
    """The cycles of the plan that a search takes, and its forms."""
    import fuseflow as ff
    from fuseflow.einsum.parse import parse

    program = parse(product_text("A", "dense block 32x1", "B", "csr", size))
    schedule = ff.Schedule.from_yaml("plan: auto")
    choice = ff.autoschedule(program, tensors=dict(zip("AB", arrays, strict=True)), schedule=schedule, machine=machine)
    result = choice.run()
    assert result.check is not None and result.check.passed
    forms = [" and ".join(str(part.form) for part in parts) for _, parts in choice.schedule.plan.operands]
    return {"cycles": result.cycles, "forms": forms[0] if forms else "no change"}


def collect() -> Data:
    kept = {key: {k: v for k, v in row.items() if k in ("cycles", "forms")} for key, row in sorted(rows(STORE).items())}
    return {"ours": kept, "published": published(STORE)}


def _cycles(data: Data, size: int, machine: str, share: float, way: str) -> int | None:
    return data["ours"].get(key_of(size, machine, share, way), {}).get("cycles")


def table(data: Data) -> str:
    heads = ["N", "machine", "pruned", *WAYS, "auto takes", "elements at 50 % / elements", "published, SparseRT"]
    lines = []
    for (size, machine), share in product(POINTS, SHARES):
        counts = [cell(_cycles(data, size, machine, share, way), ",") for way in WAYS]
        forms = data["ours"].get(key_of(size, machine, share, "auto"), {}).get("forms", "")
        fall = cell(_fall(data, size, machine, share), ".1f")
        theirs = data["published"]["50%"] / data["published"][f"{share:.0%}"]
        lines.append([str(size), f"`{machine}`", f"{share:.0%}", *counts, forms, fall, f"{theirs:.1f}"])
    return markdown(heads, lines, 2)


def _fall(data: Data, size: int, machine: str, share: float) -> float | None:
    return ratio(_cycles(data, size, machine, 0.5, "elements"), _cycles(data, size, machine, share, "elements"))


def checks(data: Data) -> list[Check]:
    return [
        *(
            together(f"auto over the best of the others, at most 1.02, {size} on `{machine}`", parts)
            for size, machine in POINTS
            if size <= LARGEST
            for parts in [[_best(data, size, machine, share) for share in SHARES]]
        ),
        together(
            "elements at 50 % over elements at 99 %, 1024",
            [
                as_published(
                    f"on `{machine}`", _fall(data, size, machine, 0.99), data["published"]["50%"] / data["published"]["99%"], 1
                )
                for size, machine in POINTS
                if size == PUBLISHED
            ],
        ),
    ]


def _best(data: Data, size: int, machine: str, share: float) -> Check:
    others = [_cycles(data, size, machine, share, way) for way in SINGLE]
    best = min((count for count in others if count), default=None)
    return within(f"{share:.0%}", ratio(_cycles(data, size, machine, share, "auto"), best), 0, 1.02)


def draw(data: Data, figure: Any) -> None:
    for plot, (size, machine) in zip(figure.subplots(1, len(POINTS)), POINTS, strict=True):
        for n, way in enumerate(WAYS):
            there = [(f"{s:.0%}", count) for s in SHARES if (count := _cycles(data, size, machine, s, way))]
            if there:
                plot.plot(*np.array(there, dtype=object).T, label=way, **look(n, len(WAYS)))
        plot.set(xlabel="pruned elements", ylabel="cycles", yscale="log", title=f"N = {size}, {machine}")
    legend(figure)


FIGURE = Figure(STORE, "After Figure 18 of SparTA: single elements", (STORE,), collect, table, checks, draw, run, size=(16, 4))
