"""A picture of points with two numbers each (less is better), and of their Pareto front: the points that no other point beats in
both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuseflow.report.page.label_places import BESIDE_LINES, LabelPlaces
from fuseflow.report.page.log_axis import LogAxis
from fuseflow.report.page.svg import Markup, element, line, number, shorten, svg, text

LEFT, TOP, WIDE, HIGH = 74, 12, 330, 240
RIGHT, BELOW = 110, 46


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A point with its numbers. `key` is its place in the address bar, and `thing` its number on the page."""

    name: str
    x: float
    y: float
    key: str
    thing: int


def pareto_front(points: Sequence[ParetoPoint]) -> tuple[ParetoPoint, ...]:
    """Return the points that no other point beats: none has less of one number and not more of the other. Equal points are all kept.

    >>> [p.name for p in pareto_front([ParetoPoint(n, x, y, "", 0) for n, x, y in (("a", 1, 3), ("b", 2, 2), ("c", 2, 3), ("d", 3, 1))])]
    ['a', 'b', 'd']
    """
    front: list[ParetoPoint] = []
    for point in sorted(points, key=lambda p: (p.x, p.y)):
        if not front or point.y < front[-1].y or (point.x, point.y) == (front[-1].x, front[-1].y):
            front.append(point)
    return tuple(front)


def draw_pareto(points: Sequence[ParetoPoint], front: Sequence[ParetoPoint], across_name: str, up_name: str) -> Markup:
    """Draw the points on logarithmic axes with these names, and a line through the front. Each point leads to its place on the
    page."""
    across = LogAxis.around([p.x for p in points], LEFT, LEFT + WIDE)
    up = LogAxis.around([p.y for p in points], TOP + HIGH, TOP)
    steps = [(across.at(p.x), up.at(p.y)) for p in front]
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in _stairs(steps))
    places = LabelPlaces.around(((across.at(p.x), up.at(p.y)) for p in points), BESIDE_LINES)
    best = {p.thing for p in front}
    marks = [_mark(p, across, up, places if p.thing in best else None) for p in points]
    parts = [*_grid(across, up, across_name, up_name), element("path", d=path, class_="front"), *marks]
    return svg(LEFT + WIDE + RIGHT, TOP + HIGH + BELOW, Markup("").join(parts), f"{up_name} against {across_name}")


def _stairs(steps: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the corners of a line that falls in steps. No point is below it."""
    for k, (x, y) in enumerate(steps):
        if k:
            yield x, steps[k - 1][1]
        yield x, y


def _mark(point: ParetoPoint, across: LogAxis, up: LogAxis, places: LabelPlaces | None) -> Markup:
    """Draw a point. Points of the front get `places`, and have their name beside them if there is room; others get None."""
    best = places is not None
    x, y = across.at(point.x), up.at(point.y)
    inside = [
        element("title", f"{point.name}: {point.x:,g} and {point.y:,g}"),
        element("circle", cx=x, cy=y, r=5 if best else 3.5),
    ]
    name = shorten(point.name, 28)
    if places is not None and (place := places.place(x, y, name)) is not None:
        inside.append(text(*place, name, "op"))
    drawn = element("g", Markup("").join(inside), class_="point best" if best else "point", data_t=point.thing)
    return element("a", drawn, href=f"#{point.key}")


def _grid(across: LogAxis, up: LogAxis, across_name: str, up_name: str) -> Iterator[Markup]:
    for tick in across.ticks:
        yield line(across.at(tick), TOP, across.at(tick), TOP + HIGH, "grid")
        yield text(across.at(tick), TOP + HIGH + 16, f"{tick:,g}", "op", "middle")
    for tick in up.ticks:
        yield line(LEFT, up.at(tick), LEFT + WIDE, up.at(tick), "grid")
        yield text(LEFT - 6, up.at(tick) + 4, f"{tick:,g}", "op", "end")
    yield text(LEFT + WIDE / 2, TOP + HIGH + 36, across_name, "op", "middle")
    turned = f"rotate(-90 14 {number(TOP + HIGH / 2)})"
    yield element("text", up_name, x=14, y=TOP + HIGH / 2, class_="op", text_anchor="middle", transform=turned)
