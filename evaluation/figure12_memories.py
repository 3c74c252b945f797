"""Figure 12 on five memories: which fusion is the fastest on each, beside all else that the machine `rda` has.

    python evaluation/figure12_memories.py [--data-dir DIR] [--only 'gcn/*'] [--budget 90] [--list | --estimate | --table]

The points are those of `evaluation.py`, with wider intervals: a point that is expected to take more than ten seconds is sampled with an
error of 5 %. They run one after the other, the cheapest first on all memories, so that the dearest are left when the time is over. Those
of HBM2 are the rows of `evaluation.py` where these have the same data. `--estimate` estimates all points.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from claims import markdown, published
from estimate_runs import MEMORIES
from evaluation_table import interval, speed
from model_runs import GRANULARITIES, Point
from model_runs_table import NAMES
from process_pool import Limits
from store import DATA_DIR, LIMIT, LIST, ONLY, ROOT, ROWS, TABLE, complete, like, load
from store import rows as stored

import fuseflow as ff
from evaluation import Ask, Row, points, row_key, run
from fuseflow.estimate.program import Estimator

STORE_NAME = "figure12_memories"
ESTIMATES = "figure12_memories_estimates"
UNFUSED, PARTIAL, FULL = GRANULARITIES
SAME_AS = {"hbm2": "rda"}
"""The machine of `evaluation.py` that has this memory."""
MEMORY_MB = 8000

RunRows = dict[tuple[str, str, str], Row]
"""Rows of points that are done, by workload, memory and granularity."""


def ask_of(memory: str) -> Ask:
    """What is asked of every point on a memory: which are exact, the error of the others, and the seed."""
    return Ask(exact_seconds=10, error=0.05, seed=0, machine=memory)


def place(point: Point) -> tuple[str, str, str]:
    return f"{point.model}/{point.workload}", point.machine, point.granularity


def usual_rows() -> dict[tuple[str, str, str, str], Row]:
    """The committed rows of `evaluation.py`, by what a point is beside its memory, and by their machine."""
    made = load(ROWS / "evaluation.jsonl", Row).values()
    return {(r.point["model"], r.point["data"], r.point["granularity"], r.point["machine"]): r for r in made if r.state == "done"}


def in_order(data_dir: Path | None) -> list[Point]:
    """All points: the cheapest first, as far as their seconds on HBM2 say. Unfused and partial fusion go together."""
    seconds = {
        (r.point["model"], r.point["workload"], r.point["granularity"]): r.processor_seconds for r in usual_rows().values()
    }

    def cost(point: Point) -> float:
        together = (FULL,) if point.granularity == FULL else (UNFUSED, PARTIAL)
        return max(seconds.get((point.model, point.workload, each), float("inf")) for each in together)

    return sorted((point for memory in MEMORIES for point in points(memory, data_dir)), key=cost)


def measured(asked: Sequence[Point], rows: Mapping[str, Row]) -> RunRows:
    """The rows of the points that are done: their own, or of the same data on a machine that has the same memory."""
    usual, runs = usual_rows(), RunRows()
    for point in asked:
        other = (point.model, point.data, point.granularity, SAME_AS.get(point.machine, ""))
        row = rows.get(row_key(point, ask_of(point.machine))) or usual.get(other)
        if row is not None and row.state == "done":
            runs[place(point)] = row
    return runs


def fastest(rows: Mapping[str, Row]) -> str | None:
    """The granularity whose cycles are fewer than those of all others, also at the worst ends of their intervals; None if there is none."""
    best = min(rows, key=lambda each: interval(rows[each])[1])
    others = [interval(rows[each])[0] for each in rows if each != best]
    return best if others and interval(rows[best])[1] < min(others) else None


def cell(rows: Mapping[str, Row]) -> str:
    """Markdown: how much faster than unfused each fusion is, the fastest in bold. Nothing is fastest while one of the three is missing."""
    if UNFUSED not in rows:
        return "not run"
    best = fastest(rows) if len(rows) == len(GRANULARITIES) else None
    texts = {UNFUSED: UNFUSED} if best == UNFUSED else {}
    texts |= {each: f"{each} {speed(rows[UNFUSED], rows[each]) if each in rows else 'not run'}" for each in (PARTIAL, FULL)}
    return ", ".join(f"**{text}**" if each == best else text for each, text in texts.items())


def estimated_cell(workload: str, runs: RunRows, expected: Mapping[str, Mapping[str, int]]) -> str:
    """The least and the largest speeds that are expected on those memories on which one of the three was not run, of the cycles that are
    expected by granularity and memory."""
    missing = [memory for memory in MEMORIES if any((workload, memory, each) not in runs for each in GRANULARITIES)]
    if not missing or len(expected) < len(GRANULARITIES):
        return ""
    texts = []
    for each in (PARTIAL, FULL):
        speeds = sorted({f"{expected[UNFUSED][memory] / expected[each][memory]:.2f}" for memory in missing}, key=float)
        texts.append(f"{each} {' to '.join(dict.fromkeys((speeds[0], speeds[-1])))}")
    return f"on {len(missing)}: {', '.join(texts)}"


def table(asked: Sequence[Point], runs: RunRows) -> str:
    """Markdown: a line for each workload, with the speeds over unfused on each memory."""
    estimates, lines = stored(ESTIMATES), []
    order = list(published("figure12"))
    for point in sorted(asked, key=lambda point: order.index(place(point)[0])):
        if (point.machine, point.granularity) == (MEMORIES[0], UNFUSED):
            workload = place(point)[0]
            of = [{each: runs[key] for each in GRANULARITIES if (key := (workload, m, each)) in runs} for m in MEMORIES]
            names = {each: without_memory(replace(point, granularity=each)) for each in GRANULARITIES}
            expected = {each: estimates[name]["cycles"] for each, name in names.items() if name in estimates}
            lines.append([NAMES[point.model], f"`{point.data}`", *map(cell, of), estimated_cell(workload, runs, expected)])
    return markdown(["model", "data", *MEMORIES, "estimated where not run"], lines, 2)


def summary(runs: RunRows) -> str:
    """For how many workloads at a memory the points were run, and which of them is the fastest."""
    texts = []
    for wanted in ((UNFUSED, PARTIAL), GRANULARITIES):
        places = [key[:2] for key in runs if key[2] == UNFUSED and all((*key[:2], each) in runs for each in wanted)]
        best = Counter(fastest({each: runs[*key, each] for each in wanted}) or "none for sure" for key in places)
        texts.append(
            f"{', '.join(wanted)}: {len(places)} run, fastest {', '.join(f'{k} {n}' for k, n in sorted(best.items()))}\n"
        )
    return "".join(texts)


def without_memory(point: Point) -> str:
    return f"{point.model}/{point.data}/{point.granularity}"


def estimate(point: Point, data_dir: Path | None) -> dict[str, Any]:
    """The cycles that are expected of a point on each memory, and the share of them in which the memory moves lines."""
    schedule = ff.Schedule.load(ROOT / "schedules" / f"{point.model}_{point.granularity}.yaml")
    path = ROOT / "models" / "paper" / f"{point.model}.py"
    directory = None if ":" in point.data else data_dir
    program, estimator = ff.compile(path, schedule=schedule, data=point.data, data_dir=directory), Estimator()
    expected = {memory: replace(program, machine=ff.load_machine(memory)).estimate(estimator) for memory in MEMORIES}
    moving = {memory: sum(region.times * region.bound.memory for region in each.regions) for memory, each in expected.items()}
    return {
        "cycles": {memory: round(each.cycles) for memory, each in expected.items()},
        "moving": {memory: round(moving[memory] / each.cycles, 4) for memory, each in expected.items()},
    }


@click.command(help=__doc__.partition("\n")[0])
@DATA_DIR
@ONLY
@LIMIT
@click.option("--budget", type=click.FloatRange(0), default=90, show_default=True, help="Minutes after which no point begins.")
@click.option("--estimate", "estimating", is_flag=True, help="Estimate the points, and run none.")
@LIST
@TABLE
def main(
    data_dir: Path | None, only: tuple[str, ...], limit: float, budget: float, estimating: bool, listing: bool, only_table: bool
) -> None:
    path = ROWS / f"{STORE_NAME}.jsonl"
    rows = load(path, Row)
    asked = [point for point in in_order(data_dir) if like(point.key, only)]
    runs = measured(asked, rows)
    left = [p for p in asked if place(p) not in runs and row_key(p, ask_of(p.machine)) not in rows]
    if listing:
        return click.echo("".join(f"{point.key}\n" for point in left), nl=False)
    if estimating:
        by_name = {without_memory(point): point for point in asked}
        return complete(ESTIMATES, by_name, lambda name: estimate(by_name[name], data_dir), ())
    end = time.monotonic() + budget * 60
    for point in () if only_table else left:
        if time.monotonic() < end:
            click.echo(f"{point.machine} ", err=True, nl=False)
            run([point], ask_of(point.machine), path, rows, data_dir, Limits(1, MEMORY_MB, limit, end - time.monotonic()))
    runs = measured(asked, rows)
    click.echo(f"{table(asked, runs)}\n{summary(runs)}", nl=False)


if __name__ == "__main__":
    main()
