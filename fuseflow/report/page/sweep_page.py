"""The page of a sweep: its Pareto front, all of its points, and for each point its values and the command that runs it alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fuseflow.errors import FileError
from fuseflow.report.page.assets import render
from fuseflow.report.page.charts import ParetoPoint, pareto_chart, pareto_front
from fuseflow.report.page.html_elements import Cell, Column, Link, html_table
from fuseflow.report.page.page import packed_page, page, printable
from fuseflow.report.page.run_directory import read_packed_run
from fuseflow.report.page.things import Thing, Things
from fuseflow.report.sweep_table import Record, SweepRows, records, shared_values
from fuseflow.sweep.design_space import LabeledPoint
from fuseflow.sweep.sweep import Sweep

AXIS_NAMES = {
    "bytes": "bytes",
    "live_bytes": "bytes of live intermediates",
    "mul": "lanes of multiplication",
    "fifo": "bytes of FIFOs",
}
"""The numbers that cycles are drawn against, with the names of their axes."""
WORKLOAD = ("model", "data", "machine")
"""The axes that say on which model, data and machine a schedule is tried. Points of one workload stand in one picture."""
ESTIMATED = "estimated_"
"""The beginning of the columns of estimated numbers."""
SAID = ("cycles", "status", "error", "reason")
"""The columns that the table and the page of a point say in other ways."""
HEADS = {
    "to_best": "of the best",
    "mul": "multipliers",
    "add": "adders",
    "special": "other arithmetic",
    "port": "memory ports",
    "stream": "stream units",
    "fifo": "FIFOs, bytes",
    "workspace": "workspaces, bytes",
    "buffer": "reuse buffers, bytes",
    "flops": "FLOPs",
    "live_bytes": "live bytes",
    "energy_pj": "energy, pJ",
}
"""The heads of columns whose names are short for a file."""
WHY_NO_RUN = {
    "left": "The point has not run yet.",
    "estimated": "The point was estimated, and has no run: `mode: simulate` in the file of the sweep runs it.",
    "sampled": "The point was sampled, and has no run as a whole: `mode: simulate` in the file of the sweep runs it.",
    "simulated": "The run is not in the page: it was not kept, and `--again unkept` does it again, or `--no-runs` left it out.",
}
"""Why the page does not open the run of a point, by the status of the point. One that failed has its error."""


@dataclass(frozen=True, slots=True)
class PointPage:
    """The content of the page about a point. `commands` run it alone, and write its page. `run` is the page of its run, packed;
    it is empty if there is none, and `why_not` says why."""

    name: str
    thing: Thing
    values: Markup
    schedule: str
    commands: tuple[str, ...]
    error: str
    run: str
    why_not: str


@printable
def sweep_page(sweep: Sweep, with_runs: bool = True, report: Callable[[int, int], None] = lambda done, total: None) -> str:
    """Return the page of a sweep, with all points that have results. The same results give the same bytes.

    The pages of the runs that were kept are in it, unless `with_runs` leaves them out. `report` is called with the number of
    points whose pages are made, and the number of all points.
    """
    things, rows, points = Things(), records(sweep), list[PointPage]()
    for k, (place, line) in enumerate(zip(sweep.space.points, rows.lines, strict=True), 1):
        run = _packed_run(sweep, place, k) if with_runs else ""
        points.append(_point_page(k, place, line, rows, sweep.space.axes, things, run))
        report(k, len(rows.lines))
    states = [str(line["status"]) for line in rows.lines]
    return render(
        "sweep.html.jinja",
        things,
        name=sweep.file.path.name,
        done=sum(state not in ("left", "failed") for state in states),
        failed=states.count("failed"),
        left=states.count("left"),
        best=_best(sweep, rows.lines, points),
        fronts=_fronts(sweep, rows.lines, points),
        table=_table(sweep, rows, points),
        shared=shared_values(rows) if rows.lines else "",
        points=points,
    )


def _packed_run(sweep: Sweep, place: LabeledPoint, k: int) -> str:
    """Return the packed page of the run of the point `place`, or "" if none was kept. `k` is its number in messages."""
    run = sweep.store.run(place.point.key("simulate"))
    try:
        return "" if run is None else packed_page(page(read_packed_run(run, sweep.file.folder), bare=True))
    except FileError as error:
        raise FileError(f"`{sweep.store.path}`, point {k}: {error.message}", hint="`--no-runs` leaves runs out") from error


def _point_page(
    k: int, place: LabeledPoint, line: Record, rows: SweepRows, axes: Sequence[str], things: Things, run: str
) -> PointPage:
    name = place.name([axis for axis in axes if axis in place.labels]) or f"point {k}"
    thing = things.add("point", f"{k}. {name}")
    known = [(column, value) for column in rows.columns if (value := line.get(column)) not in (None, "")]
    facts = [(human_name(column), f"{value:,}" if isinstance(value, int) else str(value)) for column, value in known]
    thing.facts += facts
    values = html_table((Column("what", words=True), Column("value", words=True)), facts, sortable=False)
    point = place.point
    why_not = "" if run else WHY_NO_RUN.get(str(line["status"]), "")
    return PointPage(name, thing, values, point.schedule, _commands(k, place), str(line.get("error") or ""), run, why_not)


def _commands(k: int, place: LabeledPoint) -> tuple[str, ...]:
    """Return the commands that run a point alone, and write its page. They read the schedule of the page from a file."""
    point = place.point
    words = ["fuseflow", "run", point.model, "--schedule", "schedule.yaml", "--machine", str(place.labels.get("machine", "rda"))]
    words += ["--data", point.data] if point.data else []
    words += ["--tensors", point.tensors] if point.tensors else []
    words += ["--data-dir", point.data_dir] if point.data_dir else []
    words += [word for key, value in point.options.items() for word in ("-O", f"{key}={value}")]
    words += ["--seed", str(point.seed)] if point.seed else []
    words += ["--propagate"] if point.propagate else []
    folder = f"point-{k}"
    return (shlex.join([*words, "-o", folder, "--explain"]), shlex.join(["fuseflow", "report", folder]))


def _table(sweep: Sweep, rows: SweepRows, points: Sequence[PointPage]) -> Markup:
    """Return the table of all points: what it was made for first, then what else is known, and the axes on which they differ."""
    known = {column: {line.get(column) for line in rows.lines} - {None, ""} for column in rows.columns}
    numbers = dict.fromkeys(name.removeprefix(ESTIMATED) for name in known if name not in (*rows.axes, *SAID) and known[name])
    numbers.pop("cycles", None)
    both = [ESTIMATED + "cycles"] if known.get("cycles") and known.get(ESTIMATED + "cycles") else []
    axes = [axis for axis in rows.axes if len({line.get(axis) for line in rows.lines}) > 1]
    reference = _references(sweep, rows.lines)
    columns = [
        Column("point", "a click opens it", words=True),
        Column("cycles", "simulated if the point was, else estimated"),
        Column("speed-up", "over the slowest point of the same model, data and machine"),
        Column("how known", words=True),
        *(Column(human_name(name)) for name in (*numbers, *both)),
        *(Column(axis, words=True) for axis in axes),
    ]
    table = []
    for point, line, slowest in zip(points, rows.lines, reference, strict=True):
        cycles = _value(line, "cycles")
        speed_up = f"{slowest / cycles:.2f}" if cycles and slowest else ""
        shown = (*(_value(line, name) for name in numbers), *(line.get(name) for name in (*both, *axes)))
        name: Cell = Link(point.name, point.thing)
        table.append((name, cycles, speed_up, str(line["status"]), *shown))
    return html_table(columns, table)


def human_name(column: str) -> str:
    """Return the head of a column of a sweep, in words.

    >>> human_name("estimated_live_bytes"), human_name("mul"), human_name("to_best")
    ('live bytes, estimated', 'multipliers', 'of the best')
    """
    name = column.removeprefix(ESTIMATED)
    return HEADS.get(name, name.replace("_", " ")) + (", estimated" if name != column else "")


def _references(sweep: Sweep, lines: Sequence[Record]) -> list[float]:
    """Return the cycles of the slowest point of the workload of each point."""
    slowest: dict[str, float] = {}
    for place, line in zip(sweep.space.points, lines, strict=True):
        slowest[place.point.workload] = max(slowest.get(place.point.workload, 0.0), _value(line, "cycles") or 0.0)
    return [slowest[place.point.workload] for place in sweep.space.points]


def _best(sweep: Sweep, lines: Sequence[Record], points: Sequence[PointPage]) -> list[dict[str, Any]]:
    """Return the fastest point of every workload, with its cycles, and how many times as fast it is as the slowest one."""
    differing = [axis for axis in WORKLOAD if len({line.get(axis) for line in lines}) > 1]
    best: dict[str, dict[str, Any]] = {}
    for place, line, point, slowest in zip(sweep.space.points, lines, points, _references(sweep, lines), strict=True):
        cycles = _value(line, "cycles")
        if cycles and (place.point.workload not in best or cycles < best[place.point.workload]["cycles"]):
            best[place.point.workload] = {
                "workload": ", ".join(str(place.labels[axis]) for axis in differing),
                "name": _schedule(place, sweep.space.axes),
                "thing": point.thing,
                "cycles": cycles,
                "times": f"{slowest / cycles:.2f}",
            }
    return list(best.values())


def _fronts(sweep: Sweep, lines: Sequence[Record], points: Sequence[PointPage]) -> list[dict[str, Any]]:
    """Return charts of all points, each of cycles against a number that they have, with the Pareto front of every workload."""
    differing = [axis for axis in WORKLOAD if len({line.get(axis) for line in lines}) > 1]
    fronts = []
    for name, axis in AXIS_NAMES.items():
        groups: dict[str, list[ParetoPoint]] = {}
        for place, line, point in zip(sweep.space.points, lines, points, strict=True):
            workload = ", ".join(str(place.labels[axis]) for axis in differing)
            x, y = _value(line, name), _value(line, "cycles")
            if x is not None and y:
                estimated = not line.get("cycles")
                placed = ParetoPoint(_schedule(place, sweep.space.axes), x, y, point.thing, workload, estimated)
                groups.setdefault(place.point.workload, []).append(placed)
        drawn = [point for group in groups.values() for point in group]
        if len({point.x for point in drawn}) < 2:
            continue
        best = [point for group in groups.values() for point in pareto_front(group)]
        picture = pareto_chart(drawn, best, axis, "cycles")
        hollow = any(point.estimated for point in drawn)
        fronts.append(
            {"title": f"Cycles against {axis}", "picture": picture, "best": best, "drawn": len(drawn), "hollow": hollow}
        )
    return fronts


def _schedule(place: LabeledPoint, axes: Sequence[str]) -> str:
    """Return the labels that distinguish a point from other points of its workload."""
    return place.name([axis for axis in axes if axis in place.labels and axis not in WORKLOAD]) or "the only point"


def _value(line: Record, name: str) -> int | float | None:
    """Return a number of a point as it was simulated, or else sampled, or else estimated; None if there is none."""
    values = (line.get(prefix + name) for prefix in ("", "sampled_", ESTIMATED))
    return next((value for value in values if isinstance(value, int | float)), None)
