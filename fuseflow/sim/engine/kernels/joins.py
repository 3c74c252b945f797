"""The primitives that merge coordinates. `join` merges the sorted coordinates of several sides, each a stream of coordinates and its
payloads. `align` moves the subtrees of a stream x from the coordinates `old` to the coordinates `new`."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from fuseflow.native.records import Record, get_int, inline, set_int
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import (
    ENDED,
    MISALIGNED,
    WAIT,
    close,
    fire,
    node_at,
    pass_control,
    room_at,
    room_everywhere,
    source,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    MANY,
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
    tokens_left,
    visible,
    word_in,
)

JOIN = Record("left any_side sides side_of ports heads")
"""The state says whether coordinates of side 0 (`left`), or of any side, are emitted, else coordinates on all sides. It has the
side of each input, and the output that its payload goes to (0: the input brings coordinates), and the heads of the sides."""
join_at = JOIN.at


def join(node: n.Join, layout: NodeLayout) -> list[Part]:
    side_of = [side for side, payloads in enumerate(node.payloads) for _ in range(payloads + 1)]
    numbers = count(1)
    ports = [port for payloads in node.payloads for port in (0, *(next(numbers) for _ in range(payloads)))]
    state = layout.state(
        JOIN, left=int(node.kind == "left"), any_side=int(node.kind == "union"), sides=len(node.payloads),
        side_of=layout.array(np.array(side_of)), ports=layout.array(np.array(ports)),
        heads=layout.buffer(np.int64, len(node.payloads)),
    )  # fmt: skip
    return layout.part(run_join, state)


def run_join(address: int) -> int:
    """Run the part: fire once for each comparison of the next tokens of all sides. The sides at the smallest coordinate are taken
    together, emitted or not. A side at its stop waits; when all are at their stops, one firing takes and emits them.

    A piece is as many coordinates as the same sides hold, one after the other, all below the heads of the other sides.
    """
    node = node_at(address)
    s = join_at(node.state)
    while True:
        visible_at = _look(node, s)
        if visible_at == WAIT:
            return 0
        least, limit, holders = MANY, MANY, 0
        for side in range(s.sides):
            head = get_int(s.heads, side)
            if head < least:
                least, limit, holders = head, least, 1
            elif head == least:
                holders += 1
            else:
                limit = min(limit, head)
        if least == MANY:
            free = room_everywhere(node)
            if free == WAIT:
                return 0
            if not pass_control(node, head_run(source(node, 0)).word, visible_at, free):
                return 0
            continue
        k = _piece(node, s, least, limit)
        emits = s.any_side != 0 or holders == s.sides or (s.left != 0 and get_int(s.heads, 0) == least)
        free = 0
        if emits:
            for q in range(node.ports):
                k = min(k, room_at(node, q))
                if k == 0:
                    return 0
                free = max(free, target(node, q).free)
        t = fire(node, visible_at, free, k)
        has_coordinate = False
        for q in range(node.arity):
            reader, port = source(node, q), get_int(s.ports, q)
            holds = get_int(s.heads, get_int(s.side_of, q)) == least
            if emits and (port > 0 or (holds and not has_coordinate)):
                kind, word = EMPTY, 0
                if holds:
                    kind, word = pass_on(head_run(reader), reader.offset, target(node, port), k)
                push(target(node, port), kind, word, k, t)
                has_coordinate = has_coordinate or port == 0
            if holds:
                take(reader, k, t)


@inline
def _look(node: Any, s: Any) -> int:
    """Note in `s.heads` each side's next coordinate, or MANY at a stop. Return the cycle by which all heads are visible, or WAIT."""
    visible_at = 0
    for q in range(node.arity):
        if tokens_at(node, q) == 0:
            return WAIT
        reader = source(node, q)
        visible_at = max(visible_at, visible(reader))
        if get_int(s.ports, q) == 0:
            set_int(s.heads, get_int(s.side_of, q), MANY if is_control(reader) else next_word(reader))
    return visible_at


@inline
def _piece(node: Any, s: Any, least: int, limit: int) -> int:
    """Return for how many coordinates the sides at the smallest coordinate, `least`, have equal coordinates below `limit`."""
    k, first, affine = node.burst, -1, True
    for q in range(node.arity):
        if get_int(s.heads, get_int(s.side_of, q)) == least:
            reader = source(node, q)
            k = min(k, tokens_left(reader))
            if get_int(s.ports, q) == 0:
                affine = affine and head_run(reader).kind == AFFINE
                first = q if first < 0 else first
    if affine:
        return min(k, limit - least)
    leader = source(node, first)
    i = 1
    while i < k:
        c = word_in(head_run(leader), leader.offset + i)
        if c >= limit:
            return i
        for q in range(first + 1, node.arity):
            if get_int(s.ports, q) == 0 and get_int(s.heads, get_int(s.side_of, q)) == least:
                reader = source(node, q)
                if word_in(head_run(reader), reader.offset + i) != c:
                    return i
        i += 1
    return k


ALIGN = Record("levels phase held below")
"""`levels` says how many levels x is deeper, `phase` is one of the phases below. `held` is the lowest level of the stop that ends
the last subtree in the output, which waits for the next coordinate of `new` to tell how far up it reaches (-1: there is none).
`below` says whether `old` had a coordinate since the last stop; if not, the end of x's list is no subtree's."""
COMPARING, CARRYING, LOSING = 0, 1, 2
"""These are the phases: coordinates are compared, a subtree is carried to the output, or one is lost."""
align_at = ALIGN.at


def align(node: n.Align, layout: NodeLayout) -> list[Part]:
    old, _, x = layout.types
    return layout.part(run_align, layout.state(ALIGN, levels=x.depth - old.depth, held=-1))


def run_align(address: int) -> int:
    """Run the part at an address: fire once for each comparison of `old` and `new`, and once for each token of a subtree."""
    node = node_at(address)
    s = align_at(node.state)
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


RULES: dict[type[n.Node], LayoutRule] = {n.Join: join, n.Align: align}
