"""Flatten and split: two levels as one, one as two. One firing a token of the inner stream."""

from __future__ import annotations

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.nested_streams import NEST, childless, enter, leave, look, look_ends, nest_at
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule
from fuseflow.sim.engine.node_records import (  # fmt: skip
    ENDED,
    WAIT,
    awaits,
    close,
    fire,
    node_at,
    rooms,
    source,
    take_everywhere,
    target,
)
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    AFFINE,
    CONTROL,
    DONE,
    SCRATCH,
    head_run,
    high_of,
    next_word,
    push,
    raised,
    scratch,
    seen_above,
    stop,
    take,
    visible,
    word_in,
)
from fuseflow.sim.native.records import Record, get_int, set_int

FLATTEN = Record("size nest")
SPLIT = Record("size current")  # `current`: the outer coordinate whose inner fiber is open, or NONE
flatten_at, split_at = FLATTEN.at, SPLIT.at
NONE = -1


def flatten(node: n.Flatten, place: NodeLayout) -> list[Part]:
    nest = place.array(place.state(NEST, depth=1, crds=place.array(np.zeros(1, dtype=np.int64))))
    return place.part(run_flatten, place.state(FLATTEN, size=node.size, nest=nest))


def split(node: n.SplitLevel, place: NodeLayout) -> list[Part]:
    return place.part(run_split, place.state(SPLIT, size=node.size, current=NONE))


def run_flatten(address: int) -> int:
    """An outer coordinate is taken with its first inner one; one with nothing below it costs a firing."""
    node = node_at(address)
    s = flatten_at(node.state)
    nest = nest_at(s.nest)
    inner, out = source(node, 1), target(node, 0)
    while True:
        k = min(awaits(node, 1), node.burst)
        if k == 0:
            return 0
        seen, run, first = visible(inner), head_run(inner), inner.offset
        control, word = run.kind == CONTROL, run.word
        empty = control and word != DONE and childless(nest, word)
        gives = not empty and (not control or high_of(word) > 0)
        outer = look_ends(node, nest, word) if control and not empty else look(node, nest, 1)  # of `D` too: it ends all lists
        if outer == WAIT:
            return 0
        seen, free = max(seen, outer), 0
        if gives:
            k = min(k, rooms(node, 0))
            if k == 0:
                return 0
            free = out.free
        if control and not empty:
            t = close(node, seen, free)
            if word == DONE:
                take_everywhere(node, DONE, t)
                push(out, CONTROL, DONE, 1, t)
                node.waits = ENDED
                return 0
            leave(node, nest, word, t)
            kind, word = CONTROL, seen_above(word, 1)
        else:
            t = fire(node, seen, free, k)
            enter(node, nest, 1, t)
            if empty:
                continue
            base = get_int(nest.crds, 0) * s.size
            if run.kind == AFFINE:
                kind, word = AFFINE, base + run.word + first
            else:
                kind, word = SCRATCH, scratch(out)
                for i in range(k):
                    set_int(word, i, base + word_in(run, first + i))
        if node.fault != 0:
            return 0
        take(inner, k, t)
        if gives:
            push(out, kind, word, k, t)


def run_split(address: int) -> int:
    """Where a coordinate starts a new outer one, the inner fiber before it is ended by a firing that only looks at it."""
    node = node_at(address)
    s = split_at(node.state)
    crd, outer, inner = source(node, 0), target(node, 0), target(node, 1)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        seen, run, first, word = visible(crd), head_run(crd), crd.offset, next_word(crd)
        control = run.kind == CONTROL
        above = word // s.size
        ends = not control and s.current != NONE and s.current != above  # looks only
        starts = control or s.current == NONE
        free = 0
        if starts:
            if rooms(node, 0) == 0:
                return 0
            free = outer.free
        k = min(k, rooms(node, 1))
        if k == 0:
            return 0
        free = max(free, inner.free)
        if control or ends:
            t = close(node, seen, free)
            end = stop(0, 0)
            if control:
                take(crd, 1, t)
                push(outer, CONTROL, word, 1, t)
                end = word
                if word != DONE:
                    end = raised(word, 1) if s.current == NONE else stop(0, high_of(word) + 1)
            push(inner, CONTROL, end, 1, t)
            s.current = NONE
            if end == DONE:
                node.waits = ENDED
                return 0
            continue
        end, base = (above + 1) * s.size, above * s.size
        if run.kind == AFFINE:
            k = min(k, end - word)
            kind, given = AFFINE, word - base
        else:
            kind, given = SCRATCH, scratch(inner)
            i = 0
            while i < k and word_in(run, first + i) < end:
                set_int(given, i, word_in(run, first + i) - base)
                i += 1
            k = i
        t = fire(node, seen, free, k)
        if starts:
            push(outer, AFFINE, above, 1, t)
            s.current = above
        take(crd, k, t)
        push(inner, kind, given, k, t)


RULES: dict[type[n.Node], Rule] = {n.Flatten: flatten, n.SplitLevel: split}
