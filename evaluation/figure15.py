"""Figure 15: how far lanes speed up attention with a mask in blocks of 64: query rows on 1 to 64 lanes (a), heads, rows and both (b).

    python evaluation/figures.py figure15 --run [--only 'comal/*']

The rows are those of `attention_lanes.py`, which has more ways to run them. `--run` completes the paper's points on `comal`.
"""

from __future__ import annotations

from typing import Any

import attention_lanes
from claims import Check, as_published, cell, markdown, published, ratio, together, within
from frame import Data, Figure, Options
from pictures import bars, legend
from store import ROWS, left, like, load, rows, work

MACHINES = ("comal", "ideal", "rda")
ROWS_DEALT = {f"heads=1,rows={n}": n for n in attention_lanes.FACTORS}
LINEAR = 0.95
"""Of linear that must be reached, up to KNEE lanes."""
KNEE = 16
NEAR, NEAR_BOTH = 0.01, 0.03


def collect() -> Data:
    """Cycles by machine and lanes."""
    found = rows("lanes")
    theirs = published("figure15b")
    names = dict.fromkeys([*ROWS_DEALT, *theirs])
    kept = {machine: {name: found.get(f"{machine}/{name}") for name in names} for machine in MACHINES}
    return {
        "cycles": {m: {name: row["cycles"] if row else None for name, row in of.items()} for m, of in kept.items()},
        "moved": {name: row["moved"] for name, row in kept["rda"].items() if row},
        "published": theirs,
        "seconds": {m: sum(row["seconds"] for row in of.values() if row) for m, of in kept.items()},
    }


def speed(data: Data, machine: str, name: str) -> float | None:
    cycles = data["cycles"][machine]
    return ratio(cycles["heads=1,rows=1"], cycles[name])


def theirs(data: Data, name: str) -> float | None:
    return ratio(data["published"]["heads=1,rows=1"], data["published"].get(name))


def table(data: Data) -> str:
    heads = ["lanes", *(text for machine in MACHINES for text in (f"cycles on {machine}", "speed")), "published cycles", "speed"]
    lines = []
    for name in data["cycles"]["comal"]:
        ours = [text for m in MACHINES for text in (cell(data["cycles"][m][name], ","), cell(speed(data, m, name)))]
        lines.append([name.replace(",", ", "), *ours, cell(data["published"].get(name), ","), cell(theirs(data, name))])
    return markdown(heads, lines)


def checks(data: Data) -> list[Check]:
    found = []
    for machine in MACHINES:
        few = {name: n for name, n in ROWS_DEALT.items() if 1 < n <= KNEE}
        parts = [within(f"{n}:", ratio(speed(data, machine, name), n), LINEAR) for name, n in few.items()]
        found.append(together(f"a, {machine}: speed at least {LINEAR} of linear up to {KNEE} lanes of rows", parts))
    for machine in MACHINES:
        parts = []
        for level in ("heads", "rows"):
            for n in (2, 4):
                name = f"heads={n},rows=1" if level == "heads" else f"heads=1,rows={n}"
                parts.append(as_published(f"{level}={n}:", speed(data, machine, name), float(theirs(data, name) or n), near=NEAR))
        found.append(together(f"b, {machine}: lanes at either level, within {NEAR:.0%}", parts))
        both, most = "heads=4,rows=4", float(theirs(data, "heads=4,rows=4") or 16)
        found.append(
            as_published(f"b, {machine}: lanes at both, within {NEAR_BOTH:.0%}", speed(data, machine, both), most, near=NEAR_BOTH)
        )
    return found


def draw(data: Data, figure: Any) -> None:
    many, few = figure.subplots(1, 2)
    looks = ({"marker": "o", "markersize": 11, "fillstyle": "none"}, {"marker": "s", "linestyle": "--"}, {"marker": "^"})
    for machine, look in zip(MACHINES, looks, strict=True):
        line = [(n, s) for name, n in ROWS_DEALT.items() if (s := speed(data, machine, name)) is not None]
        if line:
            many.plot([n for n, _ in line], [s for _, s in line], label=machine, **look)
    counts = list(ROWS_DEALT.values())
    many.plot(counts, counts, color="grey", linewidth=0.8, label="linear")
    for scale in (many.set_xscale, many.set_yscale):
        scale("log", base=2)
    many.set(title="a: query rows", xlabel="lanes", ylabel="speed over one lane", xticks=counts, yticks=counts)
    many.set(xticklabels=counts, yticklabels=counts)
    many.grid(alpha=0.3)
    many.legend(fontsize="small")
    names = [name for name in data["published"] if name != "heads=1,rows=1"]
    against = {MACHINES[0]: [theirs(data, name) for name in names]}
    bars(few, [n.replace(",", "\n") for n in names], {m: [speed(data, m, n) for n in names] for m in MACHINES}, against)
    few.set(title="b: heads, rows, both", ylabel="speed over one lane", yscale="log", ylim=(1, 20))
    few.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    legend(figure, few)


def run(options: Options) -> None:
    store = ROWS / "lanes.jsonl"
    known = load(store, attention_lanes.Row)
    names = {*ROWS_DEALT, *published("figure15b")}
    points = attention_lanes.points(["comal"], attention_lanes.DATA, attention_lanes.HEADS)
    points = [p for p in points if p.key.partition("/")[2] in names and like(p.key, options.only)]
    work(left(points, known), lambda point: attention_lanes.run(point, options.limit), store, known)


FIGURE = Figure("figure15", "Figure 15, lanes of attention", ("lanes",), collect, table, checks, draw, run)
