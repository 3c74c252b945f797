"""Accumulate on the `comal` machine: one part, which gives all entries of a workspace in one firing.

Its cycle is fixed once; the entries then leave over as many visits as the rings have room for, all with one stamp.
"""

from __future__ import annotations

from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.accumulate import (  # fmt: skip
    ACCUMULATE,
    SORTED,
    WAITING,
    accumulate_state,
    coordinate,
    open_row,
    put_run,
    shared,
)
from fuseflow.sim.engine.nested_streams import enter, look, nest_at
from fuseflow.sim.engine.node_layout import NodeLayout, Part, words
from fuseflow.sim.engine.node_records import (  # fmt: skip
    ENDED,
    GROW,
    INPUT,
    MISALIGNED,
    REFUSED,
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
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    behind,
    copy,
    head_run,
    high_of,
    is_control,
    low_of,
    push,
    scratch,
    seen_above,
    stop,
    take,
    take_too,
    visible,
)
from fuseflow.sim.engine.workspace import BLOCK, clear, place_of, sort_keys, workspace_at
from fuseflow.sim.native.records import get_int, inline

state_at = ACCUMULATE.at


def accumulate(node: n.Accumulate, place: NodeLayout) -> list[Part]:
    return place.part(run_accumulate, accumulate_state(node, place, 1), computes=words(place.types[-1].tile) > 1)


def run_accumulate(address: int) -> int:
    """One firing a token of the values, but for a stop that ends an empty fiber of the reduced coordinates; one for each stop of the
    reduced coordinates."""
    node = node_at(address)
    s = state_at(node.state)
    nest, w = nest_at(s.nest), workspace_at(s.workspaces)
    crd, val = source(node, s.order), source(node, s.order + 1)
    while True:
        if s.due != 0 and not _flush(node, s, nest, w, s.due - 1):
            return 0
        k = min(awaits(node, s.order + 1), node.burst)
        if k == 0:
            return 0
        run = head_run(val)
        control, word = run.kind == CONTROL, run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if control and word == DONE:
            seen = look_everywhere(node)
            if seen == WAIT or room_everywhere(node) == WAIT:
                return 0
            t = close(node, seen, 0)
            take_everywhere(node, DONE, t)
            push_everywhere(node, DONE, t)
            node.waits = ENDED
            return 0
        k = min(k, awaits(node, s.order))
        if k == 0:
            return 0
        if is_control(crd) != control or (control and head_run(crd).word != word):
            node.fault = MISALIGNED
            return 0
        seen = max(visible(val), visible(crd))
        if control:
            if low_of(word) < s.order and not _inner_stop(node, s, nest, word, seen):
                return 0
            if high_of(word) >= s.order:
                s.due = word + 1
            continue
        if w.limit < w.space:  # every element may be in a new block
            k = min(k, w.limit - w.used)
            if k == 0:
                node.waits = GROW
                return 0
        outer = look(node, nest, s.order)
        if outer == WAIT:
            return 0
        t = fire(node, max(seen, outer), 0, k)
        open_row(node, s, nest, t)
        if node.fault != 0:
            return 0
        put_run(node, s, w, crd, val, k)
        s.values += k
        take(crd, k, t)
        take(val, k, t)


@inline
def _inner_stop(node: Any, s: Any, nest: Any, word: int, seen: int) -> bool:
    """The firing that ends a list below the reduced coordinates: it also takes the outer coordinates with nothing below them, and the
    stops of the streams between. False if it has to wait."""
    levels, between = nest.depth - low_of(word), max(nest.depth - high_of(word), 1)
    outer = look(node, nest, levels)
    if outer == WAIT:
        return False
    seen = max(seen, outer)
    for level in range(between, nest.depth):
        if awaits(node, level) == 0:
            return False
        later = visible(source(node, level))
        if nest.open <= level < levels:  # behind the coordinate that is taken
            later, _ = behind(source(node, level))
            if later == WAIT:
                node.waits = INPUT + level
                return False
        seen = max(seen, later)
    t = close(node, seen, 0)
    enter(node, nest, levels, t)
    for level in range(between, nest.depth):
        _take_end(node, nest, level, word, t)
    nest.open = min(nest.open, max(nest.depth - 1 - high_of(word), 0))
    take(source(node, s.order), 1, t)
    take(source(node, s.order + 1), 1, t)
    return True


