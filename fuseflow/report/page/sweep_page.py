"""The page of a sweep: its Pareto front, all of its points, and for each point its values and the command that runs it alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fuseflow.errors import FileError
from fuseflow.report.page.assets import render
from fuseflow.report.page.html_tables import Cell, Column, Link, html_table
from fuseflow.report.page.page import packed_page, page, printable
from fuseflow.report.page.roofline_pareto import ParetoPoint, draw_pareto, pareto_front
from fuseflow.report.page.run_directory import read_packed_run
from fuseflow.report.page.svg import Markup
from fuseflow.report.page.things import Thing, Things
from fuseflow.report.sweep_table import Record, SweepRows, objective_column, records, shared_values
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
        fronts=_fronts(sweep, rows.lines, points),
        table=_table(rows, points),
        shared=shared_values(rows) if rows.lines else "",
        points=points,
    )


def _packed_run(sweep: Sweep, place: LabeledPoint, k: int) -> str:
    """Return the packed page of the run of the point `place`, or "" if none was kept. `k` is its number in messages."""
    run = sweep.store.run(place.point.key("simulate"))
    try:
        return "" if run is None else packed_page(page(read_packed_run(run, sweep.file.folder)))
    except FileError as error:
        raise FileError(f"`{sweep.store.path}`, point {k}: {error.message}", hint="`--no-runs` leaves runs out") from error


def _point_page(
    k: int, place: LabeledPoint, line: Record, rows: SweepRows, axes: Sequence[str], things: Things, run: str
) -> PointPage:
    name = place.name([axis for axis in axes if axis in place.labels]) or f"point {k}"
    thing = things.add("point", f"{k}. {name}")
    known = [(column, value) for column in rows.columns if (value := line.get(column)) not in (None, "")]
    facts = [(column, f"{value:,}" if isinstance(value, int) else str(value)) for column, value in known]
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


def _table(rows: SweepRows, points: Sequence[PointPage]) -> Markup:
    """Return the table of all points, with the axes on which they differ."""
    values = {column: {line.get(column) for line in rows.lines} for column in rows.columns}
    shown = [column for column, all in values.items() if (len(all) > 1 if column in rows.axes else all - {None, ""})]
    columns = [Column("point", "a click opens it", words=True), *(Column(name, words=name in rows.axes) for name in shown)]
    table = [
        (Link(str(k), point.thing), *(None if (cell := line.get(name)) == "" else cell for name in shown))
        for k, (point, line) in enumerate(zip(points, rows.lines, strict=True), 1)
    ]
    return html_table(columns, table)


def _fronts(sweep: Sweep, lines: Sequence[Record], points: Sequence[PointPage]) -> list[dict[str, Any]]:
    """Return pictures of the points of every workload, each of cycles against a number that they have, with its Pareto front."""
    groups: dict[str, list[int]] = {}
    for k, place in enumerate(sweep.space.points):
        groups.setdefault(place.point.workload, []).append(k)
    up = objective_column(sweep) if sweep.file.content.objective == "cycles" else "cycles"
    prefix = "estimated_" if up.startswith("estimated_") else ""
    fronts = []
    differing = [axis for axis in WORKLOAD if len({line.get(axis) for line in lines}) > 1]
    for members in groups.values():
        labels = sweep.space.points[members[0]].labels
        workload = f", {', '.join(str(labels[axis]) for axis in differing)}" if differing else ""
        for name, axis in AXIS_NAMES.items():
            placed = [
                ParetoPoint(_schedule(sweep.space.points[k], sweep.space.axes), x, y, points[k].thing)
                for k in members
                if (x := _number(lines[k].get(prefix + name))) and (y := _number(lines[k].get(up)))
            ]
            if len({point.x for point in placed}) < 2:
                continue
            best = pareto_front(placed)
            title = f"Cycles against {axis}{workload}"
            picture = draw_pareto(placed, best, axis, up.replace("_", " "))
            fronts.append({"title": title, "picture": picture, "best": best})
    return fronts


def _schedule(place: LabeledPoint, axes: Sequence[str]) -> str:
    """Return the labels that distinguish a point from other points of its workload."""
    return place.name([axis for axis in axes if axis in place.labels and axis not in WORKLOAD]) or "the only point"


def _number(value: Cell) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
