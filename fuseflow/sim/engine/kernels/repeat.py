"""Repeat: a value once for every value of the signal's fiber."""

from __future__ import annotations

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule, words
from fuseflow.sim.engine.node_records import ENDED, MISALIGNED, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    copy,
    element,
    head_run,
    high_of,
    is_control,
    low_of,
    next_word,
    push,
    scratch,
    seen_above,
    take,
    visible,
)
from fuseflow.sim.native.records import Record

REPEAT = Record("holds kind word words tile")
"""The token of x that is being repeated; of a tile (`words` above 1) a copy, since its place is reused once it is taken."""
state_at = REPEAT.at


def repeat(node: n.Repeat, place: NodeLayout) -> list[Part]:
    tile = place.types[0].tile
    state = place.state(REPEAT, words=words(tile), tile=place.filled(tile, 0.0))
    return place.part(run_repeat, state, computes=words(tile) > 1)


def run_repeat(address: int) -> int:
    """One firing a value of the signal, the first in a fiber takes x too; an empty fiber of an existing x costs one that takes x. Then
    one takes the signal's stop, and x's own if the highest level is above 0. A bare higher stop takes both."""
    node = node_at(address)
    s = state_at(node.state)
    x, signal, out = source(node, 0), source(node, 1), target(node, 0)
    while True:
        k = awaits(node, 1)
        if k == 0:
            return 0
        control = is_control(signal)
        word = head_run(signal).word if control else 0
        closes = control and (word == DONE or (high_of(word) > 0 and (s.holds != 0 or low_of(word) > 0)))
        opens = s.holds == 0 and not (control and (word == DONE or low_of(word) > 0))
        seen = visible(signal)
        first = False
        if opens or closes:
            if awaits(node, 0) == 0:
                return 0
            seen = max(seen, visible(x))
        if opens:
            if is_control(x):
                node.fault = MISALIGNED
                return 0
            s.kind = EMPTY if head_run(x).kind == EMPTY else REPEATED
            s.word = next_word(x)
            if s.words > 1 and s.kind != EMPTY:
                s.kind, s.word = SCRATCH, s.tile
                copy(s.tile, element(x), s.words)
            if control:
                s.holds = 1
                take(x, 1, fire(node, seen, 0, 1))
                continue
            first = True
        if closes and not (is_control(x) and head_run(x).word == (word if word == DONE else seen_above(word, 1))):
            node.fault = MISALIGNED
            return 0
        k = min(k, rooms(node, 0), node.burst)
        if k == 0:
            return 0
        if control:
            t = close(node, seen, out.free)
            if closes:
                take(x, 1, t)
            take(signal, 1, t)
            push(out, CONTROL, word, 1, t)
            s.holds = 0
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        t = fire(node, seen, out.free, k)
        if first:
            take(x, 1, t)
            s.holds = 1
        take(signal, k, t)
        word = s.word
        if s.kind == SCRATCH:
            word = scratch(out)
            for i in range(k):
                copy(word + 8 * s.words * i, s.word, s.words)
        push(out, s.kind, word, k, t)


RULES: dict[type[n.Node], Rule] = {n.Repeat: repeat}
