"""The values of charts, which the script `charts.js` draws: the roofline of regions, the Pareto fronts of points with two numbers (less is
better), and losses by step. Bars over time, of a run by region, and of a node by what it did in each window of cycles, are drawn here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from fuseflow.report.page.html_elements import element, figure, number
from fuseflow.report.page.things import Thing


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A region with its FLOPs, the bytes that were moved for it, its cycles, the cycles of its busiest node (`compute`), and the
    arithmetic units that it has (`units`). It leads to its `thing` on the page. A `hollow` point belongs to the baseline."""

    name: str
    flops: int
    bytes: int
    cycles: int
    compute: int
    units: int
    thing: Thing
    hollow: bool = False

    @classmethod
    def of(cls, name: str, region: Mapping[str, Any], thing: Thing, hollow: bool = False) -> RooflinePoint:
        """Return the point of a region of a result. If the memory answers at once, the bytes are those that nodes request. Results of
        before units were counted have none."""
        statistics, memory = region["statistics"], region["statistics"]["memory"]
        asked = sum(traffic["bytes"] for traffic in statistics["traffic"])
        moved = asked if memory is None else memory["read_bytes"] + memory["written_bytes"]
        flops = sum(statistics["flops"].values())
        units = sum(region["resources"][unit] for unit in ("mul", "add", "special")) if "resources" in region else 0
        return cls(name, flops, moved, region["cycles"], region["roofline"]["compute"], units, thing, hollow)

    @property
    def drawn(self) -> bool:
        """Whether the point has a place on logarithmic axes."""
        return bool(self.flops and self.bytes and self.cycles and self.compute)

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes

    @property
    def speed(self) -> float:
        return self.flops / self.cycles

    @property
    def ceiling(self) -> float:
        """The FLOPs per cycle that the region would reach if the busiest node never waited."""
        return self.flops / self.compute


def compute_roof(points: Iterable[RooflinePoint]) -> RooflinePoint | None:
    """Return the region with most arithmetic units, whose FLOPs per cycle, if all of them fired in every cycle, are the roof of a
    roofline; None if no region has any."""
    return max((point for point in points if point.units), key=lambda point: point.units, default=None)


def roofline(regions: Sequence[RooflinePoint], peak: float | None) -> Markup | None:
    """Return the roofline, or None if no region has both FLOPs and bytes. `peak` is the bandwidth of the memory in bytes per cycle, or
    None if it answers at once."""
    points = [point for point in regions if point.drawn]
    if not points:
        return None
    roof = compute_roof(regions)
    values = {
        "points": [
            {
                "name": p.name, "x": p.intensity, "y": p.speed, "ceiling": p.ceiling, "hollow": p.hollow, "t": p.thing.number,
                "tip": f"{p.name}: {p.speed:.3g} FLOPs a cycle, {p.intensity:.3g} FLOPs a byte; {p.ceiling:.3g} if its busiest node "
                "never waited",
            }
            for p in points
        ],
        "peak": peak,
        "roof": None if roof is None else {"units": roof.units, "name": roof.name},
    }  # fmt: skip
    return figure("roofline", values, "roofline of the regions")


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A point with its numbers, the workload whose points it may be compared with, and the thing of the page to which it leads. The
    numbers of an `estimated` point were not simulated."""

    name: str
    x: float
    y: float
    thing: Thing
    workload: str = ""
    estimated: bool = False


def pareto_front(points: Sequence[ParetoPoint]) -> tuple[ParetoPoint, ...]:
    """Return the points that no other point beats: none has less of one number and not more of the other. Equal points are all kept.

    >>> numbers = {"a": (1, 3), "b": (2, 2), "c": (2, 3), "d": (3, 1)}
    >>> [p.name for p in pareto_front([ParetoPoint(n, x, y, Thing(0, "point", n, n)) for n, (x, y) in numbers.items()])]
    ['a', 'b', 'd']
    """
    front: list[ParetoPoint] = []
    for point in sorted(points, key=lambda p: (p.x, p.y)):
        if not front or point.y < front[-1].y or (point.x, point.y) == (front[-1].x, front[-1].y):
            front.append(point)
    return tuple(front)


def pareto_chart(points: Sequence[ParetoPoint], best: Iterable[ParetoPoint], across_name: str, up_name: str) -> Markup:
    """Return all points over logarithmic axes with these names, with lines through the fronts, which are the points of `best`."""
    front = {point.thing for point in best}
    values = {
        "points": [
            {
                "name": p.name, "x": p.x, "y": p.y, "workload": p.workload, "t": p.thing.number, "best": p.thing in front,
                "hollow": p.estimated,
                "tip": f"{p.thing.name}: {p.x:,g} {across_name}, {p.y:,g} {up_name}{', estimated' if p.estimated else ''}",
            }
            for p in points
        ],
        "across": across_name,
        "up": up_name,
    }  # fmt: skip
    return figure("pareto", values, f"{up_name} against {across_name}")


def loss_chart(losses: Sequence[float], reference: Sequence[float]) -> Markup:
    """Return the loss of each step, beside the losses of the reference."""
    rows = [{"step": k, "loss": loss, "hollow": False} for k, loss in enumerate(losses, 1)]
    rows += [{"step": k, "loss": loss, "hollow": True} for k, loss in enumerate(reference, 1)]
    return figure("losses", {"points": rows}, "losses by step")


LABELLED = 6.0
"""The percent of the bar from which on a part has its name in it."""
STATES = ("busy", "starved", "memory", "blocked")
"""The states of a node from bottom to top. The rest on top is the time before the first firing and after the last."""


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar. `tip` is shown under the mouse, and a click leads to its `thing`."""

    name: str
    cycles: int
    tip: str
    thing: Thing


