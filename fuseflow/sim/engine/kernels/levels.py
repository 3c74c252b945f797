"""The primitives that emit references and levels. `root` emits one reference, 0, and `D`; if tensors are loaded into the scratchpad before
the graph begins, it waits until they are there. `scan` and `range` emit the fiber below every reference."""

from __future__ import annotations

from typing import Any, assert_never

from fuseflow.native.records import Record, get_int, inline, prefetch
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.memory_ports import loaded_cycle, wait_for_answer
from fuseflow.sim.engine.node_firing import (
    ENDED,
    INPUT,
    MISALIGNED,
    OUTSIDE,
    WAIT,
    close,
    common_room,
    fire,
    node_at,
    push_everywhere,
    room_at,
    source,
    target,
    tokens_at,
)
from fuseflow.sim.engine.node_layout import LayoutRule, Link, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    SLICE,
    head_run,
    is_control,
    low_of,
    next_word,
    push,
    raise_stop,
    second_token,
    stop_word,
    take,
    take_in_same_cycle,
    upcoming_word,
    visible,
)
from fuseflow.tensors.levels.base import Computed, Listed


def root(node: n.Root, layout: NodeLayout) -> list[Part]:
    return layout.part(run_root, computes=False)


def run_root(address: int) -> int:
    """Fire twice: for the reference, then for `D`."""
    node = node_at(address)
    out = target(node, 0)
    while room_at(node, 0) > 0:
        if node.firings == 0:
            push(out, AFFINE, 0, 1, fire(node, 0, out.free, 1))
        else:
            push(out, CONTROL, DONE, 1, close(node, 0, out.free))
            node.waits = ENDED
            return 0
    return 0


LOADED_ROOT = Record("loads")
"""`loads` is the address of the requester of the lines that are loaded."""
loaded_root_at = LOADED_ROOT.at


def run_root_loaded(address: int) -> int:
    """Fire for the reference once the last line has come, then for `D`."""
    node = node_at(address)
    out = target(node, 0)
    if node.firings == 0:
        loaded = loaded_cycle(node, loaded_root_at(node.state).loads)
        if loaded == WAIT or room_at(node, 0) == 0:
            return 0
        push(out, AFFINE, 0, 1, fire(node, wait_for_answer(node, 0, loaded), out.free, 1))
    if room_at(node, 0) > 0:
        push(out, CONTROL, DONE, 1, close(node, 0, out.free))
        node.waits = ENDED
    return 0


FIELDS = (
    "size lows highs crds refs spans parents every "  # a dense level has a size; others the bounds of each fiber, and its elements
    "phase next end base references entries "  # `every`: an `N` has a full fiber too
    "joint"  # whether the closing firing of an empty fiber takes its reference, too (comal)
)
SCAN = Record(FIELDS)
IDLE, OPENING, EMITTING, CLOSING = 0, 1, 2, 3
"""The phases of a scan: it is before a reference; it has looked up the fiber and emitted nothing; it has emitted some elements;
or it has emitted all elements, but not the stop."""
ANY_PARENT = 1 << 60  # parents of a level without elements, or without a tensor: no reference is outside
scan_at = SCAN.at


def scan(node: n.Scan, layout: NodeLayout) -> list[Part]:
    return layout.part(run_scan, layout.state(SCAN, **scan_fields(node, layout)), computes=False)


def scan_fields(node: n.Scan, layout: NodeLayout) -> dict[str, int]:
    """Return the fields of `SCAN` with the size or the arrays of the fibers of the node's level."""
    match walk := layout.tensors[node.tensor].levels[node.level].walk():
        case Computed():
            return {"size": walk.size, "parents": ANY_PARENT if walk.parents is None else walk.parents}
        case Listed():
            return {**layout.fiber_arrays(walk, "lows", "highs", "crds", "refs", "spans"), "parents": walk.parents}
        case _:
            assert_never(walk)


def range_(node: n.Range, layout: NodeLayout) -> list[Part]:
    state = layout.state(SCAN, size=node.size, parents=ANY_PARENT, every=1)
    return [Part(run_scan, state, node.inputs, (*layout.node.ports, Link()), computes=False)]


