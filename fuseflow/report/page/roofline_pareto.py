"""Pictures of points on logarithmic axes: the roofline of regions, and the Pareto front of points with two numbers (less is better)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuseflow.report.page.svg import Markup, element, line, number, shorten, svg, text
from fuseflow.report.page.things import Thing

TOP, WIDE, HIGH, BELOW = 12, 330, 240, 46
"""The height above the axes, their width and height, and the height of the numbers and the name below them, in pixels."""
LETTER, LINE = 6.2, 12
"""The width of a letter and the height of a line, in pixels."""
BESIDE = 9
"""How far a name stands from the middle of its point."""
BESIDE_POINTS, BESIDE_LINES = (4, -7, 16, -19, 28), (-7, 16, -19, 28, 4)
"""Where the foot of a name may stand below the middle of its point, the best first: in a picture of points, and in one with a line through
them."""


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis from `low` to `high`, drawn from `start` to `end`. Both are 1, 2 or 5 times a power of ten, as near to the values
    as that allows."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> LogAxis:
        steps = [digit * 10.0**k for k in range(-24, 25) for digit in (1, 2, 5)]
        low = max((step for step in steps if step <= min(values) / 1.2), default=steps[0])
        high = min((step for step in steps if step >= max(values) * 1.2), default=steps[-1])
        return cls(low, high, start, end)

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """The powers of ten in the axis, with 2 and 5 times them where few powers are in it."""
        few = self.high / self.low <= 1000
        values = (digit * 10.0**k for k in range(-24, 25) for digit in ((1, 2, 5) if few else (1,)))
        return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]


def grid(across: LogAxis, up: LogAxis, names: tuple[str, str], form: str) -> Iterator[Markup]:
    """Draw the lines of the grid of two axes, with their numbers in a format such as `g`, and the names of the axes."""
    left = across.start
    for tick in across.ticks:
        x = across.at(tick)
        yield line(x, TOP, x, TOP + HIGH, "grid")
        yield text(x, TOP + HIGH + 16, f"{tick:{form}}", "op", "middle")
    for tick in up.ticks:
        y = up.at(tick)
        yield line(left, y, left + WIDE, y, "grid")
        yield text(left - 6, y + 4, f"{tick:{form}}", "op", "end")
    yield text(left + WIDE / 2, TOP + HIGH + 36, names[0], "op", "middle")
    turned = f"rotate(-90 14 {number(TOP + HIGH / 2)})"
    yield element("text", names[1], x=14, y=TOP + HIGH / 2, class_="op", text_anchor="middle", transform=turned)


@dataclass(slots=True)
class LabelPlaces:
    """The boxes of a picture that are taken: left, right and foot of each. `heights` are the heights for names, the best first."""

    heights: tuple[int, ...] = BESIDE_POINTS
    _taken: list[tuple[float, float, float]] = field(default_factory=list)

    @classmethod
    def around(cls, points: Iterable[tuple[float, float]], heights: tuple[int, ...] = BESIDE_POINTS) -> LabelPlaces:
        """Return the places around points, whose circles names must not hide. `heights` are as in the class."""
        return cls(heights, [(x - 5, x + 5, y + 5) for x, y in points])

    def place(self, x: float, y: float, name: str) -> tuple[float, float] | None:
        """Take a place for the name of the point at (x, y), and return where it begins; None if all are taken.

        >>> places = LabelPlaces.around([(10, 50), (30, 50)])
        >>> places.place(10, 50, "one"), places.place(30, 50, "two")
        ((19, 43), (39, 54))
        """
        left, right = x + BESIDE, x + BESIDE + LETTER * len(name)
        for height in self.heights:
            foot = y + height
            if all(abs(foot - at) >= LINE or right < start or end < left for start, end, at in self._taken):
                self._taken.append((left, right, foot))
                return left, foot
        return None


ROOFLINE_LEFT, ROOFLINE_RIGHT = 60, 120
ROOM = 160
"""The length of the roof of the memory in the picture from which on its label stands along it."""
LETTERS = 20
"""The number of letters of a name that are shown."""


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A region with its FLOPs, the bytes that were moved for it, its cycles, and the cycles of its busiest node (`compute`). It
    leads to its `thing` on the page. A `hollow` point belongs to the baseline."""

    name: str
    flops: int
    bytes: int
    cycles: int
    compute: int
    thing: Thing
    hollow: bool = False

    @classmethod
    def of(cls, name: str, region: Mapping[str, Any], thing: Thing, hollow: bool = False) -> RooflinePoint:
        """Return the point of a region of a result. If the memory answers at once, the bytes are those that nodes request."""
        statistics, memory = region["statistics"], region["statistics"]["memory"]
        asked = sum(traffic["bytes"] for traffic in statistics["traffic"])
        moved = asked if memory is None else memory["read_bytes"] + memory["written_bytes"]
        flops = sum(statistics["flops"].values())
        return cls(name, flops, moved, region["cycles"], region["roofline"]["compute"], thing, hollow)

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