@inline
def _take_end(node: Any, nest: Any, level: int, word: int, t: int) -> None:
    """Take the stop of an outer stream that is part of an inner stop."""
    reader = source(node, level)
    if not is_control(reader) or head_run(reader).word != seen_above(word, nest.depth - level):
        node.fault = MISALIGNED
        return
    take_too(reader, t)


@inline
def _flush(node: Any, s: Any, nest: Any, w: Any, word: int) -> bool:
    """The firing on a stop of the reduced coordinates, and everything that it gives. False if it has to wait."""
    if s.phase == WAITING:
        if not _take_flushed(node, s, nest, word):
            return False
        sort_keys(w)
        s.phase, s.next, s.bit, s.last = SORTED, 0, 0, -1
    if not _give_entries(node, s, w):
        return False
    end = seen_above(word, 1)
    if low_of(word) <= s.order:
        end = stop(0 if w.used > 0 else s.order - 1, high_of(end))
    if not _give_stop(node, s, end):
        return False
    clear(w)
    s.phase, s.due = WAITING, 0
    return True


@inline
def _take_flushed(node: Any, s: Any, nest: Any, word: int) -> bool:
    """Fire, and take the stop of the reduced coordinates; and all others, if nothing was taken yet, for want of a list below."""
    crd, val = source(node, s.order), source(node, s.order + 1)
    alone = low_of(word) >= nest.depth
    seen = max(visible(crd), visible(val)) if alone else 0
    ended = nest.depth if alone else 1
    for level in range(ended):
        if awaits(node, level) == 0:
            return False
        seen = max(seen, visible(source(node, level)))
    s.at = close(node, seen, 0)
    for level in range(ended):
        _take_end(node, nest, level, word, s.at)
    nest.open = 0
    if alone:
        take(crd, 1, s.at)
        take(val, 1, s.at)
    return True


@inline
def _give_entries(node: Any, s: Any, w: Any) -> bool:
    """Give from the next entry on; whether all are out. `last`: the row that is open, `fresh`: its first coordinate not yet out."""
    crd, val = target(node, s.order - 1), target(node, s.order)
    while s.next < w.used:
        key = get_int(w.order, s.next)
        prefix = key // s.row
        if prefix != s.last:
            same = 0
            if s.last >= 0:
                same = shared(s, s.last, prefix)
                if not _give_stop(node, s, stop(0, s.order - 2 - same)):
                    return False
            s.last, s.fresh = prefix, same
        place = place_of(w, key)
        mask = get_int(w.masks, place)
        while mask >> s.bit != 0:
            if mask >> s.bit & 1 != 0:
                if not _has_room(node, s.fresh, s.order + 1):
                    return False
                for q in range(s.fresh, s.order - 1):
                    push(target(node, q), AFFINE, coordinate(s, prefix, q), 1, s.at)
                s.fresh = s.order - 1
                push(crd, AFFINE, (key - prefix * s.row) * BLOCK + s.bit, 1, s.at)
                if s.words > 1:
                    into = scratch(val)
                    copy(into, w.values + 8 * s.words * (BLOCK * place + s.bit), s.words)
                    push(val, SCRATCH, into, 1, s.at)
                else:
                    push(val, REPEATED, get_int(w.values, BLOCK * place + s.bit), 1, s.at)
            s.bit += 1
        s.bit = 0
        s.next += 1
    return True


@inline
def _give_stop(node: Any, s: Any, word: int) -> bool:
    """Give a stop of the innermost streams, and of each outer stream that it ends a list of; whether there was room."""
    first = max(s.order - 1 - high_of(word), 0)
    if not _has_room(node, first, s.order + 1):
        return False
    for q in range(first, s.order):
        push(target(node, q), CONTROL, seen_above(word, s.order - 1 - q), 1, s.at)
    push(target(node, s.order), CONTROL, word, 1, s.at)
    return True


@inline
def _has_room(node: Any, first: int, end: int) -> bool:
    """Whether these outputs have room for a token each."""
    for q in range(first, end):  # noqa: SIM110 - kernels have no generators
        if rooms(node, q) == 0:
            return False
    return True
