"""Nested streams are streams of different depth read together: for each token of the innermost, the elements and stops of the
outer ones that go with it.

The coordinate streams around an inner stream are inputs 0..depth-1 of a node, outermost first. A coordinate is *open* from the
firing of its first inner value until the stop that ends its list. It is taken in that first firing. A coordinate with an empty
list below has no inner value, so a separate firing takes it before the inner stop. A stop of an outer stream is taken with the
inner stop that ends the same list.
"""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, inline, set_int
from fuseflow.sim.engine.node_firing import MISALIGNED, WAIT, source, tokens_at
from fuseflow.sim.engine.stream_rings import head_run, high_of, is_control, low_of, lower_stop, next_word, take, visible

NEST = Record("depth open crds")  # `crds`: address of the open coordinates
nest_at = NEST.at


@inline
def is_childless(nest: Any, word: int) -> bool:
    """Return whether the inner stop `word` ends an empty list below a coordinate that has not been taken."""
    return nest.open < nest.depth - low_of(word)


@inline
def look_at_coordinates(node: Any, nest: Any, levels: int) -> int:
    """Return the cycle by which the coordinates to be opened, down to the outermost `levels`, are visible, or WAIT if one is
    missing."""
    visible_at = 0
    for level in range(nest.open, levels):
        if tokens_at(node, level) == 0:
            return WAIT
        visible_at = max(visible_at, visible(source(node, level)))
    return visible_at


@inline
def take_coordinates(node: Any, nest: Any, levels: int, t: int) -> None:
    """Take the coordinates to be opened, down to the outermost `levels`, in cycle t."""
    for level in range(nest.open, levels):
        reader = source(node, level)
        if is_control(reader):
            node.fault = MISALIGNED
            return
        set_int(nest.crds, level, next_word(reader))
        take(reader, 1, t)
    nest.open = max(nest.open, levels)


@inline
def look_at_stops(node: Any, nest: Any, word: int) -> int:
    """Return the cycle by which the stops of the outer streams whose lists the inner stop `word` ends are visible, or WAIT if one
    is missing."""
    visible_at = 0
    for level in range(max(nest.depth - high_of(word), 0), nest.depth):
        if tokens_at(node, level) == 0:
            return WAIT
        visible_at = max(visible_at, visible(source(node, level)))
    return visible_at


@inline
def take_stops(node: Any, nest: Any, word: int, t: int) -> None:
    """Take the stops of the outer streams whose lists the inner stop `word` ends, in cycle t. Another token there is a fault."""
    for level in range(max(nest.depth - high_of(word), 0), nest.depth):
        reader = source(node, level)
        if not is_control(reader) or head_run(reader).word != lower_stop(word, nest.depth - level):
            node.fault = MISALIGNED
            return
        take(reader, 1, t)
    nest.open = min(nest.open, max(nest.depth - 1 - high_of(word), 0))
