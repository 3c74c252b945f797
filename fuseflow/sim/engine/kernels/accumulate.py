"""The primitive `accumulate` is a reduction over a loop that is not the innermost, into a sorted workspace. It has two parts and
two buffers.

The part `fill` folds values into a workspace, one for each fiber of the reduced coordinates. The part `emit` emits its entries
while `fill` works on the next. Between the parts runs a link, a stream of the stops that ended the fibers (with a bit that says
whether there is a workspace). Its tokens are visible L cycles after the fill's last firing, where L is the latency of the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuseflow.native.records import Record, get_int, inline, set_int, trailing_zeros
from fuseflow.native.signatures import FOLD_INTO, Function, call_fold_into
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.elementwise_functions import round_values
from fuseflow.sim.engine.kernels.reduce import fold_into
from fuseflow.sim.engine.node_firing import (
    BUFFER,
    GROW,
    MISALIGNED,
    REFUSED,
    WAIT,
    close,
    finish,
    fire,
    is_childless,
    look_at_coordinates,
    look_at_stops,
    nest_at,
    node_at,
    room_at,
    source,
    take_coordinates,
    take_stops,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import Array, LayoutRule, Link, NodeLayout, Part, word_count
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    WORD_OFFSET,
    copy,
    element_address,
    head_address,
    head_run,
    high_of,
    is_control,
    low_of,
    lower_stop,
    push,
    scratch_address,
    stop_word,
    take,
    visible,
    word_in,
)
from fuseflow.sim.engine.workspace import BLOCK, WORKSPACE, clear, find_or_insert, sort_keys, workspace_at

ACCUMULATE = Record(
    "order lowered nest workspaces words sizes row "  # `order`: levels given; addresses; `words` of a value, blocks of a `row`
    "fold_into rounds weights column "  # of an accumulate; of a permute
    "working started prefix values "  # fill: whether a workspace is open, how many were, the open row, values folded
    "finished freed0 freed1 phase next bit fresh last "  # emit: how many are finished, when their buffers were free, the next entry
    "held most "  # the entries that were emitted from this workspace, and the most of any
    "due level empty at"  # comal: the stop in work, plus 1; its level; the cycle that emits its workspace
)
state_at = ACCUMULATE.at
WORKSPACE_SIZE = WORKSPACE.size
BUFFERS = 2
WAITING, SORTED = 0, 1
"""These are the phases of `emit`: the next workspace is not sorted yet, or it is sorted and being emitted."""


def accumulate(node: n.Accumulate, layout: NodeLayout) -> list[Part]:
    return fill_and_emit(run_fill, accumulate_state(node, layout, BUFFERS), layout)


def accumulate_state(node: n.Accumulate, layout: NodeLayout, buffers: int) -> Array:
    """Return the record of an accumulate with `buffers` empty workspaces."""
    state = workspace_state(layout, node.inputs[1:-1], buffers)
    state["fold_into"] = layout.library.address(fold_into(node.function, layout.arithmetic), FOLD_INTO)
    state["rounds"] = layout.arithmetic == "rounded"
    return state


def fill_and_emit(fill: Function, state: Array, layout: NodeLayout, emit: Function | None = None) -> list[Part]:
    """Return the two parts of a node that holds fibers back: the kernel `fill`, and `emit` (default `run_emit`)."""
    link = Link(depth=layout.machine.handover_depth)
    return [Part(fill, state, layout.node.inputs, (link,)), Part(emit or run_emit, state, (link,), layout.node.ports, emits=True)]


def workspace_state(layout: NodeLayout, levels: Sequence[n.Port], buffers: int) -> Array:
    """Return the record of a node with `buffers` empty workspaces, whose keys are the coordinates of the streams `levels`, in order."""
    sizes = [layout.bounds[port] for port in levels]
    row = -(-sizes[-1] // BLOCK)
    space = row * int(np.prod(sizes[:-1], dtype=object))
    width = word_count(layout.types[-1].tile)
    workspaces = layout.workspaces(buffers, space, width)
    depth = len(layout.node.inputs) - 2
    return layout.state(
        ACCUMULATE, order=len(levels), lowered=depth + 1 - len(levels), nest=layout.nest(depth), workspaces=workspaces,
        words=width, row=row,
        sizes=layout.array(np.array(sizes, dtype=np.int64)),
    )  # fmt: skip


def run_fill(address: int) -> int:
    """Run the fill: fire once for each token of the values, and once for each coordinate with an empty fiber."""
    node = node_at(address)
    s = state_at(node.state)
    nest = nest_at(s.nest)
    crd, val = source(node, nest.depth), source(node, nest.depth + 1)
    while True:
        k = tokens_at(node, nest.depth + 1)
        if k == 0:
            return 0
        visible_at, free = visible(val), 0
        run = head_run(val)
        control, word = run.kind == CONTROL, run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if control and word == DONE:
            finish(node)
            return 0
        if s.working == 0 and (not control or low_of(word) <= nest.depth):
            free = empty_buffer(node, s)
            if free == WAIT:
                return 0
        if control:
            if not fill_stop(node, s, nest, word, visible_at, free):
                return 0
            continue
        k = min(k, tokens_at(node, nest.depth), node.burst)
        if k == 0:
            return 0
        w = workspace_at(s.workspaces + WORKSPACE_SIZE * ((s.started - s.working) & 1))
        if w.limit < w.space:  # every element may be in a new block
            k = min(k, w.limit - w.used)
            if k == 0:
                node.waits = GROW
                return 0
        outer = look_at_coordinates(node, nest, nest.depth)
        if outer == WAIT:
            return 0
        t = fire(node, max(visible_at, outer, visible(crd)), free, k)
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
def empty_buffer(node: Any, s: Any) -> int:
    """Return the cycle from which a buffer is empty, or WAIT if both are full."""
    if s.started - s.finished >= BUFFERS:
        node.waits = BUFFER
        return WAIT
    return s.freed0 if s.started & 1 == 0 else s.freed1


@inline
def free_buffer(s: Any, t: int) -> None:
    """Note that the buffer that `emit` has emitted is empty from cycle t on."""
    if s.finished & 1 == 0:
        s.freed0 = t
    else:
        s.freed1 = t
    s.finished += 1


@inline
def fill_stop(node: Any, s: Any, nest: Any, word: int, visible_at: int, free: int) -> bool:
    """Take the stop `word` of the values, with the stops of outer streams, and hand the workspace over to `emit` if a fiber of
    the reduced coordinates ends. Return False if a token or room is missing, or after a fault."""
    crd, val, link = source(node, nest.depth), source(node, nest.depth + 1), target(node, 0)
    opens = s.working == 0 and low_of(word) <= nest.depth
    if is_childless(nest, word):
        levels = nest.depth - low_of(word)
        outer = look_at_coordinates(node, nest, levels)
        if outer == WAIT:
            return False
        t = close(node, max(visible_at, outer), free)  # on no value; a workspace fires every cycle on anything
        if opens:
            s.working = 1
            s.started += 1
        take_coordinates(node, nest, levels, t)
        return node.fault == 0
    if tokens_at(node, nest.depth) == 0:
        return False
    ends = look_at_stops(node, nest, word)
    if ends == WAIT:
        return False
    if not is_control(crd) or head_run(crd).word != word:
        node.fault = MISALIGNED
        return False
    ends_fiber = high_of(word) >= nest.depth
    if ends_fiber:
        if room_at(node, 0) == 0:
            return False
        free = max(free, link.free)
    t = close(node, max(visible_at, ends, visible(crd)), free)
    if opens:
        s.working = 1
        s.started += 1
    take_stops(node, nest, word, t)
    take(crd, 1, t)
    take(val, 1, t)
    if ends_fiber:
        push(link, CONTROL, word << 1 | s.working, 1, t)
        s.working = 0
    return node.fault == 0


@inline
def open_row(node: Any, s: Any, nest: Any, t: int) -> None:
    """Take the outer coordinates of a row of the workspace that begins in cycle t, and compute its key, `s.prefix`."""
    if nest.open == nest.depth:
        return
    take_coordinates(node, nest, nest.depth, t)
    s.prefix = 0
    for level in range(1, s.order):
        s.prefix = s.prefix * get_int(s.sizes, level - 1) + get_int(nest.crds, level)


@inline
def put_run(node: Any, s: Any, w: Any, crd: Any, val: Any, k: int) -> None:
    """Fold the next k values of the reader `val` into the workspace `w`, at the coordinates of the reader `crd`."""
    coordinates, values = head_run(crd), head_run(val)
    stride = 0 if values.kind == REPEATED else 1
    at = head_address(val) + WORD_OFFSET if stride == 0 else element_address(val)
    consecutive = coordinates.kind == AFFINE
    i, step = 0, 8 * s.words
    while i < k:
        c = word_in(coordinates, crd.offset + i)
        place = find_or_insert(w, s.prefix * s.row + (c >> 3))
        bit = c & 7
        count = min(k - i, BLOCK - bit) if consecutive else 1
        bits = ((1 << count) - 1) << bit
        mask = get_int(w.masks, place)
        into, start = w.values + step * (BLOCK * place + bit), at + stride * step * i
        if mask & bits == bits:
            if consecutive:
                count += _full_blocks(s, w, c + count, k - i - count, place + 1)
            call_fold_into(s.fold_into, into, start, stride, count * s.words)
        else:
            for j in range(count):
                if mask >> (bit + j) & 1 != 0:
                    call_fold_into(s.fold_into, into + step * j, start + stride * step * j, stride, s.words)
                else:
                    copy(into + step * j, start + stride * step * j, s.words)
            set_int(w.masks, place, mask | bits)
        i += count


@inline
def _full_blocks(s: Any, w: Any, c: int, k: int, place: int) -> int:
    """Return for how many of the k coordinates from c on, the begin of a block, the workspace `w` has values from slot `place` on."""
    count = 0
    while count < k:
        more = min(k - count, BLOCK)
        bits = (1 << more) - 1
        if find_or_insert(w, s.prefix * s.row + ((c + count) >> 3)) != place or get_int(w.masks, place) & bits != bits:
            break
        count += more
        place += 1
    return count


def run_emit(address: int) -> int:
    """Run the emit: fire once for each entry (with new outer coordinates), and for each stop of the innermost streams."""
    node = node_at(address)
    s = state_at(node.state)
    link = source(node, 0)
    while True:
        if tokens_at(node, 0) == 0:
            return 0
        visible_at, word = visible(link), head_run(link).word
        if word == DONE:
            finish(node)
            return 0
        end = lower_stop(word >> 1, s.lowered)
        if word & 1 != 0:
            w = workspace_at(s.workspaces + WORKSPACE_SIZE * (s.finished & 1))
            if s.phase == WAITING:
                sort_keys(w)
                s.phase, s.next, s.bit, s.last = SORTED, 0, 0, -1
            if not _emit_entries(node, s, w, visible_at):
                return 0
            end = stop_word(0 if w.used > 0 else s.order - 1, high_of(end))
        t = emit_stop(node, s, end, visible_at)
        if t == WAIT:
            return 0
        take(link, 1, t)
        if word & 1 != 0:
            clear(w)
            end_workspace(s)
            free_buffer(s, t + 1)
            s.phase = WAITING


@inline
def _emit_entries(node: Any, s: Any, w: Any, visible_at: int) -> bool:
    """Emit the entries of workspace `w` from `s.next` on, and return whether all are out. `s.last` is the open row, `s.fresh` the
    first of its coordinates that is not out yet."""
    crd, val = target(node, s.order - 1), target(node, s.order)
    while s.next < w.used:
        key = get_int(w.order, s.next)
        prefix = key // s.row if s.order > 1 else 0
        if prefix != s.last:
            same = 0
            if s.last >= 0:
                same = shared_levels(s, s.last, prefix)
                if emit_stop(node, s, stop_word(0, s.order - 2 - same), visible_at) == WAIT:
                    return False
            s.last, s.fresh = prefix, same
        place = find_or_insert(w, key)
        mask = get_int(w.masks, place)
        while mask >> s.bit != 0:
            s.bit += trailing_zeros(mask >> s.bit)
            k, free = entry_room(node, s, s.fresh)
            if k == 0:
                return False
            count = min(k, trailing_zeros(~(mask >> s.bit)))
            into = scratch_address(val)
            copy(into, w.values + 8 * s.words * (BLOCK * place + s.bit), count * s.words)
            if s.rounds != 0:
                round_values(into, count * s.words)
            t = fire(node, visible_at, free, count)
            for q in range(s.fresh, s.order - 1):
                push(target(node, q), AFFINE, row_coordinate(s, prefix, q), 1, t)
            s.fresh = s.order - 1
            push(crd, AFFINE, (key - prefix * s.row) * BLOCK + s.bit, count, t)
            push(val, SCRATCH, into, count, t)
            s.bit += count
            s.held += count
        s.bit = 0
        s.next += 1
    return True


@inline
def entry_room(node: Any, s: Any, fresh: int) -> tuple[int, int]:
    """Return for how many entries, whose outer coordinates from level `fresh` on are new, the outputs have room (0: the node
    waits), and the cycle from which they have it."""
    k: int = node.burst
    for q in range(s.order - 1, s.order + 1):
        k = min(k, room_at(node, q))
        if k == 0:
            return 0, 0
    free = max(target(node, s.order - 1).free, target(node, s.order).free)
    for q in range(fresh, s.order - 1):
        if room_at(node, q) == 0:
            return 0, 0
        free = max(free, target(node, q).free)
    return k, free


@inline
def end_workspace(s: Any) -> None:
    """Note in `s.most` the number of entries of a workspace that has been emitted, if it is the largest so far."""
    s.most, s.held = max(s.most, s.held), 0


@inline
def row_coordinate(s: Any, prefix: int, q: int) -> int:
    """Return coordinate q of the row whose key is `prefix`."""
    for level in range(s.order - 2, q, -1):
        prefix //= get_int(s.sizes, level)
    return prefix % get_int(s.sizes, q)


@inline
def shared_levels(s: Any, a: int, b: int) -> int:
    """Return how many outer coordinates two different rows, with the keys a and b, share."""
    count = s.order - 1
    while a != b:
        count -= 1
        a //= get_int(s.sizes, count)
        b //= get_int(s.sizes, count)
    return count


@inline
def emit_stop(node: Any, s: Any, word: int, visible_at: int) -> int:
    """Fire to emit the stop `word` innermost, and on each outer stream whose list ends. Return the cycle, or WAIT."""
    first = max(s.order - 1 - high_of(word), 0)
    if room_at(node, s.order) == 0:
        return WAIT
    free = target(node, s.order).free
    for q in range(s.order - 1, first - 1, -1):
        if room_at(node, q) == 0:
            return WAIT
        free = max(free, target(node, q).free)
    t = close(node, visible_at, free)
    for q in range(first, s.order):
        push(target(node, q), CONTROL, lower_stop(word, s.order - 1 - q), 1, t)
    push(target(node, s.order), CONTROL, word, 1, t)
    return t


RULES: dict[type[n.Node], LayoutRule] = {n.Accumulate: accumulate}
