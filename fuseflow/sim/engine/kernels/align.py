"""The primitive `align` moves the subtrees of a stream x from the coordinates `old` to the coordinates `new`."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, inline
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import ENDED, MISALIGNED, close, fire, node_at, room_at, source, target, tokens_at
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import (
    CONTROL,
    DONE,
    head_run,
    high_of,
    is_control,
    low_of,
    next_word,
    pass_on,
    push,
    raise_stop,
    stop_word,
    take,
    visible,
)

ALIGN = Record("levels phase held below")
"""`levels` says how many levels x is deeper, `phase` is one of the phases below. `held` is the lowest level of the stop that ends
the last subtree in the output, which waits for the next coordinate of `new` to tell how far up it reaches (-1: there is none).
`below` says whether `old` had a coordinate since the last stop; if not, the end of x's list is no subtree's."""
COMPARING, CARRYING, LOSING = 0, 1, 2
"""These are the phases: coordinates are compared, a subtree is carried to the output, or one is lost."""
state_at = ALIGN.at


def align(node: n.Align, layout: NodeLayout) -> list[Part]:
    old, _, x = layout.types
    return layout.part(run_align, layout.state(ALIGN, levels=x.depth - old.depth, held=-1))


def run_align(address: int) -> int:
    """Run the part at an address: fire once for each comparison of `old` and `new`, and once for each token of a subtree."""
    node = node_at(address)
    s = state_at(node.state)
    x, out = source(node, 2), target(node, 0)
    while True:
        if s.phase == COMPARING:
            if not _compare(node, s):
                return 0
            continue
        k = min(tokens_at(node, 2), node.burst)
        if k == 0:
            return 0
        visible_at, run, free = visible(x), head_run(x), 0
        control, word = run.kind == CONTROL, run.word
        if control and word == DONE:
            node.fault = MISALIGNED
            return 0
        ended = control and high_of(word) >= s.levels - 1
        emits = s.phase == CARRYING and not ended
        if emits:
            k = min(k, room_at(node, 0))
            if k == 0:
                return 0
            free = out.free
        t = close(node, visible_at, free) if control else fire(node, visible_at, free, k)
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
    """Fire to take the smaller of the next coordinates of `old` and `new`, or both if they are equal. At a stop take both stops
    and end the list in the output. Return False if a token or room is missing, after a fault, or at the end."""
    old, new, x, out = source(node, 0), source(node, 1), source(node, 2), target(node, 0)
    if tokens_at(node, 0) == 0 or tokens_at(node, 1) == 0:
        return False
    visible_at = max(visible(old), visible(new))
    old_ends, new_ends = is_control(old), is_control(new)  # stops, or `D`
    a, b = next_word(old), next_word(new)
    ends = new_ends and (old_ends or b == DONE)
    end = stop_word(s.held, s.levels - 1)  # before the next subtree
    if ends:
        end = b if b == DONE else raise_stop(b, s.levels)
        if s.below == 0:
            if tokens_at(node, 2) == 0:
                return False
            visible_at = max(visible_at, visible(x))
            if not is_control(x) or head_run(x).word != end:
                node.fault = MISALIGNED
        if not old_ends or a != b:
            node.fault = MISALIGNED
        if node.fault != 0:
            return False
        if s.held >= 0:
            end = stop_word(s.held, high_of(end))
    emits = ends or (s.held >= 0 and not new_ends)
    if emits and room_at(node, 0) == 0:
        return False
    free = out.free if emits else 0
    t = close(node, visible_at, free) if ends else fire(node, visible_at, free, 1)
    if emits:
        push(out, CONTROL, end, 1, t)
        s.held = -1
    is_lost = not ends and (new_ends or (not old_ends and a < b))
    is_added = not ends and not is_lost and (old_ends or b < a)
    if not is_lost:
        take(new, 1, t)
    if not is_added:
        take(old, 1, t)
    if is_added:
        s.held = s.levels - 1
    elif not ends:
        s.below = 1
        s.phase = LOSING if is_lost else CARRYING
    else:
        if s.below == 0:
            take(x, 1, t)
        s.below = 0
        if b == DONE:
            node.waits = ENDED
            return False
    return True


RULES: dict[type[n.Node], LayoutRule] = {n.Align: align}