def run_scan(address: int) -> int:
    """Run the part: fire once for each element; the first takes the reference, too. A reference without elements (or `N`, except
    in a `range`) costs a firing, unless `joint` is set. The closing firing follows. It inspects the next reference token: if that
    is a stop, both ends become one stop."""
    node = node_at(address)
    s = scan_at(node.state)
    ref, crds, refs = source(node, 0), target(node, 0), target(node, 1)
    while True:
        visible_at = 0
        if s.phase != EMITTING:
            if tokens_at(node, 0) == 0:
                return 0
            visible_at = visible(ref)
            if head_run(ref).kind == CONTROL or s.phase == CLOSING:
                if not _close_fiber(node, s, visible_at):
                    return 0
                continue
            if s.phase == IDLE:
                if s.lows != 0:
                    prefetch(s.lows + 8 * upcoming_word(ref))
                if not look_up_fiber(s, ref):
                    node.fault = OUTSIDE
                    return 0
                s.phase = OPENING
            if s.next == s.end and s.joint != 0:
                if not _close_empty(node, s, visible_at):
                    return 0
                continue
            if s.next == s.end:
                take(ref, 1, fire(node, visible_at, 0, 1))
                s.phase = CLOSING
                continue
        k = common_room(node, 2, min(node.burst, s.end - s.next))
        if k == 0:
            return 0
        t = fire(node, visible_at, max(crds.free, refs.free), k)
        if s.phase == OPENING:
            take(ref, 1, t)
            s.phase = EMITTING
        _push_elements(node, s, k, t)
        s.next += k
        if s.next == s.end:
            s.phase = CLOSING


@inline
def _close_fiber(node: Any, s: Any, visible_at: int) -> bool:
    """Fire once to end a fiber, and take the stop that follows if there is one. Return False if the part has to wait, after a
    fault, and at the end of the stream."""
    ref, crds, refs = source(node, 0), target(node, 0), target(node, 1)
    if common_room(node, 2, 1) == 0:
        return False
    end, takes_stop = fiber_end(node, s)
    if node.fault != 0:
        return False
    t = close(node, visible_at, max(crds.free, refs.free))
    if takes_stop:
        take(ref, 1, t)
    push_everywhere(node, end, t)
    s.phase = IDLE
    if end == DONE:
        node.waits = ENDED
        return False
    return True


@inline
def fiber_end(node: Any, s: Any) -> tuple[int, bool]:
    """Return the token that ends a fiber, or stands between fibers, and whether the next token of input 0 is part of it and is
    taken. Set a fault if that does not fit."""
    ref = source(node, 0)
    word, end = next_word(ref), stop_word(0, 0)
    takes_stop = is_control(ref) and (s.phase == IDLE or word != DONE)
    if takes_stop:
        end = word if word == DONE else raise_stop(word, 1)
        if s.phase == CLOSING:
            end -= stop_word(1, 0)  # the fiber's own end is part of it
            if low_of(word) != 0:
                node.fault = MISALIGNED
    return end, takes_stop


@inline
def _push_elements(node: Any, s: Any, k: int, t: int) -> None:
    """Emit the next k coordinates of the fiber, and the references below them, in cycle t."""
    crds, refs = target(node, 0), target(node, 1)
    if s.lows == 0:
        push(crds, AFFINE, s.next, k, t)
        push(refs, AFFINE, s.base + s.next, k, t)
        return
    push(crds, SLICE, s.crds + 8 * s.next, k, t)
    if s.refs == 0:
        push(refs, AFFINE, s.next, k, t)
    else:
        push(refs, SLICE, s.refs + 8 * s.next, k, t)


@inline
def _close_empty(node: Any, s: Any, visible_at: int) -> bool:
    """Fire once to take a reference without elements and emit the stop of its fiber. Return False to wait, or after a fault."""
    ref, crds, refs = source(node, 0), target(node, 0), target(node, 1)
    following_at, following = second_token(ref)
    if following_at == WAIT:
        node.waits = INPUT
        return False
    if common_room(node, 2, 1) == 0:
        return False
    t = close(node, max(visible_at, following_at), max(crds.free, refs.free))
    take(ref, 1, t)
    end = stop_word(0, 0)
    if following >= 0:
        if low_of(following) != 0:
            node.fault = MISALIGNED
            return False
        take_in_same_cycle(ref, t)
        end = raise_stop(following, 1) - stop_word(1, 0)  # the fiber's own end is part of it
    push_everywhere(node, end, t)
    s.phase = IDLE
    return True


@inline
def look_up_fiber(s: Any, ref: Any) -> bool:
    """Set `s.next` and `s.end` to the fiber below the next reference. Return False if the reference is outside the level."""
    s.next, s.end = 0, s.size
    if head_run(ref).kind == EMPTY:
        s.end *= s.every
        return True
    r = next_word(ref)
    if r < 0 or r >= s.parents:
        return False
    s.base = r * s.size
    if s.lows != 0:
        s.next, s.end = get_int(s.lows, r), get_int(s.highs, r)
        s.references += 1
        prefetch(s.crds + 8 * s.next)
        s.entries += s.end - s.next if s.spans == 0 else get_int(s.spans, r)
    return True


RULES: dict[type[n.Node], LayoutRule] = {n.Root: root, n.Scan: scan, n.Range: range_}
