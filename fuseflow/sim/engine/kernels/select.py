"""The primitive `select` keeps the entries of largest magnitude of each fiber, or of each group of its coordinates. It has two
parts and two buffers, as an `accumulate`.

The part `fill` holds the entries of a fiber or of a group in a list. The part `emit` cuts the list down and emits the rest while
`fill` works on the next. The link between them carries the stops that ended fibers, as in an `accumulate`, and GROUP_END for a
group that is not the last of its fiber.
"""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, get_int, inline, set_int
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.accumulate import (
    BUFFERS,
    emit_stop,
    empty_buffer,
    entry_room,
    fill_and_emit,
    fill_stop,
    free_buffer,
)
from fuseflow.sim.engine.node_firing import (
    GROW,
    MISALIGNED,
    REFUSED,
    WAIT,
    finish,
    fire,
    look_at_coordinates,
    nest_at,
    node_at,
    room_at,
    source,
    take_coordinates,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
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
    next_word,
    push,
    scratch_address,
    stop_word,
    take,
    visible,
    word_in,
)
from fuseflow.sim.engine.workspace import HELD, ORDERS, coordinates_at, held_at, keep_largest

SELECT = Record(
    "keep by marks every order nest lists "  # `by`: an index of `ORDERS`; whether it emits ones; number of levels; addresses
    "working started group fresh most "  # fill: whether a list is open, how many were, its group, the outermost level that is new
    "finished freed0 freed1 chosen next divided"  # emit: how many are finished, when buffers were free; whether the list is cut
    # down, its next entry, and whether the stop before that is out
)
state_at = SELECT.at
HELD_SIZE = HELD.size
GROUP_END = 1 << 20 | 1
"""The link's token at the end of a group inside a fiber. Its lowest bit says, as in other tokens, that a list is handed over."""


def select(node: n.Select, layout: NodeLayout) -> list[Part]:
    nest = layout.nest(node.levels - 1)
    lists = layout.entry_lists(BUFFERS, node.levels)
    rule = {"keep": node.keep, "by": ORDERS.index(node.by), "marks": int(node.marks), "every": node.every}
    state = layout.state(SELECT, **rule, order=node.levels, nest=nest, lists=lists)
    return fill_and_emit(run_fill_entries, state, layout, run_emit_entries)


def run_fill_entries(address: int) -> int:
    """Run the fill: fire once for each token of the values, and once for each coordinate with an empty fiber."""
    node = node_at(address)
    s = state_at(node.state)
    nest = nest_at(s.nest)
    crd, val, link = source(node, nest.depth), source(node, nest.depth + 1), target(node, 0)
    while True:
        k = tokens_at(node, nest.depth + 1)
        if k == 0:
            return 0
        visible_at, kind = visible(val), head_run(val).kind
        if kind == EMPTY:
            node.fault = REFUSED
            return 0
        if kind == CONTROL:
            if not _take_control(node, s, nest, head_run(val).word, visible_at):
                return 0
            continue
        k = min(k, tokens_at(node, nest.depth), node.burst)
        if k == 0:
            return 0
        if is_control(crd):
            node.fault = MISALIGNED
            return 0
        group = next_word(crd) // s.every if s.every > 0 else 0
        ended, free = s.working != 0 and group != s.group, 0
        if s.working == 0 or ended:
            free = empty_buffer(node, s)
            if free == WAIT:
                return 0
        if ended:
            if room_at(node, 0) == 0:
                return 0
            free = max(free, link.free)
        following = s.working == 0 or ended  # the values go into the next list
        h = held_at(s.lists + HELD_SIZE * ((s.started if following else s.started - 1) & 1))
        k = min(k, h.limit - h.used)
        if k == 0:
            node.waits = GROW
            return 0
        if s.every > 0:
            k = _count_in_group(crd, (group + 1) * s.every, k)
        outer = look_at_coordinates(node, nest, nest.depth)
        if outer == WAIT:
            return 0
        t = fire(node, max(visible_at, outer, visible(crd)), free, k)
        if ended:
            push(link, CONTROL, GROUP_END, 1, t)
        if following:
            s.working, s.group = 1, group
            s.started += 1
        take_coordinates(node, nest, nest.depth, t)
        if node.fault != 0:
            return 0
        _hold(s, nest, h, crd, val, k)
        take(crd, k, t)
        take(val, k, t)


