"""The values of charts: the roofline of regions, the Pareto fronts of points with two numbers (less is better), and losses by step.

The script `charts.js` draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fuseflow.report.page.html_elements import figure
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
