"""Scan and load at a memory that takes time: parts that ask, that fetch ahead, and that give what was asked for (docs/memory.md).

What is asked for goes on through links: the tokens, and with each the number of the request that answers it (an `N` has none).
"""

from __future__ import annotations

from typing import Any

from fuseflow.sim.engine.kernels import load, scan
from fuseflow.sim.engine.kernels.load import scalars, tiles
from fuseflow.sim.engine.kernels.scan import BETWEEN, CLOSING, INSIDE, OPENED, look_up
from fuseflow.sim.engine.memory import Record, get_int, inline, prefetch
from fuseflow.sim.engine.nodes import (
    ENDED,
    MISALIGNED,
    OUTSIDE,
    TOUCH,
    WAIT,
    awaits,
    close,
    fire,
    node_at,
    rooms,
    source,
    target,
)  # fmt: skip
from fuseflow.sim.engine.ports import answer, answered, fitting_in, may_send, read, read_bytes, requester_at, touched
from fuseflow.sim.engine.streams import (
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
    pass_on,
    push,
    raised,
    stop,
    take,
    visible,
    word_in,
)  # fmt: skip
from fuseflow.sim.memory.ports import issue, port_at

REMOTE_SCAN = Record(f"{scan.FIELDS} stops stop seen pos crd")
"""Of a scan; the end of each fiber in the array of coordinates, that of the open one; when its reference was answered; requesters."""
REMOTE_LOAD = Record(f"{load.FIELDS} seen val", load.FLOATS)
"""Of a load; when the next token was answered; the requester."""
scan_at, load_at = REMOTE_SCAN.at, REMOTE_LOAD.at
FILL_AT, VALUE_AT = REMOTE_LOAD.offset("fill"), REMOTE_LOAD.offset("value")


