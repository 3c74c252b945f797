"""On the `comal` machine `accumulate` is one part, which emits all entries of a workspace in one firing.

The entries leave in one or more visits, as the rings have room, and all have the cycle of that firing.
"""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import get_int, inline
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.accumulate import (
    ACCUMULATE,
    accumulate_state,
    end_workspace,
    put_run,
    row_coordinate,
    shared_levels,
)
from fuseflow.sim.engine.kernels.elementwise_functions import round_values
from fuseflow.sim.engine.node_firing import (
    GROW,
    MISALIGNED,
    REFUSED,
    WAIT,
    close,
    finish,
    fire,
    look_everywhere,
    look_only,
    nest_at,
    node_at,
    room_at,
    source,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import NodeLayout, Part, word_count
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    copy,
    head_run,
    high_of,
    is_control,
    low_of,
    lower_stop,
    next_word,
    push,
    scratch_address,
    stop_word,
    take,
    take_in_same_cycle,
    visible,
)
from fuseflow.sim.engine.workspace import BLOCK, clear, find_or_insert, sort_keys, workspace_at

state_at = ACCUMULATE.at
IDLE, INNER, OUTER, FLUSH, GIVE = range(5)
"""The phases of handling a stop of the values: there is none; the stop itself is next; stops of outer streams are next, down to
`level`; the stop of the reduced coordinates is next; the folded values are being emitted."""


def accumulate(node: n.Accumulate, layout: NodeLayout) -> list[Part]:
    return layout.part(run_accumulate, accumulate_state(node, layout, 1), computes=word_count(layout.types[-1].tile) > 1)


def run_accumulate(address: int) -> int:
    """Run the part: fire once for each token of the values, for each stop of a stream between, and for each stop of the reduced
    coordinates. Every firing inspects the next token of every input."""
    node = node_at(address)
    s = state_at(node.state)
    nest, w = nest_at(s.nest), workspace_at(s.workspaces)
    crd, val = source(node, s.order), source(node, s.order + 1)
    while True:
        if s.phase != IDLE:
            if not _work_off(node, s, nest, w, s.due - 1):
                return 0
            continue
        visible_at = look_everywhere(node)
        if visible_at == WAIT:
            return 0
        run = head_run(val)
        control, word = run.kind == CONTROL, run.word
        if run.kind == EMPTY:
            node.fault = REFUSED
            return 0
        if is_control(crd) != control:
            node.fault = MISALIGNED
            return 0
        if control and word == DONE:
            finish(node)
            return 0
        if control:
            s.due, s.level, s.empty, s.phase = word + 1, nest.depth - low_of(word) - 1, 0, INNER
            continue
        k = min(tokens_at(node, s.order), tokens_at(node, s.order + 1), node.burst)
        if w.limit < w.space:  # every element may be in a new block
            k = min(k, w.limit - w.used)
            if k == 0:
                node.waits = GROW
                return 0
        _look_up_row(node, s, nest)
        if node.fault != 0:
            return 0
        t = fire(node, visible_at, 0, k)
        put_run(node, s, w, crd, val, k)
        s.values += k
        take(crd, k, t)
        take(val, k, t)


@inline
def _look_up_row(node: Any, s: Any, nest: Any) -> None:
    """Set `s.prefix` to the row of the coordinates at the heads of the outer streams, if they changed since the last value."""
    if nest.open != 0:
        return
    s.prefix = 0
    for level in range(nest.depth):
        reader = source(node, level)
        if is_control(reader):
            node.fault = MISALIGNED
            return
        if level > 0:
            s.prefix = s.prefix * get_int(s.sizes, level - 1) + next_word(reader)
    nest.open = 1


@inline
def _work_off(node: Any, s: Any, nest: Any, w: Any, word: int) -> bool:
    """Take the next step (`s.phase`) for the stop `word` of the values. Return False to wait, or after a fault."""
    if s.phase == GIVE:
        if not _give_workspace(node, s, w, word):
            return False
        if not _look_for_empty(node, s, nest):
            return False
        clear(w)
        return True
    if s.phase == INNER and s.level < 0:
        s.phase, s.empty = FLUSH, 1
    if s.phase == OUTER and s.level <= max(nest.depth - high_of(word) - 1, 0):
        s.phase = FLUSH if high_of(word) >= nest.depth else IDLE
        return True
    visible_at = look_everywhere(node)
    if visible_at == WAIT:
        return False
    t = close(node, visible_at, 0)
    if s.phase == FLUSH:
        _take_outer(node, nest, 0, word, t)
        if s.empty != 0:
            _take_inner(node, nest, word, t)
        sort_keys(w)
        s.at, s.phase, s.next, s.bit, s.last = t, GIVE, 0, 0, -1
    else:
        if s.phase == INNER:
            _take_inner(node, nest, word, t)
        else:
            _take_outer(node, nest, s.level, word, t)
            s.level -= 1
        reader = source(node, s.level)
        if is_control(reader):
            node.fault = MISALIGNED
            return False
        take(reader, 1, t)
        s.phase = OUTER
    nest.open = 0
    return node.fault == 0


