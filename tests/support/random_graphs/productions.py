"""One production for each primitive (and a few idioms of several): a function that adds nodes to streams of the pool that fit.

A production returns whether it did; it leaves the pool alone where nothing fits. A new primitive is a function in `loops`, `values` or
`lanes`, its row in PRODUCTIONS, and what is to be seen of it in `coverage`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from . import lanes, loops, values
from .builder import Builder

Production: TypeAlias = Callable[[Builder], bool]

PRODUCTIONS: dict[str, tuple[float, Production]] = {
    "scan": (5, loops.scan),
    "spine": (3, loops.spine),
    "meet": (5, loops.meet),
    "range": (0.7, loops.range_),
    "locate outermost": (1, loops.locate_outermost),
    "locate": (2, loops.locate),
    "locate absent": (1, loops.locate_absent),
    "join": (4, loops.join),
    "align": (2.5, loops.align),
    "repeat": (3, loops.repeat),
    "spread": (1, loops.spread),
    "tower": (0.4, loops.tower),
    "load": (7, values.load),
    "alu": (7, values.alu),
    "reduce": (3, values.reduce),
    "normalize": (1, values.normalize),
    "accumulate": (6, values.accumulate),
    "permute": (3, values.permute),
    "drop": (4, values.drop),
    "flatten": (1, loops.flatten),
    "split": (1.3, loops.split),
    "fork": (1, lanes.fork),
    "merge": (1.5, lanes.merge),
    "parallel": (2, lanes.parallel),
}
"""How often each is tried, on average."""

SELECTING: dict[str, tuple[float, Production]] = {"select": (8, values.select), "threshold": (2, values.threshold)}
"""Those that are tried besides in the mode of selections (`random_case`), so that a seed without it draws what it always drew."""
