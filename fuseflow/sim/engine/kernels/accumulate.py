"""Accumulate: a reduction over a loop that is not the innermost, into a sorted workspace. Two parts and two buffers.

Fill folds values into a workspace, one for each fiber of the reduced coordinates; emit writes it out while fill works on the next.
Between them runs a link, a stream of the stops that ended the fibers (with a bit that says whether there is a workspace): its tokens
are visible L cycles after the fill's last firing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.reduce import fold_into
from fuseflow.sim.engine.nested_streams import NEST, childless, enter, leave, look, look_ends, nest_at
from fuseflow.sim.engine.node_layout import Array, Link, NodeLayout, Part, Rule, words
from fuseflow.sim.engine.node_records import (  # fmt: skip
    BUFFER,
    ENDED,
    GROW,
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
    WORD_OFFSET,
    copy,
    element,
    head_address,
    head_run,
    high_of,
    is_control,
    low_of,
    push,
    scratch,
    seen_above,
    stop,
    take,
    visible,
    word_in,
)
from fuseflow.sim.engine.workspace import BLOCK, WORKSPACE, clear, place_of, sort_keys, workspace_at
from fuseflow.sim.native.jit import FOLD_INTO, Function, call_fold_into
from fuseflow.sim.native.records import Record, get_int, inline, set_int, trailing_zeros

ACCUMULATE = Record(
    "order lowered nest workspaces words sizes row "  # `order`: levels given; addresses; `words` of a value, blocks of a `row`
    "fold_into weights column "  # of an accumulate; of a permute
    "working started prefix values "  # fill: whether a workspace is open, how many were, the open row, values folded
    "finished freed0 freed1 phase next bit fresh last "  # emit: how many are finished, when their buffers were free, the next entry
    "due at"  # comal: the stop whose workspace is due, plus 1, and the cycle in which it is given
)
state_at = ACCUMULATE.at
WORKSPACE_SIZE = WORKSPACE.size
BUFFERS = 2
WAITING, SORTED = 0, 1


def accumulate(node: n.Accumulate, place: NodeLayout) -> list[Part]:
    return halves(run_fill, accumulate_state(node, place, BUFFERS), place)


def accumulate_state(node: n.Accumulate, place: NodeLayout, buffers: int) -> Array:
    state = make_state(place, node.inputs[1:-1], buffers)
    state["fold_into"] = place.library.address(fold_into(node.function), FOLD_INTO)
    return state


def halves(fill: Function, state: Array, place: NodeLayout) -> list[Part]:
    """The parts of a node that holds fibers back."""
    link = Link()
    return [Part(fill, state, place.node.inputs, (link,)), Part(run_emit, state, (link,), place.outputs)]


def make_state(place: NodeLayout, levels: Sequence[n.Port], buffers: int) -> Array:
    """The record of a node with so many empty workspaces. `levels`: the streams whose coordinates are keys, in the order of the keys."""
    sizes = [place.bounds[port] for port in levels]
    row = -(-sizes[-1] // BLOCK)
    space = row * int(np.prod(sizes[:-1], dtype=object))
    width = words(place.types[-1].tile)
    workspaces = place.workspaces(buffers, space, width)
    depth = len(place.node.inputs) - 2
    nest = place.array(place.state(NEST, depth=depth, crds=place.array(np.zeros(depth, dtype=np.int64))))
    return place.state(
        ACCUMULATE, order=len(levels), lowered=depth + 1 - len(levels), nest=nest, workspaces=workspaces, words=width, row=row,
        sizes=place.array(np.array(sizes, dtype=np.int64)),
    )  # fmt: skip


def run_fill(address: int) -> int:
    """One firing a token of the values, and one for each coordinate with nothing below it."""
    node = node_at(address)
    s = state_at(node.state)
    nest = nest_at(s.nest)
    crd, val, link = source(node, nest.depth), source(node, nest.depth + 1), target(node, 0)
    while True:
        k = awaits(node, nest.depth + 1)
        if k == 0:
            return 0
        seen, free = visible(val), 0
        run = head_run(val)
        control, word = run.kind == CONTROL, run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if control and word == DONE:
            seen = look_everywhere(node)
            if seen == WAIT or rooms(node, 0) == 0:
                return 0
            t = close(node, seen, 0)
            take_everywhere(node, DONE, t)
            push(link, CONTROL, DONE, 1, t)
            node.waits = ENDED
            return 0
        if s.working == 0 and (not control or low_of(word) <= nest.depth):
            if s.started - s.finished >= BUFFERS:
                node.waits = BUFFER
                return 0
            free = s.freed0 if s.started & 1 == 0 else s.freed1
        if control:
            if not _fill_stop(node, s, nest, word, seen, free):
                return 0
            continue
        k = min(k, awaits(node, nest.depth), node.burst)
        if k == 0:
            return 0
        w = workspace_at(s.workspaces + WORKSPACE_SIZE * ((s.started - s.working) & 1))
        if w.limit < w.space:  # every element may be in a new block
            k = min(k, w.limit - w.used)
            if k == 0:
                node.waits = GROW
                return 0
        outer = look(node, nest, nest.depth)
        if outer == WAIT:
            return 0
        t = fire(node, max(seen, outer, visible(crd)), free, k)
        if s.working == 0:
            s.working = 1
            s.started += 1
        open_row(node, s, nest, t)
        if is_control(crd) or node.fault != 0:
            node.fault = MISALIGNED
            return 0
        put_run(node, s, w, crd, val, k)
        if node.fault != 0:
            return 0
        s.values += k
        take(crd, k, t)
        take(val, k, t)


@inline
def _fill_stop(node: Any, s: Any, nest: Any, word: int, seen: int, free: int) -> bool:
    """Take an inner stop with all that it ends; hand the workspace over if it ends a fiber of the reduced coordinates."""
    crd, val, link = source(node, nest.depth), source(node, nest.depth + 1), target(node, 0)
    opens = s.working == 0 and low_of(word) <= nest.depth
    if childless(nest, word):
        levels = nest.depth - low_of(word)
        outer = look(node, nest, levels)
        if outer == WAIT:
            return False
        t = close(node, max(seen, outer), free)  # on no value; a workspace fires every cycle on anything
        if opens:
            s.working = 1
            s.started += 1
        enter(node, nest, levels, t)
        return node.fault == 0
    if awaits(node, nest.depth) == 0:
        return False
    ends = look_ends(node, nest, word)
    if ends == WAIT:
        return False
    if not is_control(crd) or head_run(crd).word != word:
        node.fault = MISALIGNED
        return False
    over = high_of(word) >= nest.depth
    if over and rooms(node, 0) == 0:
        return False
    t = close(node, max(seen, ends, visible(crd)), free)
    if opens:
        s.working = 1
        s.started += 1
    leave(node, nest, word, t)
    take(crd, 1, t)
    take(val, 1, t)
    if over:
        push(link, CONTROL, word << 1 | s.working, 1, t)
        s.working = 0
    return node.fault == 0


@inline
def open_row(node: Any, s: Any, nest: Any, t: int) -> None:
    """Take the outer coordinates of a row that begins in cycle t."""
    if nest.open == nest.depth:
        return
    enter(node, nest, nest.depth, t)
    s.prefix = 0
    for level in range(1, s.order):
        s.prefix = s.prefix * get_int(s.sizes, level - 1) + get_int(nest.crds, level)


@inline
def put_run(node: Any, s: Any, w: Any, crd: Any, val: Any, k: int) -> None:
    """Fold the next k values into their places."""
    coordinates, values = head_run(crd), head_run(val)
    stride = 0 if values.kind == REPEATED else 1
    at = head_address(val) + WORD_OFFSET if stride == 0 else element(val)
    consecutive = coordinates.kind == AFFINE
    i, step = 0, 8 * s.words
    while i < k:
        c = word_in(coordinates, crd.offset + i)
        place = place_of(w, s.prefix * s.row + (c >> 3))
        bit = c & 7
        count = min(k - i, BLOCK - bit) if consecutive else 1
        bits = ((1 << count) - 1) << bit
        mask = get_int(w.masks, place)
        into, start = w.values + step * (BLOCK * place + bit), at + stride * step * i
        if mask & bits == bits:
            call_fold_into(s.fold_into, into, start, stride, count * s.words)
        else:
            for j in range(count):
                if mask >> (bit + j) & 1 != 0:
                    call_fold_into(s.fold_into, into + step * j, start + stride * step * j, stride, s.words)
                else:
                    copy(into + step * j, start + stride * step * j, s.words)
            set_int(w.masks, place, mask | bits)
        i += count


def run_emit(address: int) -> int:
    """One firing an entry, an outer coordinate with its first entry; one for every stop of the innermost streams."""
    node = node_at(address)
    s = state_at(node.state)
    link = source(node, 0)
    while True:
        if awaits(node, 0) == 0:
            return 0
        seen, word = visible(link), head_run(link).word
        if word == DONE:
            free = room_everywhere(node)
            if free == WAIT:
                return 0
            t = close(node, seen, free)
            take(link, 1, t)
            push_everywhere(node, DONE, t)
            node.waits = ENDED
            return 0
        end = seen_above(word >> 1, s.lowered)
        if word & 1 != 0:
            w = workspace_at(s.workspaces + WORKSPACE_SIZE * (s.finished & 1))
            if s.phase == WAITING:
                sort_keys(w)
                s.phase, s.next, s.bit, s.last = SORTED, 0, 0, -1
            if not _emit_entries(node, s, w, seen):
                return 0
            end = stop(0 if w.used > 0 else s.order - 1, high_of(end))
        t = _emit_stop(node, s, end, seen)
        if t == WAIT:
            return 0
        take(link, 1, t)
        if word & 1 != 0:
            clear(w)
            if s.finished & 1 == 0:
                s.freed0 = t + 1
            else:
                s.freed1 = t + 1
            s.finished += 1
            s.phase = WAITING


@inline
def _emit_entries(node: Any, s: Any, w: Any, seen: int) -> bool:
    """Emit from the next entry on; whether all are out. `last`: the row that is open, `fresh`: its first coordinate not yet out."""
    crd, val = target(node, s.order - 1), target(node, s.order)
    while s.next < w.used:
        key = get_int(w.order, s.next)
        prefix = key // s.row if s.order > 1 else 0
        if prefix != s.last:
            same = 0
            if s.last >= 0:
                same = shared(s, s.last, prefix)
                if _emit_stop(node, s, stop(0, s.order - 2 - same), seen) == WAIT:
                    return False
            s.last, s.fresh = prefix, same
        place = place_of(w, key)
        mask = get_int(w.masks, place)
        while mask >> s.bit != 0:
            s.bit += trailing_zeros(mask >> s.bit)
            k = min(rooms(node, s.order - 1), node.burst)
            if k == 0:
                return False
            k = min(k, rooms(node, s.order))
            if k == 0:
                return False
            free = max(crd.free, val.free)
            for q in range(s.fresh, s.order - 1):
                if rooms(node, q) == 0:
                    return False
                free = max(free, target(node, q).free)
            count = min(k, trailing_zeros(~(mask >> s.bit)))
            into = scratch(val)
            copy(into, w.values + 8 * s.words * (BLOCK * place + s.bit), count * s.words)
            t = fire(node, seen, free, count)
            for q in range(s.fresh, s.order - 1):
                push(target(node, q), AFFINE, coordinate(s, prefix, q), 1, t)
            s.fresh = s.order - 1
            push(crd, AFFINE, (key - prefix * s.row) * BLOCK + s.bit, count, t)
            push(val, SCRATCH, into, count, t)
            s.bit += count
        s.bit = 0
        s.next += 1
    return True


@inline
def coordinate(s: Any, prefix: int, q: int) -> int:
    """Coordinate q of a row."""
    for level in range(s.order - 2, q, -1):
        prefix //= get_int(s.sizes, level)
    return prefix % get_int(s.sizes, q)


@inline
def shared(s: Any, a: int, b: int) -> int:
    """How many outer coordinates two different rows share."""
    same = s.order - 1
    while a != b:
        same -= 1
        a //= get_int(s.sizes, same)
        b //= get_int(s.sizes, same)
    return same


@inline
def _emit_stop(node: Any, s: Any, word: int, seen: int) -> int:
    """A stop of the innermost streams, and of each outer stream that it ends a list of. Its cycle, or WAIT."""
    first = max(s.order - 1 - high_of(word), 0)
    if rooms(node, s.order) == 0:
        return WAIT
    free = target(node, s.order).free
    for q in range(s.order - 1, first - 1, -1):
        if rooms(node, q) == 0:
            return WAIT
        free = max(free, target(node, q).free)
    t = close(node, seen, free)
    for q in range(first, s.order):
        push(target(node, q), CONTROL, seen_above(word, s.order - 1 - q), 1, t)
    push(target(node, s.order), CONTROL, word, 1, t)
    return t


RULES: dict[type[n.Node], Rule] = {n.Accumulate: accumulate}
