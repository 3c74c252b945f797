"""A strip over time for each node: the share of every window in which it worked, was starved, waited for the memory, or was blocked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseflow.report.page.svg import Markup, element, number

STATES = ("busy", "starved", "memory", "blocked")
"""The states from bottom to top. The rest on top is the time before the first firing and after the last."""


def stall_strip(cycles: Mapping[str, Sequence[int]], window: int, total: int, processes: int = 1) -> Markup:
    """Return the strip of a node as a drawing that is as wide as its box. `cycles` has a list for each state, window after
    window, summed over the `processes` of the node; `total` are the cycles of the run."""
    windows = max(map(len, cycles.values()), default=0)
    floor = [0.0] * windows
    paths = []
    for state in STATES:
        if state not in cycles:
            continue
        ceiling = [low + cycles[state][k] / (_length(k, window, total) * processes) for k, low in enumerate(floor)]
        paths.append(element("path", class_=f"fill-{state}", d=_steps(floor, ceiling)))
        floor = ceiling
    box = f"0 0 {number(total / window)} 1"
    return element("svg", Markup("").join(paths), class_="strip", viewBox=box, preserveAspectRatio="none", aria_hidden="true")


def _length(k: int, window: int, total: int) -> int:
    return max(min(window, total - k * window), 1)


def _steps(floor: Sequence[float], ceiling: Sequence[float]) -> str:
    """Return the SVG path of the area between the step functions `floor` and `ceiling`. Windows without height, or with the
    height of the one before, add nothing to the path."""
    path, k = "", 0
    while k < len(floor):
        end = k + 1
        while end < len(floor) and (floor[end], ceiling[end]) == (floor[k], ceiling[k]):
            end += 1
        if ceiling[k] > floor[k]:
            low, high = number(1 - min(floor[k], 1)), number(1 - min(ceiling[k], 1))
            path += f"M{k} {low}V{high}H{end}V{low}z"
        k = end
    return path
