"""The primitives that change the levels around a stream. `drop` removes entries with a certain value (or `N`), and the coordinates below
which nothing is left. `flatten` and `split` turn two levels into one, and one into two, once for each token of the inner stream."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, get_float, get_int, inline, set_int
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import (
    ENDED,
    MISALIGNED,
    WAIT,
    close,
    fire,
    is_childless,
    look_at_coordinates,
    look_at_stops,
    look_everywhere,
    nest_at,
    node_at,
    pass_control,
    room_at,
    source,
    take_coordinates,
    take_everywhere,
    take_stops,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    SCRATCH,
    SLICE,
    WORD_OFFSET,
    head_address,
    head_run,
    high_of,
    is_control,
    low_of,
    lower_stop,
    next_word,
    pass_on,
    push,
    raise_stop,
    scratch_address,
    stop_word,
    take,
    visible,
    word_in,
)

DROP = Record("nest emitted held kept", floats="value")
"""`emitted` is the number of open coordinates that were emitted. `held` is the level up to which the held stop reaches (-1: none
is held). `kept` says whether the list of the outermost coordinates has a kept value. `value` is the value that is removed; if it
is NaN, which nothing equals, only `N` is removed."""
drop_at = DROP.at


def drop(node: n.Drop, layout: NodeLayout) -> list[Part]:
    nest = layout.nest(len(node.inputs) - 2)
    value = float("nan") if node.value is None else node.value
    return layout.part(run_drop, layout.state(DROP, nest=nest, held=-1, value=value))


def run_drop(address: int) -> int:
    """Run the part: fire once for each inner token, and once for each coordinate with an empty fiber. A coordinate leaves with
    its first kept value.

    A stop below the outermost coordinates divides a list only if a kept value follows in that list. The stop is held until then
    and emitted by a separate firing before the value.
    """
    node = node_at(address)
    s = drop_at(node.state)
    nest = nest_at(s.nest)
    depth = nest.depth
    crd, val = source(node, depth), source(node, depth + 1)
    while True:
        k = min(tokens_at(node, depth + 1), node.burst)
        if k == 0:
            return 0
        visible_at = visible(val)
        control, word = is_control(val), head_run(val).word
        if control and (word == DONE or not is_childless(nest, word)):
            if not _end(node, s, nest, word, visible_at):
                return 0
            continue
        # A value with the coordinates around it; or only coordinates, around an empty list
        leaves = control or _count_alike(s, val, 1, True) > 0
        if not leaves and s.held >= 0:
            if _push_end(node, depth, stop_word(0, s.held), visible_at) == WAIT:
                return 0
            s.held = -1
        levels = depth
        if control:
            levels -= low_of(word)
        else:
            k = min(k, tokens_at(node, depth))
            if k == 0:
                return 0
            visible_at = max(visible_at, visible(crd))
        outer = look_at_coordinates(node, nest, levels)
        if outer == WAIT:
            return 0
        first, free = node.ports if leaves else s.emitted, 0  # the outputs from `first` on get tokens
        for q in range(first, node.ports):
            room = room_at(node, q)
            if room == 0:
                return 0
            free = max(free, target(node, q).free)
            if q >= depth:
                k = min(k, room)
        if not control:
            k = _count_alike(s, val, k, leaves)
        t = fire(node, max(visible_at, outer), free, k)
        take_coordinates(node, nest, levels, t)
        if control:
            if node.fault != 0:
                return 0
            continue
        if node.fault != 0 or is_control(crd):
            node.fault = MISALIGNED
            return 0
        for q in range(first, node.ports):
            out = target(node, q)
            if q < depth:
                push(out, AFFINE, get_int(nest.crds, q), 1, t)
            else:
                reader = source(node, q)
                kind, payload = pass_on(head_run(reader), reader.offset, out, k)
                push(out, kind, payload, k, t)
        if not leaves:
            s.emitted, s.kept = depth, 1
        take(crd, k, t)
        take(val, k, t)


@inline
def _count_alike(s: Any, val: Any, k: int, leaving: bool) -> int:
    """Return how many of the next k values of reader `val`, from the first on, are all removed (if `leaving`) or all kept."""
    run = head_run(val)
    if run.kind == EMPTY or s.value != s.value:
        return k if leaving == (run.kind == EMPTY) else 0
    if run.kind < SLICE:
        return k if leaving == (get_float(head_address(val) + WORD_OFFSET, 0) == s.value) else 0
    at = run.word + 8 * val.offset
    for i in range(k):
        if leaving != (get_float(at, i) == s.value):
            return i
    return k


@inline
def _end(node: Any, s: Any, nest: Any, word: int, visible_at: int) -> bool:
    """Take the inner stop `word` with the stops of outer streams, or `D`. Return False to wait, or after `D` or a fault."""
    depth = nest.depth
    crd, end = source(node, depth), word
    if word == DONE:
        visible_at = look_everywhere(node)
        if visible_at == WAIT:
            return False
    else:
        if tokens_at(node, depth) == 0:
            return False
        ends = look_at_stops(node, nest, word)
        if ends == WAIT:
            return False
        visible_at = max(visible_at, ends, visible(crd))
        if not is_control(crd) or head_run(crd).word != word:
            node.fault = MISALIGNED
            return False
        end = stop_word(0 if s.kept != 0 else max(low_of(word), depth), high_of(word))
    if high_of(word) >= depth:
        t = _push_end(node, depth, end, visible_at)
        if t == WAIT:
            return False
        s.held, s.kept = -1, 0
    else:
        t = close(node, visible_at, 0)
        if s.kept != 0:
            s.held = max(s.held, high_of(word))
    if word == DONE:
        take_everywhere(node, DONE, t)
        node.waits = ENDED
        return False
    take_stops(node, nest, word, t)
    take(crd, 1, t)
    take(source(node, depth + 1), 1, t)
    s.emitted = min(s.emitted, nest.open)
    return node.fault == 0


@inline
def _push_end(node: Any, depth: int, word: int, visible_at: int) -> int:
    """Fire to emit the stop `word` of the innermost streams, and a stop of each outer stream whose list ends, or `D` of all
    streams. Return the cycle, or WAIT."""
    first, free = max(depth - high_of(word), 0), 0
    for q in range(first, node.ports):
        if room_at(node, q) == 0:
            return WAIT
        free = max(free, target(node, q).free)
    t = close(node, visible_at, free)
    for q in range(first, node.ports):
        push(target(node, q), CONTROL, word if word == DONE else lower_stop(word, max(depth - q, 0)), 1, t)
    return t


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


RULES: dict[type[n.Node], LayoutRule] = {n.Drop: drop, n.Flatten: flatten, n.SplitLevel: split}
