"""The primitive `join` merges the sorted coordinates of several sides. A side is a stream of coordinates and its payloads."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from fuseflow.native.records import Record, get_int, inline, set_int
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import (
    WAIT,
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
    EMPTY,
    MANY,
    head_run,
    is_control,
    next_word,
    pass_on,
    push,
    take,
    tokens_left,
    visible,
    word_in,
)

JOIN = Record("left any_side sides side_of ports heads")
"""The state says whether coordinates of side 0 (`left`), or of any side, are emitted, else coordinates on all sides. It has the
side of each input, and the output that its payload goes to (0: the input brings coordinates), and the heads of the sides."""
state_at = JOIN.at


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
    s = state_at(node.state)
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
    """Note in `s.heads` the next coordinate of each side, or MANY at a stop. Return the cycle by which all next tokens are
    visible, or WAIT."""
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


RULES: dict[type[n.Node], LayoutRule] = {n.Join: join}