def roofline(regions: Iterable[RooflinePoint], peak: float | None) -> Markup | None:
    """Draw the roofline, or return None if no region has both FLOPs and bytes. `peak` is the bandwidth of the memory in bytes per cycle, or
    None if it answers at once."""
    points = [p for p in regions if p.flops and p.bytes and p.cycles and p.compute]
    if not points:
        return None
    across = LogAxis.around([p.intensity for p in points], ROOFLINE_LEFT, ROOFLINE_LEFT + WIDE)
    roofs = [] if peak is None else [peak * across.low, peak * across.high]
    speeds = [s for p in points for s in (p.speed, p.ceiling)]
    up = LogAxis.around([*speeds, *(r for r in roofs if r < 10 * max(speeds))], TOP + HIGH, TOP)
    places = LabelPlaces.around((across.at(p.intensity), up.at(speed)) for p in points for speed in (p.speed, p.ceiling))
    parts = [*grid(across, up, ("FLOPs a byte", "FLOPs a cycle"), "g")]
    if peak is not None:
        parts += _memory(peak, across, up)
    parts += [_roofline_mark(point, across, up, places) for point in points]
    return svg(ROOFLINE_LEFT + WIDE + ROOFLINE_RIGHT, TOP + HIGH + BELOW, Markup("").join(parts), "roofline of the regions")


def _memory(peak: float, across: LogAxis, up: LogAxis) -> Iterable[Markup]:
    """Draw the roof of the memory, which moves `peak` bytes per cycle, as far as it is within the axes."""
    label = f"memory: {peak:g} bytes a cycle"
    low = max(across.low, up.low / peak)
    high = min(across.high, up.high / peak)
    if low >= high:
        place = "above" if peak * across.low >= up.high else "below"
        yield text(ROOFLINE_LEFT + 8, TOP + 14, f"{label}, {place} this picture", "op")
        return
    x1, y1, x2, y2 = across.at(low), up.at(peak * low), across.at(high), up.at(peak * high)
    yield line(x1, y1, x2, y2, "roof", label)
    if x2 - x1 < ROOM:
        yield text(x2 + 8, max(y2, TOP) + 14, label, "op")
        return
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    turned = f"rotate({number(math.degrees(math.atan2(y2 - y1, x2 - x1)))} {number(x)} {number(y)})"
    yield element("text", label, x=x, y=y - 6, class_="op", text_anchor="middle", transform=turned)


def _roofline_mark(point: RooflinePoint, across: LogAxis, up: LogAxis, places: LabelPlaces) -> Markup:
    """Draw the point of a region. A name without a free place appears only under the mouse."""
    x, y, roof = across.at(point.intensity), up.at(point.speed), up.at(point.ceiling)
    name = shorten(point.name, LETTERS)
    place = places.place(x, y, name)
    tip = (
        f"{point.name}: {point.speed:.3g} FLOPs a cycle, {point.intensity:.3g} FLOPs a byte; "
        f"{point.ceiling:.3g} if its busiest node never waited"
    )
    inside = [
        element("title", tip),
        line(x, y, x, roof, "gap"),
        line(x - 9, roof, x + 9, roof, "roof"),
        element("circle", cx=x, cy=y, r=5),
        Markup("") if place is None else text(*place, name, "op"),
    ]
    drawn = element("g", Markup("").join(inside), class_="point hollow" if point.hollow else "point", data_t=point.thing.number)
    return element("a", drawn, href=f"#{point.thing.key}", data_t=point.thing.number)


PARETO_LEFT, PARETO_RIGHT = 74, 110


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A point with its numbers, and the thing of the page to which it leads."""

    name: str
    x: float
    y: float
    thing: Thing


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


def draw_pareto(points: Sequence[ParetoPoint], front: Sequence[ParetoPoint], across_name: str, up_name: str) -> Markup:
    """Draw the points on logarithmic axes with these names, and a line through the front. Each point leads to its place on the page."""
    across = LogAxis.around([p.x for p in points], PARETO_LEFT, PARETO_LEFT + WIDE)
    up = LogAxis.around([p.y for p in points], TOP + HIGH, TOP)
    steps = [(across.at(p.x), up.at(p.y)) for p in front]
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in _stairs(steps))
    places = LabelPlaces.around(((across.at(p.x), up.at(p.y)) for p in points), BESIDE_LINES)
    best = {p.thing for p in front}
    marks = [_pareto_mark(p, across, up, places if p.thing in best else None) for p in points]
    parts = [*grid(across, up, (across_name, up_name), ",g"), element("path", d=path, class_="front"), *marks]
    return svg(PARETO_LEFT + WIDE + PARETO_RIGHT, TOP + HIGH + BELOW, Markup("").join(parts), f"{up_name} against {across_name}")


def _stairs(steps: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the corners of a line that falls in steps. No point is below it."""
    for k, (x, y) in enumerate(steps):
        if k:
            yield x, steps[k - 1][1]
        yield x, y


def _pareto_mark(point: ParetoPoint, across: LogAxis, up: LogAxis, places: LabelPlaces | None) -> Markup:
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
    drawn = element("g", Markup("").join(inside), class_="point best" if best else "point", data_t=point.thing.number)
    return element("a", drawn, href=f"#{point.thing.key}")
