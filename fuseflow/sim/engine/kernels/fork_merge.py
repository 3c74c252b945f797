"""The primitive `fork` deals elements to parallel lanes in turn, and `merge` takes them from the lanes in the same order, never
by time of arrival."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, inline
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import (
    MISALIGNED,
    WAIT,
    close,
    fire,
    look_everywhere,
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
    CONTROL,
    DONE,
    head_run,
    high_of,
    is_control,
    low_of,
    pass_on,
    push,
    stop_word,
    take,
    visible,
)

FORK = Record("turn")
MERGE = Record("levels turn taken ends high")
"""`levels` is the depth of an element, `turn` the lane whose turn it is, and `taken` the number of elements taken of the dealt
list. `ends` counts the stops that ended this list in a lane; `high` is their highest level."""
fork_at, merge_at = FORK.at, MERGE.at


def fork(node: n.Fork, layout: NodeLayout) -> list[Part]:
    return layout.part(run_fork, layout.state(FORK))


def merge(node: n.Merge, layout: NodeLayout) -> list[Part]:
    return layout.part(run_merge, layout.state(MERGE, levels=node.levels))


def run_fork(address: int) -> int:
    """Run a `fork`: fire once for each token. A value goes to the lane whose turn it is, a stop or `D` to all lanes."""
    node = node_at(address)
    s = fork_at(node.state)
    x = source(node, 0)
    while True:
        if tokens_at(node, 0) == 0:
            return 0
        visible_at = visible(x)
        if is_control(x):
            free = room_everywhere(node)
            if free == WAIT:
                return 0
            if not pass_control(node, head_run(x).word, visible_at, free):
                return 0
            continue
        if room_at(node, s.turn) == 0:
            return 0
        lane = target(node, s.turn)
        kind, word = pass_on(head_run(x), x.offset, lane, 1)
        t = fire(node, visible_at, lane.free, 1)
        take(x, 1, t)
        push(lane, kind, word, 1, t)
        s.turn = (s.turn + 1) % node.ports


def run_merge(address: int) -> int:
    """Run a `merge`: fire once for each token, from the lane whose turn it is. The turn passes when an element ends: a value
    (`levels` 0), or a list that a stop with a highest level of `levels` - 1 or more ends. A stop that ends no element is the same
    in all lanes and taken from all."""
    node = node_at(address)
    s = merge_at(node.state)
    out = target(node, 0)
    while True:
        lane = source(node, s.turn)
        k = tokens_at(node, s.turn)
        if k == 0:
            return 0
        visible_at, run = visible(lane), head_run(lane)
        kind, word = run.kind, run.word
        stops = kind == CONTROL
        if stops and (word == DONE or low_of(word) >= s.levels):
            visible_at = look_everywhere(node)
            if visible_at == WAIT or room_at(node, 0) == 0:
                return 0
            if not pass_control(node, word, visible_at, out.free):
                return 0
            continue
        height = high_of(word) if stops else -1
        elements = s.taken + (1 if height >= s.levels - 1 else 0)
        turn = (s.turn + elements - s.taken) % node.arity
        others, ends_list = 0, False  # lanes, from `turn` on, that had no element of a list that is over
        if height >= s.levels:
            ends_list = s.ends + 1 == node.arity
            if elements < node.arity:
                if tokens_at(node, turn) == 0:
                    return 0
                visible_at = max(visible_at, visible(source(node, turn)))
                ends_list = _ends_nothing(source(node, turn), s.levels)
            if ends_list:
                others = node.arity - elements
                for i in range(others):
                    q = (turn + i) % node.arity
                    if tokens_at(node, q) == 0:
                        return 0
                    visible_at = max(visible_at, visible(source(node, q)))
                    if not is_control(source(node, q)) or high_of(head_run(source(node, q)).word) != height:
                        node.fault = MISALIGNED
                if node.fault != 0 or (s.ends > 0 and s.high != height):
                    node.fault = MISALIGNED
                    return 0
            else:
                word = stop_word(low_of(word), s.levels - 1)
        k = min(k, room_at(node, 0), node.burst)
        if k == 0:
            return 0
        if s.levels == 0:
            k = 1
        if not stops:
            kind, word = pass_on(run, lane.offset, out, k)
        t = close(node, visible_at, out.free) if stops else fire(node, visible_at, out.free, k)
        take(lane, k, t)
        for i in range(others):
            take(source(node, (turn + i) % node.arity), 1, t)
        push(out, kind, word, k, t)
        s.turn, s.taken = turn, elements
        if height >= s.levels:
            s.ends, s.high = s.ends + 1, height
        if ends_list:
            s.ends = s.taken = 0


@inline
def _ends_nothing(reader: Any, levels: int) -> bool:
    """Return whether the next token of a lane is a stop that ends no element: the lane has no more elements in the dealt list.
    `levels` is the depth of an element."""
    return is_control(reader) and low_of(head_run(reader).word) >= levels


RULES: dict[type[n.Node], LayoutRule] = {n.Fork: fork, n.Merge: merge}
