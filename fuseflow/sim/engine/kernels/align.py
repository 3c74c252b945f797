"""Align: subtrees carried from old coordinates to new ones."""

from __future__ import annotations

from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule
from fuseflow.sim.engine.node_records import ENDED, MISALIGNED, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    CONTROL,
    DONE,
    head_run,
    high_of,
    is_control,
    low_of,
    next_word,
    pass_on,
    push,
    raised,
    stop,
    take,
    visible,
)
from fuseflow.sim.native.records import Record, inline

ALIGN = Record("levels phase held below")
"""How many levels x is deeper; what is being done; the lowest level of the stop that ends the last subtree in the output, which waits for
the next coordinate of `new` to tell how far up it reaches (-1: there is none); whether `old` had a coordinate since the last stop: if
not, the end of x's list is no subtree's."""
COMPARING, CARRYING, LOSING = 0, 1, 2
state_at = ALIGN.at


def align(node: n.Align, place: NodeLayout) -> list[Part]:
    old, _, x = place.types
    return place.part(run_align, place.state(ALIGN, levels=x.depth - old.depth, held=-1))


def run_align(address: int) -> int:
    """One firing a comparison of `old` and `new`, one a token of a subtree."""
    node = node_at(address)
    s = state_at(node.state)
    x, out = source(node, 2), target(node, 0)
    while True:
        if s.phase == COMPARING:
            if not _compare(node, s):
                return 0
            continue
        k = min(awaits(node, 2), node.burst)
        if k == 0:
            return 0
        seen, run, free = visible(x), head_run(x), 0
        control, word = run.kind == CONTROL, run.word
        if control and word == DONE:
            node.fault = MISALIGNED
            return 0
        ended = control and high_of(word) >= s.levels - 1
        emits = s.phase == CARRYING and not ended
        if emits:
            k = min(k, rooms(node, 0))
            if k == 0:
                return 0
            free = out.free
        t = close(node, seen, free) if control else fire(node, seen, free, k)
        if emits:
            kind, word = pass_on(run, x.offset, out, k)
            push(out, kind, word, k, t)
        take(x, k, t)
        if ended:
            if s.phase == CARRYING:
                s.held = low_of(word)
            s.phase = COMPARING


@inline
def _compare(node: Any, s: Any) -> bool:
    """Take the smaller of the next coordinates of `old` and `new`, or both if they are equal; of stops both, with the end of the list
    in the output. False if something is missing, or all is done."""
    old, new, x, out = source(node, 0), source(node, 1), source(node, 2), target(node, 0)
    if awaits(node, 0) == 0 or awaits(node, 1) == 0:
        return False
    seen = max(visible(old), visible(new))
    was, now = is_control(old), is_control(new)  # stops, or `D`
    a, b = next_word(old), next_word(new)
    ends = now and (was or b == DONE)
    given = stop(s.held, s.levels - 1)  # before the next subtree
    if ends:
        given = b if b == DONE else raised(b, s.levels)
        if s.below == 0:
            if awaits(node, 2) == 0:
                return False
            seen = max(seen, visible(x))
            if not is_control(x) or head_run(x).word != given:
                node.fault = MISALIGNED
        if not was or a != b:
            node.fault = MISALIGNED
        if node.fault != 0:
            return False
        if s.held >= 0:
            given = stop(s.held, high_of(given))
    gives = ends or (s.held >= 0 and not now)
    if gives and rooms(node, 0) == 0:
        return False
    free = out.free if gives else 0
    t = close(node, seen, free) if ends else fire(node, seen, free, 1)
    if gives:
        push(out, CONTROL, given, 1, t)
        s.held = -1
    lost = not ends and (now or (not was and a < b))
    added = not ends and not lost and (was or b < a)
    if not lost:
        take(new, 1, t)
    if not added:
        take(old, 1, t)
    if added:
        s.held = s.levels - 1
    elif not ends:
        s.below = 1
        s.phase = LOSING if lost else CARRYING
    else:
        if s.below == 0:
            take(x, 1, t)
        s.below = 0
        if b == DONE:
            node.waits = ENDED
            return False
    return True


RULES: dict[type[n.Node], Rule] = {n.Align: align}
