"""Reductions of segments: the entries of a segment stand one behind the other, and all go to one row.

`torch.segment_reduce(x, "sum", offsets=[0, 2, 5])` adds up the first two entries, and the three behind them. It is a scatter to known
positions, `[0, 0, 1, 1, 1]`. Graph networks write it where the edges come from a sparse matrix, whose rows are segments.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.known_positions import Handler
from fuseflow.frontend.positions.selections import EXTREMES, Selections, described, reduced, scattered


def _segment_reduce(
    selections: Selections, node: Node, source: Node, reduce: str, *, initial: float | None = None, **of: Any
) -> Node | None:
    lengths = _lengths(selections, **of)
    if lengths is None or initial is not None:
        return None
    positions, rows = torch.arange(len(lengths)).repeat_interleave(lengths), len(lengths)
    if len(positions) != described(source).shape[0]:
        return None
    if reduce in EXTREMES or reduce == "prod":
        kind = EXTREMES.get(reduce, reduce)
        start = 0.0 if bool(lengths.all()) else {"max": float("-inf"), "min": float("inf"), "prod": 1.0}[kind]
        return reduced(selections, node, (0, positions, rows), source, kind, start)
    if reduce == "sum" or (reduce == "mean" and bool(lengths.all())):  # the mean of nothing is no number
        return scattered(selections, node, source, 0, positions, rows, reduce == "mean")
    return None


def _lengths(
    selections: Selections, lengths: Node | None = None, offsets: Node | None = None, axis: int = 0, **_: Any
) -> Tensor | None:
    """Return how long each segment along the first dimension is, or None if that is data or the segments are along another one."""
    known, ends = selections.known(lengths), selections.known(offsets)
    given = known if ends is None else ends.diff()
    return given if given is not None and given.dim() == 1 and axis == 0 else None


SEGMENTS: dict[str, Handler] = {"segment_reduce": _segment_reduce}
"""The replacement of each operator, by its name."""