@inline
def _count_in_group(crd: Any, end: int, k: int) -> int:
    """Return how many of the next k coordinates of reader `crd` are below `end`, the end of the group of the first."""
    run = head_run(crd)
    if run.kind == AFFINE:
        return min(k, end - run.word - crd.offset)
    count = 1
    while count < k and word_in(run, crd.offset + count) < end:
        count += 1
    return count


@inline
def _hold(s: Any, nest: Any, h: Any, crd: Any, val: Any, k: int) -> None:
    """Add the next k values of reader `val` to the list `h`, with their coordinates."""
    coordinates, values = head_run(crd), head_run(val)
    stride = 0 if values.kind == REPEATED else 1
    at = head_address(val) + WORD_OFFSET if stride == 0 else element_address(val)
    for level in range(nest.depth):
        for i in range(k):
            set_int(coordinates_at(h, level), h.used + i, get_int(nest.crds, level))
    for i in range(k):
        set_int(coordinates_at(h, nest.depth), h.used + i, word_in(coordinates, crd.offset + i))
        set_int(h.values, h.used + i, get_int(at, stride * i))
        set_int(h.fresh, h.used + i, nest.depth)
    set_int(h.fresh, h.used, s.fresh)
    s.fresh = nest.depth
    h.used += k
    s.most = max(s.most, h.used)


@inline
def _take_control(node: Any, s: Any, nest: Any, word: int, visible_at: int) -> bool:
    """Take the stop `word` of the values with the stops of outer streams, or `D`. Return False to wait, after `D` or a fault."""
    if word == DONE:
        finish(node)
        return False
    free = 0
    if s.working == 0 and low_of(word) <= nest.depth:
        free = empty_buffer(node, s)
        if free == WAIT:
            return False
    if not fill_stop(node, s, nest, word, visible_at, free):
        return False
    s.fresh = min(s.fresh, nest.open)
    return True


def run_emit_entries(address: int) -> int:
    """Run the emit: fire once for each kept entry (with new outer coordinates), and for each stop of the innermost streams."""
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
        h = held_at(s.lists + HELD_SIZE * (s.finished & 1))
        end = word >> 1
        if word & 1 != 0:
            if s.chosen == 0:
                keep_largest(h, s.keep, s.by, s.marks)
                s.chosen, s.next, s.divided = 1, 0, 0
            if not _emit_entries(node, s, h, visible_at):
                return 0
            end = stop_word(0 if h.used > 0 else s.order - 1, high_of(end))
        if word != GROUP_END and emit_stop(node, s, end, visible_at) == WAIT:
            return 0
        take(link, 1, node.last)
        if word & 1 != 0:
            h.used = 0
            free_buffer(s, node.last + 1)
            s.chosen = 0


@inline
def _emit_entries(node: Any, s: Any, h: Any, visible_at: int) -> bool:
    """Emit the entries of list `h` from `s.next` on, and return whether all are out."""
    depth = s.order - 1
    crd, val = target(node, depth), target(node, s.order)
    while s.next < h.used:
        fresh = get_int(h.fresh, s.next)
        if fresh < depth and s.next > 0 and s.divided == 0:
            if emit_stop(node, s, stop_word(0, depth - 1 - fresh), visible_at) == WAIT:
                return False
            s.divided = 1
        k, free = entry_room(node, s, fresh)
        if k == 0:
            return False
        k = min(k, h.used - s.next)
        count = 1
        while count < k and get_int(h.fresh, s.next + count) == depth:
            count += 1
        t = fire(node, visible_at, free, count)
        for q in range(fresh, depth):
            push(target(node, q), AFFINE, get_int(coordinates_at(h, q), s.next), 1, t)
        _give(crd, coordinates_at(h, depth), s.next, count, t)
        _give(val, h.values, s.next, count, t)
        s.next += count
        s.divided = 0
    return True


@inline
def _give(out: Any, words: int, first: int, count: int, t: int) -> None:
    """Emit on the stream `out`, in cycle t, `count` words of the array at `words`, from index `first` on."""
    into = scratch_address(out)
    copy(into, words + 8 * first, count)
    push(out, SCRATCH, into, count, t)


RULES: dict[type[n.Node], LayoutRule] = {n.Select: select}
