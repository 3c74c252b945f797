"""A drawing of the roofline: FLOPs per cycle over FLOPs per byte, both logarithmic, with a point for each region."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fuseflow.report.page.label_places import LabelPlaces
from fuseflow.report.page.log_axis import LogAxis
from fuseflow.report.page.svg import Markup, element, line, number, shorten, svg, text

LEFT, TOP, WIDE, HIGH = 60, 12, 330, 240
RIGHT, BELOW = 120, 46
ROOM = 160
"""The length of the roof of the memory in the picture from which on its label stands along it."""
LETTERS = 20
"""The number of letters of a name that are shown."""


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A region with its FLOPs, the bytes that were moved for it, its cycles, and the cycles of its busiest node (`compute`). `key` and
    `thing` are its place in the address bar and its number on a page. A `hollow` point belongs to the baseline."""

    name: str
    flops: int
    bytes: int
    cycles: int
    compute: int
    key: str | None = None
    thing: int | None = None
    hollow: bool = False

    @classmethod
    def of(cls, name: str, region: Mapping[str, Any], key: str | None, thing: int | None, hollow: bool = False) -> RooflinePoint:
        """Return the point of a region of a result. If the memory answers at once, the bytes are those that nodes request."""
        statistics, memory = region["statistics"], region["statistics"]["memory"]
        asked = sum(traffic["bytes"] for traffic in statistics["traffic"])
        moved = asked if memory is None else memory["read_bytes"] + memory["written_bytes"]
        flops = sum(statistics["flops"].values())
        return cls(name, flops, moved, region["cycles"], region["roofline"]["compute"], key, thing, hollow)

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
    across = LogAxis.around([p.intensity for p in points], LEFT, LEFT + WIDE)
    roofs = [] if peak is None else [peak * across.low, peak * across.high]
    speeds = [s for p in points for s in (p.speed, p.ceiling)]
    up = LogAxis.around([*speeds, *(r for r in roofs if r < 10 * max(speeds))], TOP + HIGH, TOP)
    places = LabelPlaces.around((across.at(p.intensity), up.at(speed)) for p in points for speed in (p.speed, p.ceiling))
    parts = [*_grid(across, up)]
    if peak is not None:
        parts += _memory(peak, across, up)
    for point in points:
        parts.append(_mark(point, across, up, places))
    title = "roofline of the regions"
    return svg(LEFT + WIDE + RIGHT, TOP + HIGH + BELOW, Markup("").join(parts), title)


def _grid(across: LogAxis, up: LogAxis) -> Iterable[Markup]:
    for tick in across.ticks:
        x = across.at(tick)
        yield line(x, TOP, x, TOP + HIGH, "grid")
        yield text(x, TOP + HIGH + 16, f"{tick:g}", "op", "middle")
    for tick in up.ticks:
        y = up.at(tick)
        yield line(LEFT, y, LEFT + WIDE, y, "grid")
        yield text(LEFT - 6, y + 4, f"{tick:g}", "op", "end")
    yield text(LEFT + WIDE / 2, TOP + HIGH + 36, "FLOPs a byte", "op", "middle")
    turned = f"rotate(-90 14 {number(TOP + HIGH / 2)})"
    yield element("text", "FLOPs a cycle", x=14, y=TOP + HIGH / 2, class_="op", text_anchor="middle", transform=turned)


def _memory(peak: float, across: LogAxis, up: LogAxis) -> Iterable[Markup]:
    """Draw the roof of the memory, which moves `peak` bytes per cycle, as far as it is within the axes."""
    low = max(across.low, up.low / peak)
    high = min(across.high, up.high / peak)
    if low < high:
        yield line(
            across.at(low), up.at(peak * low), across.at(high), up.at(peak * high), "roof", f"memory: {peak:g} bytes a cycle"
        )
        if across.at(high) - across.at(low) < ROOM:
            x, y = across.at(high) + 8, max(up.at(peak * high), TOP) + 14
            yield text(x, y, f"memory: {peak:g} bytes a cycle", "op")
            return
        x, y = (across.at(low) + across.at(high)) / 2, (up.at(peak * low) + up.at(peak * high)) / 2
        angle = math.degrees(math.atan2(up.at(peak * high) - up.at(peak * low), across.at(high) - across.at(low)))
        turned = f"rotate({number(angle)} {number(x)} {number(y)})"
        label = f"memory: {peak:g} bytes a cycle"
        yield element("text", label, x=x, y=y - 6, class_="op", text_anchor="middle", transform=turned)
    else:
        place = "above" if peak * across.low >= up.high else "below"
        yield text(LEFT + 8, TOP + 14, f"memory: {peak:g} bytes a cycle, {place} this picture", "op")


def _mark(point: RooflinePoint, across: LogAxis, up: LogAxis, places: LabelPlaces) -> Markup:
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
    drawn = element("g", Markup("").join(inside), class_="point hollow" if point.hollow else "point", data_t=point.thing)
    return drawn if point.key is None else element("a", drawn, href=f"#{point.key}", data_t=point.thing)
