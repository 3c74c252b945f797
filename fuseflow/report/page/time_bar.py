"""A bar over time: the parts of a run, one after the other, each as wide as the cycles that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuseflow.report.page.svg import Markup, element

LABELLED = 6.0
"""The percent of the bar from which on a part has its name in it."""


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar. `tip` is shown under the mouse, a click leads to `key`, and `thing` is the number of its thing."""

    name: str
    cycles: int
    tip: str
    key: str | None = None
    thing: int | None = None


def time_bar(parts: Sequence[BarPart], scale: int | None = None, colours: Sequence[int] | None = None) -> Markup:
    """Return a bar whose whole width is `scale` cycles, or all cycles of the parts. `colours` has the number of the colour of each part; if
    it is None, parts have the colours in turn."""
    whole = max(scale or sum(part.cycles for part in parts), 1)
    inside = Markup("").join(
        _part(k if colours is None else colours[k], part, 100 * part.cycles / whole) for k, part in enumerate(parts)
    )
    ticks = Markup("").join(element("span", f"{whole * k // 4:,}", style=f"left:{25 * k}%") for k in range(5))
    return element("div", inside, class_="time-bar") + element("div", ticks, class_="time-axis", aria_label="cycles")


def _part(number: int, part: BarPart, percent: float) -> Markup:
    return element(
        "a",
        element("span", part.name) if percent >= LABELLED else "",
        href=None if part.key is None else f"#{part.key}",
        class_=f"part part-{number % 6}",
        style=f"width:{percent:.3f}%",
        title=part.tip,
        aria_label=part.tip,
        data_t=part.thing,
    )
