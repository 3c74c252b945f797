"""The primitives that put elements elsewhere. `repeat` emits a token of x once for every value of a fiber of its other input, the signal.
`fork` deals elements to parallel lanes in turn, and `merge` takes them from the lanes in the same order, never by time of arrival. `link`
passes every token on: a hop of an array at which the route of a stream divides."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, inline
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import (
    ENDED,
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
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part, word_count
from fuseflow.sim.engine.stream_rings import (
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    copy,
    element_address,
    head_run,
    high_of,
    is_control,
    low_of,
    lower_stop,
    next_word,
    pass_on,
    push,
    scratch_address,
    stop_word,
    take,
    visible,
)

REPEAT = Record("holds kind word words tile")
"""The state holds the repeated token of x. A tile (`words` above 1) is copied, since its place is reused once it is taken."""
repeat_at = REPEAT.at


def repeat(node: n.Repeat, layout: NodeLayout) -> list[Part]:
    tile = layout.types[0].tile
    state = layout.state(REPEAT, words=word_count(tile), tile=layout.constant_tile(tile, 0.0))
    return layout.part(run_repeat, state, computes=word_count(tile) > 1)


def run_repeat(address: int) -> int:
    """Run the part: fire once for each value of the signal; the first in a fiber takes a token of x, too. An empty fiber costs a
    firing that takes the token of x. A stop of the signal takes one firing, which also takes the stop of x if the highest level
    is above 0."""
    node = node_at(address)
    s = repeat_at(node.state)
    x, signal, out = source(node, 0), source(node, 1), target(node, 0)
    while True:
        k = tokens_at(node, 1)
        if k == 0:
            return 0
        control = is_control(signal)
        word = head_run(signal).word if control else 0
        closes = control and (word == DONE or (high_of(word) > 0 and (s.holds != 0 or low_of(word) > 0)))
        opens = s.holds == 0 and not (control and (word == DONE or low_of(word) > 0))
        visible_at = visible(signal)
        first = False
        if opens or closes:
            if tokens_at(node, 0) == 0:
                return 0
            visible_at = max(visible_at, visible(x))
        if opens:
            if is_control(x):
                node.fault = MISALIGNED
                return 0
            s.kind = EMPTY if head_run(x).kind == EMPTY else REPEATED
            s.word = next_word(x)
            if s.words > 1 and s.kind != EMPTY:
                s.kind, s.word = SCRATCH, s.tile
                copy(s.tile, element_address(x), s.words)
            if control:
                s.holds = 1
                take(x, 1, fire(node, visible_at, 0, 1))
                continue
            first = True
        if closes and not (is_control(x) and head_run(x).word == (word if word == DONE else lower_stop(word, 1))):
            node.fault = MISALIGNED
            return 0
        k = min(k, room_at(node, 0), node.burst)
        if k == 0:
            return 0
        if control:
            t = close(node, visible_at, out.free)
            if closes:
                take(x, 1, t)
            take(signal, 1, t)
            push(out, CONTROL, word, 1, t)
            s.holds = 0
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        t = fire(node, visible_at, out.free, k)
        if first:
            take(x, 1, t)
            s.holds = 1
        take(signal, k, t)
        word = s.word
        if s.kind == SCRATCH:
            word = scratch_address(out)
            for i in range(k):
                copy(word + 8 * s.words * i, s.word, s.words)
        push(out, s.kind, word, k, t)


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


def link(node: n.Link, layout: NodeLayout) -> list[Part]:
    return layout.part(run_link)


def run_link(address: int) -> int:
    """Fire once for each token, which goes to all readers."""
    node = node_at(address)
    x, out = source(node, 0), target(node, 0)
    while True:
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        k = min(k, room_at(node, 0))
        if k == 0:
            return 0
        visible_at = visible(x)
        if is_control(x):
            if not pass_control(node, head_run(x).word, visible_at, out.free):
                return 0
            continue
        kind, word = pass_on(head_run(x), x.offset, out, k)
        t = fire(node, visible_at, out.free, k)
        take(x, k, t)
        push(out, kind, word, k, t)


RULES: dict[type[n.Node], LayoutRule] = {n.Repeat: repeat, n.Fork: fork, n.Merge: merge, n.Link: link}
