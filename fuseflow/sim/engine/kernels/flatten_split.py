"""The primitives `flatten` and `split` turn two levels into one, and one into two. They fire once for each token of the inner
stream."""

from __future__ import annotations

from fuseflow.native.records import Record, get_int, set_int
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.coordinate_nest import (
    is_childless,
    look_at_coordinates,
    look_at_stops,
    nest_at,
    take_coordinates,
    take_stops,
)
from fuseflow.sim.engine.node_firing import (
    ENDED,
    WAIT,
    close,
    fire,
    node_at,
    pass_control,
    room_at,
    source,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    SCRATCH,
    head_run,
    high_of,
    lower_stop,
    next_word,
    push,
    raise_stop,
    scratch_address,
    stop_word,
    take,
    visible,
    word_in,
)

FLATTEN = Record("size nest")
SPLIT = Record("size current")  # `current`: the outer coordinate whose inner fiber is open, or NONE
flatten_at, split_at = FLATTEN.at, SPLIT.at
NONE = -1


def flatten(node: n.Flatten, layout: NodeLayout) -> list[Part]:
    return layout.part(run_flatten, layout.state(FLATTEN, size=node.size, nest=layout.nest(1)))


def split(node: n.SplitLevel, layout: NodeLayout) -> list[Part]:
    return layout.part(run_split, layout.state(SPLIT, size=node.size, current=NONE))


def run_flatten(address: int) -> int:
    """Run a `flatten`: fire once for each inner token. An outer coordinate is taken with its first inner one; an outer coordinate
    with an empty fiber costs a firing."""
    node = node_at(address)
    s = flatten_at(node.state)
    nest = nest_at(s.nest)
    inner, out = source(node, 1), target(node, 0)
    while True:
        k = min(tokens_at(node, 1), node.burst)
        if k == 0:
            return 0
        visible_at, run, first = visible(inner), head_run(inner), inner.offset
        control, word = run.kind == CONTROL, run.word
        empty = control and word != DONE and is_childless(nest, word)
        emits = not empty and (not control or high_of(word) > 0)
        outer = (
            look_at_stops(node, nest, word) if control and not empty else look_at_coordinates(node, nest, 1)
        )  # of `D` too: it ends all lists
        if outer == WAIT:
            return 0
        visible_at, free = max(visible_at, outer), 0
        if emits:
            k = min(k, room_at(node, 0))
            if k == 0:
                return 0
            free = out.free
        if control and not empty:
            if word == DONE:
                pass_control(node, DONE, visible_at, free)
                return 0
            t = close(node, visible_at, free)
            take_stops(node, nest, word, t)
            kind, word = CONTROL, lower_stop(word, 1)
        else:
            t = fire(node, visible_at, free, k)
            take_coordinates(node, nest, 1, t)
            if empty:
                continue
            base = get_int(nest.crds, 0) * s.size
            if run.kind == AFFINE:
                kind, word = AFFINE, base + run.word + first
            else:
                kind, word = SCRATCH, scratch_address(out)
                for i in range(k):
                    set_int(word, i, base + word_in(run, first + i))
        if node.fault != 0:
            return 0
        take(inner, k, t)
        if emits:
            push(out, kind, word, k, t)


def run_split(address: int) -> int:
    """Run a `split`: fire once for each token. Where a coordinate starts a new outer coordinate, another firing, which only
    inspects the token, ends the inner fiber before it."""
    node = node_at(address)
    s = split_at(node.state)
    crd, outer, inner = source(node, 0), target(node, 0), target(node, 1)
    while True:
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        visible_at, run, first, word = visible(crd), head_run(crd), crd.offset, next_word(crd)
        control = run.kind == CONTROL
        above = word // s.size
        ends = not control and s.current != NONE and s.current != above  # looks only
        starts = control or s.current == NONE
        free = 0
        if starts:
            if room_at(node, 0) == 0:
                return 0
            free = outer.free
        k = min(k, room_at(node, 1))
        if k == 0:
            return 0
        free = max(free, inner.free)
        if control or ends:
            t = close(node, visible_at, free)
            end = stop_word(0, 0)
            if control:
                take(crd, 1, t)
                push(outer, CONTROL, word, 1, t)
                end = word
                if word != DONE:
                    end = raise_stop(word, 1) if s.current == NONE else stop_word(0, high_of(word) + 1)
            push(inner, CONTROL, end, 1, t)
            s.current = NONE
            if end == DONE:
                node.waits = ENDED
                return 0
            continue
        end, base = (above + 1) * s.size, above * s.size
        if run.kind == AFFINE:
            k = min(k, end - word)
            kind, inner_word = AFFINE, word - base
        else:
            kind, inner_word = SCRATCH, scratch_address(inner)
            i = 0
            while i < k and word_in(run, first + i) < end:
                set_int(inner_word, i, word_in(run, first + i) - base)
                i += 1
            k = i
        t = fire(node, visible_at, free, k)
        if starts:
            push(outer, AFFINE, above, 1, t)
            s.current = above
        take(crd, k, t)
        push(inner, kind, inner_word, k, t)


RULES: dict[type[n.Node], LayoutRule] = {n.Flatten: flatten, n.SplitLevel: split}
