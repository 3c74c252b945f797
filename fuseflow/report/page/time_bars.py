"""Bars over time: of a run, whose regions stand one after the other, and of each node, with what it did in each window of cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from fuseflow.report.page.html_elements import element, number
from fuseflow.report.page.things import Thing

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
