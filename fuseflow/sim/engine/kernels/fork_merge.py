"""Fork and merge: elements dealt to parallel lanes in turn, and taken from them in the same turn. Never by time of arrival."""

from __future__ import annotations

from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule
from fuseflow.sim.engine.node_records import (  # fmt: skip
    ENDED,
    MISALIGNED,
    WAIT,
    awaits,
    close,
    fire,
    look_everywhere,
    node_at,
    push_everywhere,
    room_everywhere,
    rooms,
    source,
    take_everywhere,
    target,
)
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    CONTROL,
    DONE,
    head_run,
    high_of,
    is_control,
    low_of,
    pass_on,
    push,
    stop,
    take,
    visible,
)
from fuseflow.sim.native.records import Record, inline

FORK = Record("turn")
MERGE = Record("levels turn taken ends high")
"""Levels of an element; the lane whose turn it is; elements taken of the dealt list, stops that ended it in a lane, what they close."""
fork_at, merge_at = FORK.at, MERGE.at


def fork(node: n.Fork, place: NodeLayout) -> list[Part]:
    return place.part(run_fork, place.state(FORK))


def merge(node: n.Merge, place: NodeLayout) -> list[Part]:
    return place.part(run_merge, place.state(MERGE, levels=node.levels))


def run_fork(address: int) -> int:
    """One firing a token: a value goes to the lane whose turn it is, a stop and `D` to all."""
    node = node_at(address)
    s = fork_at(node.state)
    x = source(node, 0)
    while True:
        if awaits(node, 0) == 0:
            return 0
        seen = visible(x)
        if is_control(x):
            free = room_everywhere(node)
            if free == WAIT:
                return 0
            word = head_run(x).word
            t = close(node, seen, free)
            take(x, 1, t)
            push_everywhere(node, word, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        if rooms(node, s.turn) == 0:
            return 0
        lane = target(node, s.turn)
        kind, word = pass_on(head_run(x), x.offset, lane, 1)
        t = fire(node, seen, lane.free, 1)
        take(x, 1, t)
        push(lane, kind, word, 1, t)
        s.turn = (s.turn + 1) % node.ports


def run_merge(address: int) -> int:
    """One firing a token, from the lane whose turn it is. The turn passes when an element ends: a value (`levels` 0), or a list that a
    stop with a highest level of `levels` - 1 or more ends. A stop that ends no element is the same in all lanes and taken from all."""
    node = node_at(address)
    s = merge_at(node.state)
    out = target(node, 0)
    while True:
        lane = source(node, s.turn)
        k = awaits(node, s.turn)
        if k == 0:
            return 0
        seen, run = visible(lane), head_run(lane)
        kind, word = run.kind, run.word
        stops = kind == CONTROL
        if stops and (word == DONE or low_of(word) >= s.levels):
            seen = look_everywhere(node)
            if seen == WAIT or rooms(node, 0) == 0:
                return 0
            t = close(node, seen, out.free)
            take_everywhere(node, word, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE or node.fault != 0:
                node.waits = ENDED
                return 0
            continue
        height = high_of(word) if stops else -1
        taken = s.taken + (1 if height >= s.levels - 1 else 0)
        turn = (s.turn + taken - s.taken) % node.arity
        others, over = 0, False  # lanes, from `turn` on, that had no element of a list that is over
        if height >= s.levels:
            over = s.ends + 1 == node.arity
            if taken < node.arity:
                if awaits(node, turn) == 0:
                    return 0
                seen = max(seen, visible(source(node, turn)))
                over = _ends_nothing(source(node, turn), s.levels)
            if over:
                others = node.arity - taken
                for i in range(others):
                    q = (turn + i) % node.arity
                    if awaits(node, q) == 0:
                        return 0
                    seen = max(seen, visible(source(node, q)))
                    if not is_control(source(node, q)) or high_of(head_run(source(node, q)).word) != height:
                        node.fault = MISALIGNED
                if node.fault != 0 or (s.ends > 0 and s.high != height):
                    node.fault = MISALIGNED
                    return 0
            else:
                word = stop(low_of(word), s.levels - 1)
        k = min(k, rooms(node, 0), node.burst)
        if k == 0:
            return 0
        if s.levels == 0:
            k = 1
        if not stops:
            kind, word = pass_on(run, lane.offset, out, k)
        t = close(node, seen, out.free) if stops else fire(node, seen, out.free, k)
        take(lane, k, t)
        for i in range(others):
            take(source(node, (turn + i) % node.arity), 1, t)
        push(out, kind, word, k, t)
        s.turn, s.taken = turn, taken
        if height >= s.levels:
            s.ends, s.high = s.ends + 1, height
        if over:
            s.ends = s.taken = 0


@inline
def _ends_nothing(reader: Any, levels: int) -> bool:
    """Whether the head is a stop that ends no element: the lane has no (further) element in the dealt list."""
    return is_control(reader) and low_of(head_run(reader).word) >= levels


RULES: dict[type[n.Node], Rule] = {n.Fork: fork, n.Merge: merge}
