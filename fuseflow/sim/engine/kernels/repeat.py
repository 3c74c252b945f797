"""The primitive `repeat` emits a token of x once for every value of a fiber of its other input, the signal."""

from __future__ import annotations

from fuseflow.native.records import Record
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import ENDED, MISALIGNED, close, fire, node_at, room_at, source, target, tokens_at
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
    push,
    scratch_address,
    take,
    visible,
)

REPEAT = Record("holds kind word words tile")
"""The state holds the token of x that is being repeated. A tile (`words` above 1) is copied, since its place is reused once it is
taken."""
state_at = REPEAT.at


def repeat(node: n.Repeat, layout: NodeLayout) -> list[Part]:
    tile = layout.types[0].tile
    state = layout.state(REPEAT, words=word_count(tile), tile=layout.constant_tile(tile, 0.0))
    return layout.part(run_repeat, state, computes=word_count(tile) > 1)


def run_repeat(address: int) -> int:
    """Run the part: fire once for each value of the signal; the first in a fiber takes a token of x, too. An empty fiber costs a
    firing that takes the token of x. A stop of the signal takes one firing, which also takes the stop of x if the highest level
    is above 0."""
    node = node_at(address)
    s = state_at(node.state)
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


RULES: dict[type[n.Node], LayoutRule] = {n.Repeat: repeat}