LENS = Markup('<div class="lens" tabindex="0" role="group" aria-label="cycles: arrows pan, + and - zoom, 0 shows all"></div>')
"""The axis of a time line, which the scripts draw, and by which it is zoomed."""
ZOOM = Markup("").join(
    element("button", sign, type="button", data_time=key, title=title)
    for sign, key, title in (("+", "+", "zoom in (+)"), ("\N{MINUS SIGN}", "-", "zoom out (-)"), ("reset", "0", "all cycles (0)"))
)
"""The buttons that zoom a time line."""


def time_bar(parts: Sequence[BarPart], scale: int | None = None, colours: Sequence[int] | None = None) -> Markup:
    """Return a bar whose whole width is `scale` cycles, or all cycles of the parts. `colours` has the number of the colour of each part; if
    it is None, parts have the colours in turn."""
    whole = max(scale or sum(part.cycles for part in parts), 1)
    inside = Markup("").join(
        _part(k if colours is None else colours[k], part, 100 * part.cycles / whole) for k, part in enumerate(parts)
    )
    bar = element("div", element("div", inside, class_="time-bar"), class_="over-time")
    tools = element("div", ZOOM, class_="tools")
    return element("div", bar + LENS + tools, class_="timeline", data_cycles=whole)


def _part(colour: int, part: BarPart, percent: float) -> Markup:
    return element(
        "a",
        element("span", part.name) if percent >= LABELLED else "",
        href=f"#{part.thing.key}",
        class_=f"part part-{colour % 6}",
        style=f"width:{percent:.3f}%",
        title=part.tip,
        aria_label=part.tip,
        data_t=part.thing.number,
    )


def stall_strip(cycles: Mapping[str, Sequence[int]], window: int, total: int, processes: int = 1) -> Markup:
    """Return the strip of a node as a drawing that is as wide as its box. `cycles` has a list for each state, window after
    window, summed over the `processes` of the node; `total` are the cycles of the run."""
    windows = max(map(len, cycles.values()), default=0)
    whole = [max(min(window, total - k * window), 1) * processes for k in range(windows)]
    floor = [0.0] * windows
    paths = []
    for state in STATES:
        if state not in cycles:
            continue
        ceiling = [low + cycles[state][k] / whole[k] for k, low in enumerate(floor)]
        paths.append(element("path", class_=f"fill-{state}", d=_steps(floor, ceiling)))
        floor = ceiling
    box = f"0 0 {number(total / window)} 1"
    drawn = element("svg", Markup("").join(paths), class_="strip", viewBox=box, preserveAspectRatio="none", aria_hidden="true")
    return element("div", drawn, class_="over-time")


def _steps(floor: Sequence[float], ceiling: Sequence[float]) -> str:
    """Return the SVG path of the area between the step functions `floor` and `ceiling`. Windows without height, or with the
    height of the one before, add nothing to the path."""
    path, end = "", 0
    for (low, high), windows in groupby(zip(floor, ceiling, strict=True)):
        start, end = end, end + len(list(windows))
        if high > low:
            bottom, top = number(1 - min(low, 1)), number(1 - min(high, 1))
            path += f"M{start} {bottom}V{top}H{end}V{bottom}z"
    return path
