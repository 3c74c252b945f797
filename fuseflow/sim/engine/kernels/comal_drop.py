"""On the `comal` machine a `drop` that depends on coordinates alone takes a list in each step, as in the public Comal simulator.

The inner coordinates leave as soon as they come, in any number a cycle. So their times are not the times of firings.
"""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, inline
from fuseflow.samml import nodes as n
from fuseflow.samml.public_streams import is_coordinate_drop
from fuseflow.sim.engine.kernels.nested_levels import drop as drop_entries
from fuseflow.sim.engine.node_firing import (
    MISALIGNED,
    WAIT,
    close,
    finish,
    fire,
    look_everywhere,
    node_at,
    room_at,
    room_everywhere,
    source,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import NodeLayout, Part
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    MANY,
    head_run,
    high_of,
    is_control,
    low_of,
    lower_stop,
    next_word,
    pass_on,
    push,
    stop_word,
    take,
    visible,
)

COORDINATE_DROP = Record("reached filled held kept due")
"""`reached` is the cycle of the last inner token of the list, and `filled` whether it had any. `held` is the cycle, plus 1, of
the end of a list that divides the coordinates so far from any that may follow. `kept` says whether the list of the outer
coordinates has any left, and `due` is the inner stop, plus 1, that ended it."""
state_at = COORDINATE_DROP.at
INNER = (1, 2)
"""The inputs of the inner coordinates, and the outputs: the second and the third have equal tokens."""


def drop(node: n.Drop, layout: NodeLayout) -> list[Part]:
    if not is_coordinate_drop(node):
        return drop_entries(node, layout)
    return layout.part(run_coordinate_drop, layout.state(COORDINATE_DROP))


def run_coordinate_drop(address: int) -> int:
    """Run the part: fire once for each outer coordinate, after the list below it, and once for each outer stop."""
    node = node_at(address)
    s = state_at(node.state)
    outer = source(node, 0)
    while True:
        if tokens_at(node, 0) == 0:
            return 0
        if is_control(outer):
            if not _outer_stop(node, s, head_run(outer).word):
                return 0
            continue
        k = min(tokens_at(node, 1), node.burst)
        if k == 0:
            return 0
        k = min(k, tokens_at(node, 2))
        if k == 0:
            return 0
        if is_control(source(node, 1)):
            if not _end_fiber(node, s, head_run(source(node, 1)).word):
                return 0
            continue
        for q in INNER:
            k = min(k, room_at(node, q))
            if k == 0:
                return 0
        if s.held != 0:
            _push_inner(node, stop_word(0, 0), s.held - 1)
            s.held = 0
            continue  # there may be no room left
        _pass_on(node, s, k)


@inline
def _pass_on(node: Any, s: Any, k: int) -> None:
    """Pass k inner coordinates on: each when it is visible, and all that were visible before at once."""
    earliest = max(node.ready, s.reached, visible(source(node, 0)))
    t = max(earliest, visible(source(node, 1)))
    if t > visible(source(node, 1)):
        k = 1
    for q in INNER:
        reader, out = source(node, q), target(node, q)
        kind, payload = pass_on(head_run(reader), reader.offset, out, k)
        push(out, kind, payload, k, t)
        _take(reader, k, t)
    s.reached, s.filled = t + k - 1, 1


@inline
def _end_fiber(node: Any, s: Any, word: int) -> bool:
    """Fire to take an outer coordinate with the stop `word` of the list below it. Return False to wait, or after a fault."""
    outer = source(node, 0)
    if word == DONE or low_of(word) > 0 or not is_control(source(node, 2)):
        node.fault = MISALIGNED
        return False
    if s.filled != 0 and room_at(node, 0) == 0:
        return False
    if high_of(word) > 0:
        for q in INNER:
            if room_at(node, q) == 0:
                return False
    t = fire(node, max(s.reached, visible(outer), visible(source(node, 1))), 0, 1)
    if s.filled != 0:
        push(target(node, 0), AFFINE, next_word(outer), 1, t)
        s.held, s.kept = t + 1, 1
    take(outer, 1, t)
    for q in INNER:
        _take(source(node, q), 1, t)
    if high_of(word) > 0:
        _push_inner(node, word if s.kept != 0 else stop_word(1, high_of(word)), t)
        s.held, s.due = 0, word + 1
    s.reached, s.filled = 0, 0
    return True


@inline
def _outer_stop(node: Any, s: Any, word: int) -> bool:
    """Fire to take the stop `word` of the outer coordinates, or `D` of all inputs. Return False to wait, after a fault or `D`."""
    if word == DONE:
        finish(node)
        return False
    outer = source(node, 0)
    visible_at, inner = visible(outer), s.due - 1
    if s.due == 0:  # a list without coordinates, and so without lists below
        visible_at = look_everywhere(node)
        if visible_at == WAIT or room_everywhere(node) == WAIT:
            return False
        inner = head_run(source(node, 1)).word if is_control(source(node, 1)) else DONE
    if room_at(node, 0) == 0:
        return False
    if inner == DONE or lower_stop(inner, 1) != word:
        node.fault = MISALIGNED
        return False
    t = close(node, visible_at, 0)
    if s.due == 0:
        for q in INNER:
            _take(source(node, q), 1, t)
        _push_inner(node, inner, t)
    take(outer, 1, t)
    push(target(node, 0), CONTROL, word, 1, t)
    s.due, s.kept = 0, 0
    return True


@inline
def _push_inner(node: Any, word: int, t: int) -> None:
    for q in INNER:
        push(target(node, q), CONTROL, word, 1, t)


@inline
def _take(reader: Any, k: int, t: int) -> None:
    """Take k tokens from cycle t on. More tokens may be taken in the same cycle."""
    reader.several, reader.reach = 1, -MANY
    take(reader, k, t)
