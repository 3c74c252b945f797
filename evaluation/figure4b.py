"""Figure 4b: the GCN on Collab unfused, rewritten by hand, and fused.

    python evaluation/figures.py figure4b --run

A rewrite joins expressions by hand for a compiler that fuses within one: regions of neighbours with one result each, whose operands all
meet in one iteration space (`iteration: global`). There are 128 ways to join 8 operators; the estimate compares them all, in that
iteration and in the factored one, and the best is executed. So is the plainest: products and bias of each layer as one expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import model_runs
from claims import Check, as_published, cell, doubtful, markdown, published, ratio, rising, within
from frame import Data, Figure, Options
from store import ROOT, ROWS, left, like, load, rows, work, write

from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source
from fuseflow.frontend.sources import load as load_model
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

DATA, MACHINE = "synthetic:collab", "comal"
OPERATORS = (("T0",), ("T1",), ("T2",), ("H",), ("T4",), ("T5",), ("T6",), ("m", "S", "E", "Y"))
"""Einsums of the eight unfused regions of models/paper/gcn.py."""
ITERATIONS = ("global", "factored")
WAYS = {
    "unfused": "unfused",
    "figure4b/joined": "each layer one expression, global",
    "figure4b/joined_best": "the best of 128 rewrites, global",
    "figure4b/joined_factored": "each layer one expression, factored",
    "partial": "fuseflow, partial",
}
"""What is executed: schedules, and what a picture calls them."""
JOINED = {
    "unfused": "factored: T0 | T1 | T2 | H | T4 | T5 | T6 | m S E Y",
    "figure4b/joined": "global: T0 T1 T2 | H | T4 T5 T6 | m S E Y",
    "figure4b/joined_best": "global: T0 | T1 T2 H | T4 | T5 T6 m S E Y",
    "figure4b/joined_factored": "factored: T0 T1 T2 | H | T4 T5 T6 | m S E Y",
    "partial": "factored: T0 T1 T2 H | T4 T5 T6 m S E Y",
}
"""Their rows in joinings.jsonl."""
PUBLISHED = {"unfused": "unfused", "figure4b/joined_best": "rewrite", "partial": "fuseflow"}


def point(way: str, machine: str = MACHINE) -> model_runs.Point:
    return model_runs.Point("gcn", "collab", DATA, way, machine)


def collect() -> Data:
    ran = rows("models") | rows("gcn")
    found = {way: ran.get(point(way).key) for way in WAYS}
    beside = {way: ran.get(point(way, "rda").key) for way in WAYS}
    estimated = rows("joinings")
    joined = sorted((row["cycles"], row["iteration"], row["joined"]) for row in estimated.values())
    least = {it: next(({"cycles": c, "joined": j} for c, i, j in joined if i == it), None) for it in ITERATIONS}
    return {
        "cycles": {way: row["cycles"] if row else None for way, row in found.items()},
        "rda": {way: row["cycles"] if row else None for way, row in beside.items()},
        "estimated": {way: estimated[key]["cycles"] if key in estimated else None for way, key in JOINED.items()},
        "joinings": len(joined),
        "least": least,
        "published": published("figure4b"),
        "seconds": {MACHINE: sum(row["seconds"] for row in found.values() if row)},
    }


def speed(data: Data, way: str, machine: str = "cycles") -> float | None:
    return ratio(data[machine]["unfused"], data[machine][way])


def table(data: Data) -> str:
    def theirs(way: str) -> str:
        name = PUBLISHED.get(way, "")
        return f"{data['published'][name]:.2f}{' ?' if name in doubtful('figure4b') else ''}" if name else ""

    lines = []
    for way, title in WAYS.items():
        ours, beside = ([cell(data[of][way], ","), cell(speed(data, way, of))] for of in ("cycles", "rda"))
        lines.append([title, *ours, theirs(way), cell(data["estimated"][way], ","), *beside])
    return markdown(("GCN on Collab", "cycles on comal", "speed", "published", "estimated", "cycles on rda", "speed"), lines)


def checks(data: Data) -> list[Check]:
    rewrite, fused = speed(data, "figure4b/joined_best"), speed(data, "partial")
    least, theirs = data["least"]["global"], data["published"]
    found = [
        rising("unfused < rewrite < fuseflow", (1.0, rewrite, fused), 3, list(theirs.values())),
        as_published("rewrite over unfused", rewrite, theirs["rewrite"]),
        as_published("fuseflow over unfused", fused, theirs["fuseflow"]),
    ]
    if least and data["cycles"]["figure4b/joined_best"]:
        near = data["cycles"]["figure4b/joined_best"] / least["cycles"]
        what = f"cycles of the rewrite over the least estimate of {data['joinings'] // 2} rewrites"
        found.append(within(what, near, 0.99, 1.01, 3))
    return found


def draw(data: Data, figure: Any) -> None:
    """What was not executed has the outline of its estimate."""
    axes = figure.subplots()
    ways = list(reversed(WAYS))
    for y, way in enumerate(ways):
        number, guess = speed(data, way), ratio(data["estimated"]["unfused"], data["estimated"][way])
        color = "C0" if way in PUBLISHED else "C7"
        if number is not None:
            axes.barh(y, number, color=color)
        elif guess is not None:
            axes.barh(y, guess, facecolor="none", edgecolor=color, linestyle="--", label="estimated, not run")
        if shown := number or guess:
            axes.annotate(f"{shown:.2f}", (shown, y), xytext=(8, 0), textcoords="offset points", va="center", fontsize="small")
    theirs = [(data["published"][PUBLISHED[way]], y) for y, way in enumerate(ways) if way in PUBLISHED]
    hollow = {"marker": "D", "facecolors": "none", "edgecolors": "black", "zorder": 3}
    axes.scatter([x for x, _ in theirs], [y for _, y in theirs], label="published", **hollow)
    axes.set_yticks(range(len(ways)), [WAYS[way] for way in ways])
    axes.set(xlabel=f"speed over unfused, {MACHINE}", xlim=(0, 3))
    axes.barh(0, 0, color="C0", label="a version of the paper")
    axes.barh(0, 0, color="C7", label="a version of ours")
    axes.axvline(1, color="black", linewidth=0.6)
    axes.legend(fontsize="small")


# Rows ------------------------------------------------------------------------------------------------------------------------


def run(options: Options) -> None:
    """Estimate all joinings, then execute what is missing."""
    if not rows("joinings"):
        source = load_model(ModelSpec(ROOT / "models" / "paper" / "gcn.py", data=DATA))
        write("joinings", joinings(source))
    store = ROWS / "gcn.jsonl"
    executed = load(store, model_runs.Row)
    asked = [point(way) for way in WAYS if way not in model_runs.GRANULARITIES]  # those of `model_runs.py` are its own
    asked = [p for p in asked if like(p.key, options.only)]
    work(left(asked, executed), lambda p: model_runs.run(p, None, options.limit), store, executed)


def joinings(source: Source) -> Iterator[dict[str, Any]]:
    """Estimated cycles of every way to cut the chain of operators into regions, in both iterations."""
    estimator, machine = Estimator(), load_machine(MACHINE)
    for iteration, cuts in product(ITERATIONS, product((False, True), repeat=len(OPERATORS) - 1)):
        groups = [list(OPERATORS[0])]
        for cut, operator in zip(cuts, OPERATORS[1:], strict=True):
            if cut:
                groups.append(list(operator))
            else:
                groups[-1] += operator
        regions = {f"joined{n}": group for n, group in enumerate(groups) if tuple(group) not in OPERATORS}
        schedule = Schedule.fuse(*(regions or ("none",))).lower(order_policy="first", iteration=iteration)
        for name, group in regions.items():
            schedule = schedule.region(name, *group)
        program, compiled = lower(source.program, schedule, source.tensors)
        found = estimator.estimate(estimator_regions(compiled), program, source.tensors, machine)
        joined = " | ".join(" ".join(group) for group in groups)
        yield {"key": f"{iteration}: {joined}", "iteration": iteration, "joined": joined, "cycles": round(found.cycles)}


ABOUT = ("figure4b", "Figure 4b, a GCN rewritten by hand", ("joinings", "gcn", "models"))
FIGURE = Figure(*ABOUT, collect, table, checks, draw, run, size=(9, 3.2))