def run_ask(address: int) -> int:
    """One firing a reference, and one for every further line of what lies there."""
    node = node_at(address)
    r = requester_at(node.state)
    ref, link, requests = source(node, 0), target(node, 0), target(node, 1)
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        k = min(k, rooms(node, 1))
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        seen, free = visible(ref), requests.free
        if run.kind == CONTROL:
            word = run.word
            t = close(node, seen, free)
            take(ref, 1, t)
            push(link, CONTROL, word, 1, t)
            push(requests, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        if run.kind == EMPTY:
            t = fire(node, seen, free, k)
            push(requests, EMPTY, 0, k, t)
        else:
            e = word_in(run, first)
            if e < 0 or e >= r.count:
                node.fault = OUTSIDE
                return 0
            if run.kind == AFFINE:
                t, k = read(node, r, e, min(k, r.count - e), seen, free)
            else:
                t, k = _read_words(node, r, run, first, k, seen, free)
            if t == WAIT:
                return 0
            push(requests, REPEATED, r.request, k, t)
        kind, word = pass_on(run, first, link, k)
        push(link, kind, word, k, t)
        take(ref, k, t)


@inline
def _read_words(node: Any, r: Any, run: Any, first: int, k: int, seen: int, free: int) -> tuple[int, int]:
    """The same as `read` for references that do not follow each other."""
    n = 0
    if r.lines == 0 and r.next < 0:
        low, high = -(-(r.line << r.bits) // r.stride), min(fitting_in(r, r.line), r.count - 1)
        if run.kind == REPEATED:
            n = k if low <= run.word <= high else 0
        else:
            while n < k and low <= get_int(run.word, first + n) <= high:
                n += 1
    if n > 0:
        return fire(node, seen, free, n), n
    return read(node, r, word_in(run, first), 1, seen, free)


def run_fetch(address: int) -> int:
    """Ask for all lines of an array: line n in the cycle after line n - D was first needed."""
    node = node_at(address)
    r = requester_at(node.state)
    p = port_at(r.port)
    while p.issued < r.lines:
        free, needed = 0, p.issued - r.ahead
        if needed >= 0:
            if needed >= r.needed:
                node.waits = TOUCH
                return 0
            free = touched(r, needed) + 1
        if not may_send(node, r):
            return 0
        issue(r.port, r.base + (p.issued << r.bits), 1 << r.bits, 0, fire(node, 0, max(free, r.free), 1))
    node.waits = ENDED
    return 0


def run_walk(address: int) -> int:
    """The firings of a scan, and one more for every further line of its coordinates."""
    node = node_at(address)
    s = scan_at(node.state)
    r = requester_at(s.crd)
    ref, crds, refs, requests = source(node, 0), target(node, 0), target(node, 1), target(node, 2)
    while True:
        if s.phase != INSIDE:
            if awaits(node, 0) == 0 or (s.pos != 0 and awaits(node, 1) == 0):
                return 0
            control = head_run(ref).kind == CONTROL
            if control or s.phase == CLOSING:
                if rooms(node, 0) == 0 or rooms(node, 1) == 0 or rooms(node, 2) == 0:
                    return 0
                word = next_word(ref)
                end = stop(0, 0)
                taken = control and (s.phase == BETWEEN or word != DONE)
                if taken:
                    end = word if word == DONE else raised(word, 1)
                    if s.phase == CLOSING:
                        if low_of(word) != 0:
                            node.fault = MISALIGNED
                            return 0
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
                    return 0
                continue
            if s.phase == BETWEEN:
                s.seen = visible(ref)
                if s.pos != 0 and head_run(ref).kind != EMPTY:
                    told = answer(node, requester_at(s.pos), next_word(source(node, 1)))
                    if told == WAIT:
                        return 0
                    s.seen = answered(node, s.seen, told)
                prefetch(s.lows + 8 * coming(ref))
                if not look_up(s, ref):
                    node.fault = OUTSIDE
                    return 0
                if s.refs != 0 and s.next < s.end:
                    s.stop = get_int(s.stops, next_word(ref))
                s.phase = OPENED
            if s.next == s.end:
                _take_reference(node, s, fire(node, s.seen, 0, 1))
                s.phase = CLOSING
                continue
        k = min(rooms(node, 0), node.burst, s.end - s.next)
        if k == 0:
            return 0
        k = min(k, rooms(node, 1))
        if k == 0:
            return 0
        k = min(k, rooms(node, 2))
        if k == 0:
            return 0
        if s.refs == 0:
            t, k = read(node, r, s.next, k, s.seen, requests.free)
        else:
            k = 1
            high = get_int(s.refs, s.next + 1) if s.next + 1 < s.end else s.stop
            t = read_bytes(node, r, r.stride * get_int(s.refs, s.next), r.stride * high, s.seen, requests.free)
        if t == WAIT:
            return 0
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


def run_load_answered(address: int) -> int:
    """The same of a load: its values."""
    node = node_at(address)
    s = load_at(node.state)
    ref, out = source(node, 0), target(node, 0)
    while True:
        k = _answered(node, s)
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        seen = s.seen
        if run.kind == CONTROL:
            word = run.word
            t = close(node, seen, out.free)
            take(ref, 1, t)
            take(source(node, 1), 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        kind, word = scalars(node, s, run, first, k, out, node.state + FILL_AT, node.state + VALUE_AT)
        t = fire(node, seen, out.free, k)
        take(ref, k, t)
        take(source(node, 1), k, t)
        push(out, kind, word, k, t)


def run_load_tiles_answered(address: int) -> int:
    """The same where a value is a tile."""
    node = node_at(address)
    s = load_at(node.state)
    ref, out = source(node, 0), target(node, 0)
    while True:
        k = _answered(node, s)
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        seen = s.seen
        if run.kind == CONTROL:
            word = run.word
            t = close(node, seen, out.free)
            take(ref, 1, t)
            take(source(node, 1), 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        kind, word = tiles(node, s, run, first, k, out)
        t = fire(node, seen, out.free, k)
        take(ref, k, t)
        take(source(node, 1), k, t)
        push(out, kind, word, k, t)


@inline
def _answered(node: Any, s: Any) -> int:
    """How many of the next tokens have one answer, known and noted in `s.seen`, and room."""
    k = min(awaits(node, 0), node.burst)
    if k == 0:
        return 0
    k = min(k, awaits(node, 1))
    if k == 0:
        return 0
    told = 0
    if head_run(source(node, 1)).kind == REPEATED:
        told = answer(node, requester_at(s.val), next_word(source(node, 1)))
        if told == WAIT:
            return 0
    k = min(k, rooms(node, 0))
    if k > 0:
        s.seen = answered(node, visible(source(node, 0)), told)
    return k
