"""Scan at a memory that takes time: the part that walks fibers and asks for coordinates, and the one that gives them (docs/memory.md)."""

from __future__ import annotations

from typing import Any

from fuseflow.sim.engine.kernels import scan
from fuseflow.sim.engine.kernels.scan import BETWEEN, CLOSING, INSIDE, OPENED, look_up
from fuseflow.sim.engine.memory_ports import answer, answered, read, read_bytes, requester_at
from fuseflow.sim.engine.node_records import ENDED, MISALIGNED, OUTSIDE, WAIT, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SLICE,
    coming,
    head_run,
    low_of,
    next_word,
    push,
    raised,
    stop,
    take,
    visible,
)
from fuseflow.sim.native.records import Record, get_int, inline, prefetch

REMOTE_SCAN = Record(f"{scan.FIELDS} stops stop seen pos crd")
"""Of a scan; the end of each fiber in the array of coordinates, that of the open one; when its reference was answered; requesters."""
scan_at = REMOTE_SCAN.at


def run_walk(address: int) -> int:
    """The firings of a scan, and one more for every further line of its coordinates."""
    node = node_at(address)
    s = scan_at(node.state)
    ref = source(node, 0)
    while True:
        if s.phase != INSIDE:
            if awaits(node, 0) == 0 or (s.pos != 0 and awaits(node, 1) == 0):
                return 0
            if s.phase == CLOSING or head_run(ref).kind == CONTROL:
                if not _close_fiber(node, s):
                    return 0
                continue
            if s.phase == BETWEEN and not _open_fiber(node, s):
                return 0
            if s.next == s.end:
                _take_reference(node, s, fire(node, s.seen, 0, 1))
                s.phase = CLOSING
                continue
        if not _ask_for_coordinates(node, s):
            return 0


@inline
def _close_fiber(node: Any, s: Any) -> bool:
    """The firing on the stop behind a fiber, or on one between fibers; whether it was possible, and another may follow."""
    if rooms(node, 0) == 0 or rooms(node, 1) == 0 or rooms(node, 2) == 0:
        return False
    ref, crds, refs, requests = source(node, 0), target(node, 0), target(node, 1), target(node, 2)
    word, end = next_word(ref), stop(0, 0)
    taken = head_run(ref).kind == CONTROL and (s.phase == BETWEEN or word != DONE)
    if taken:
        end = word if word == DONE else raised(word, 1)
        if s.phase == CLOSING:
            if low_of(word) != 0:
                node.fault = MISALIGNED
                return False
            end -= stop(1, 0)  # the fiber's own end is part of it
    t = close(node, visible(ref), requests.free)
    if taken:
        _take_reference(node, s, t)
    push(crds, CONTROL, end, 1, t)
    push(refs, CONTROL, end, 1, t)
    push(requests, CONTROL, end, 1, t)
    s.phase = BETWEEN
    if end == DONE:
        node.waits = ENDED
    return bool(end != DONE)


@inline
def _open_fiber(node: Any, s: Any) -> bool:
    """Find the fiber at the next reference; whether its positions are known."""
    ref = source(node, 0)
    s.seen = visible(ref)
    if s.pos != 0 and head_run(ref).kind != EMPTY:
        told = answer(node, requester_at(s.pos), next_word(source(node, 1)))
        if told == WAIT:
            return False
        s.seen = answered(node, s.seen, told)
    prefetch(s.lows + 8 * coming(ref))
    if not look_up(s, ref):
        node.fault = OUTSIDE
        return False
    if s.refs != 0 and s.next < s.end:
        s.stop = get_int(s.stops, next_word(ref))
    s.phase = OPENED
    return True


@inline
def _ask_for_coordinates(node: Any, s: Any) -> bool:
    """The firings on coordinates of the open fiber that one request answers; whether there were any."""
    r, crds, refs, requests = requester_at(s.crd), target(node, 0), target(node, 1), target(node, 2)
    k = min(rooms(node, 0), node.burst, s.end - s.next)
    if k == 0:
        return False
    k = min(k, rooms(node, 1))
    if k == 0:
        return False
    k = min(k, rooms(node, 2))
    if k == 0:
        return False
    if s.refs == 0:
        t, k = read(node, r, s.next, k, s.seen, requests.free)
    else:
        k = 1
        high = get_int(s.refs, s.next + 1) if s.next + 1 < s.end else s.stop
        t = read_bytes(node, r, r.stride * get_int(s.refs, s.next), r.stride * high, s.seen, requests.free)
    if t == WAIT:
        return False
    if s.phase == OPENED:
        _take_reference(node, s, t)
        s.phase = INSIDE
    push(crds, SLICE, s.crds + 8 * s.next, k, t)
    if s.refs == 0:
        push(refs, AFFINE, s.next, k, t)
    else:
        push(refs, SLICE, s.refs + 8 * s.next, k, t)
    push(requests, REPEATED, r.request, k, t)
    s.next += k
    if s.next == s.end:
        s.phase = CLOSING
    return True


@inline
def _take_reference(node: Any, s: Any, t: int) -> None:
    take(source(node, 0), 1, t)
    if s.pos != 0:
        take(source(node, 1), 1, t)


def run_give(address: int) -> int:
    """One firing a token, once what was asked for is there: the coordinates and references of a scan."""
    node = node_at(address)
    r = requester_at(scan_at(node.state).crd)
    crd, ref, requests, crds, refs = source(node, 0), source(node, 1), source(node, 2), target(node, 0), target(node, 1)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        k = min(k, awaits(node, 1))
        if k == 0:
            return 0
        k = min(k, awaits(node, 2))
        if k == 0:
            return 0
        seen, control, told = visible(crd), head_run(crd).kind == CONTROL, 0
        if not control:
            told = answer(node, r, next_word(requests))
            if told == WAIT:
                return 0
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        k = min(k, rooms(node, 1))
        if k == 0:
            return 0
        free = max(crds.free, refs.free)
        if control:
            word = head_run(crd).word
            t = close(node, seen, free)
            push(crds, CONTROL, word, 1, t)
            push(refs, CONTROL, word, 1, t)
        else:
            word = 0
            t = fire(node, answered(node, seen, told), free, k)
            _hand_on(crd, crds, k, t)
            _hand_on(ref, refs, k, t)
        take(crd, k, t)
        take(ref, k, t)
        take(requests, k, t)
        if word == DONE:
            node.waits = ENDED
            return 0


@inline
def _hand_on(reader: Any, stream: Any, k: int, t: int) -> None:
    run = head_run(reader)
    step = 8 if run.kind == SLICE else 1
    push(stream, run.kind, run.word + step * reader.offset, k, t)