@inline
def _give_workspace(node: Any, s: Any, w: Any, word: int) -> bool:
    """Emit all entries of the workspace `w`, and the stop that follows them. Return False if there is no room."""
    if s.bit < 0:
        return True
    if not _give_entries(node, s, w):
        return False
    end = lower_stop(word, 1)
    if low_of(word) <= s.order:
        end = stop_word(0 if w.used > 0 else s.order - 1, high_of(end))
    if not _give_stop(node, s, end):
        return False
    end_workspace(s)
    s.bit = -1
    return True


@inline
def _look_for_empty(node: Any, s: Any, nest: Any) -> bool:
    """If the next group of reduced coordinates is empty, take its stops from the inner streams, and inspect the next reduced
    coordinate. Return False if that has not arrived yet."""
    val = source(node, s.order + 1)
    s.phase = IDLE
    if s.empty != 0 or not is_control(val):
        return True
    word = head_run(val).word
    if word == DONE or low_of(word) < nest.depth:
        return True
    if tokens_at(node, 0) == 0:
        s.phase = GIVE
        return False
    visible_at = max(s.at, visible(source(node, 0)))
    _take_inner(node, nest, word, visible_at)
    look_only(node, visible_at + 1)
    s.due, s.phase = word + 1, FLUSH
    return node.fault == 0


@inline
def _take_inner(node: Any, nest: Any, word: int, t: int) -> None:
    """Take the stop `word` of values and coordinates in cycle t, and those of the streams between if no list is open there."""
    for level in range(max(nest.depth - low_of(word), 1), nest.depth):
        _take_outer(node, nest, level, word, t)
    for q in range(nest.depth, nest.depth + 2):
        reader = source(node, q)
        if not is_control(reader) or head_run(reader).word != word:
            node.fault = MISALIGNED
            return
        take_in_same_cycle(reader, t)


@inline
def _take_outer(node: Any, nest: Any, level: int, word: int, t: int) -> None:
    """Take, in cycle t, the stop of the outer stream at `level` that belongs to the stop `word` of the values."""
    reader = source(node, level)
    if not is_control(reader) or head_run(reader).word != lower_stop(word, nest.depth - level):
        node.fault = MISALIGNED
        return
    take_in_same_cycle(reader, t)


@inline
def _give_entries(node: Any, s: Any, w: Any) -> bool:
    """Emit the entries of workspace `w` from `s.next` on, and return whether all are out. `s.last` is the open row, `s.fresh` the
    first of its coordinates that is not out yet."""
    crd, val = target(node, s.order - 1), target(node, s.order)
    while s.next < w.used:
        key = get_int(w.order, s.next)
        prefix = key // s.row
        if prefix != s.last:
            same = 0
            if s.last >= 0:
                same = shared_levels(s, s.last, prefix)
                if not _give_stop(node, s, stop_word(0, s.order - 2 - same)):
                    return False
            s.last, s.fresh = prefix, same
        place = find_or_insert(w, key)
        mask = get_int(w.masks, place)
        while mask >> s.bit != 0:
            if mask >> s.bit & 1 != 0:
                if not _has_room(node, s.fresh, s.order + 1):
                    return False
                for q in range(s.fresh, s.order - 1):
                    push(target(node, q), AFFINE, row_coordinate(s, prefix, q), 1, s.at)
                s.fresh = s.order - 1
                push(crd, AFFINE, (key - prefix * s.row) * BLOCK + s.bit, 1, s.at)
                if s.rounds != 0:
                    round_values(w.values + 8 * s.words * (BLOCK * place + s.bit), s.words)
                if s.words > 1:
                    into = scratch_address(val)
                    copy(into, w.values + 8 * s.words * (BLOCK * place + s.bit), s.words)
                    push(val, SCRATCH, into, 1, s.at)
                else:
                    push(val, REPEATED, get_int(w.values, BLOCK * place + s.bit), 1, s.at)
                s.held += 1
            s.bit += 1
        s.bit = 0
        s.next += 1
    return True


@inline
def _give_stop(node: Any, s: Any, word: int) -> bool:
    """Emit the stop `word` of the innermost streams, and a stop of each outer stream whose list ends, if there is room for all."""
    first = max(s.order - 1 - high_of(word), 0)
    if not _has_room(node, first, s.order + 1):
        return False
    for q in range(first, s.order):
        push(target(node, q), CONTROL, lower_stop(word, s.order - 1 - q), 1, s.at)
    push(target(node, s.order), CONTROL, word, 1, s.at)
    return True


@inline
def _has_room(node: Any, first: int, end: int) -> bool:
    """Return whether the outputs `first` to `end` - 1 have room for a token each."""
    for q in range(first, end):  # noqa: SIM110 - kernels have no generators
        if room_at(node, q) == 0:
            return False
    return True
