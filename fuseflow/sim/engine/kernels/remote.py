"""These kernels request data from a memory that takes time: the data at references, or ahead of use all lines of an array
(docs/explanation/memory.md).

They emit two streams on links: the tokens, and for each token the number of its request (none for an `N`). A gate lets these tokens
through once the answers to their requests are there. A `scan` has a part that walks fibers and requests coordinates, and a part that
emits the coordinates.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.ports import port_at
from fuseflow.native.kernel_library import specialize
from fuseflow.native.records import Record, get_int, get_int32, inline, prefetch, set_int
from fuseflow.sim.engine.kernels.levels import CLOSING, EMITTING, FIELDS, IDLE, OPENING, fiber_end, look_up_fiber
from fuseflow.sim.engine.memory_ports import (
    answer_cycle,
    issue_line,
    last_element_in,
    loaded_cycle,
    may_send,
    read_bits,
    read_elements,
    requester_at,
    wait_for_answer,
)
from fuseflow.sim.engine.node_firing import (
    ENDED,
    OUTSIDE,
    TOUCH,
    WAIT,
    close,
    common_room,
    common_tokens,
    fire,
    node_at,
    pass_control,
    push_everywhere,
    room_at,
    source,
    target,
    tokens_at,
)
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    SLICE,
    head_run,
    is_control,
    next_word,
    pass_on,
    push,
    scratch_address,
    take,
    upcoming_word,
    visible,
    word_in,
)


def run_ask(address: int) -> int:
    """Run the part at an address: fire once for each reference, and once for every further line of its data."""
    node = node_at(address)
    r = requester_at(node.state)
    ref, link, requests = source(node, 0), target(node, 0), target(node, 1)
    while True:
        k = common_room(node, 2, common_tokens(node, 1))
        if k == 0:
            return 0
        run, first = head_run(ref), ref.offset
        visible_at, free = visible(ref), requests.free
        if run.kind == CONTROL:
            if not pass_control(node, run.word, visible_at, free):
                return 0
            continue
        if run.kind == EMPTY:
            t = fire(node, visible_at, free, k)
            push(requests, EMPTY, 0, k, t)
        else:
            e = word_in(run, first)
            if e < 0 or e >= r.count:
                node.fault = OUTSIDE
                return 0
            if run.kind == AFFINE:
                t, k = read_elements(node, r, e, min(k, r.count - e), visible_at, free)
            else:
                t, k = _read_words(node, r, run, first, k, visible_at, free)
            if t == WAIT:
                return 0
            push(requests, REPEATED, r.request, k, t)
        kind, word = pass_on(run, first, link, k)
        push(link, kind, word, k, t)
        take(ref, k, t)


@inline
def _read_words(node: Any, r: Any, run: Any, first: int, k: int, visible_at: int, free: int) -> tuple[int, int]:
    """Request elements as `read_elements` does, at the next k references of `run` from `first` on, which need not be consecutive.
    Return the cycle and the number of references; `r` is the requester."""
    n = 0
    if r.lines == 0 and r.next < 0:
        low, high = -(-(r.line << r.bits) // r.stride), min(last_element_in(r, r.line), r.count - 1)
        if run.kind == REPEATED:
            n = k if low <= run.word <= high else 0
        else:
            while n < k and low <= get_int(run.word, first + n) <= high:
                n += 1
    if n > 0:
        return fire(node, visible_at, free, n), n
    return read_elements(node, r, word_in(run, first), 1, visible_at, free)


def run_fetch(address: int) -> int:
    """Request all lines of an array: line n in the cycle after line n - D was first needed, where D is the number of lines that
    are fetched ahead. None is requested before the array is loaded into the scratchpad."""
    node = node_at(address)
    r = requester_at(node.state)
    p = port_at(r.port)
    while p.issued < r.lines:
        free, needed = 0, p.issued - r.ahead
        if needed >= 0:
            if needed >= r.needed:
                node.waits = TOUCH
                return 0
            free = get_int(r.touched, needed) + 1
        loaded = loaded_cycle(node, r.loads) if p.issued == 0 else 0
        if loaded == WAIT or not may_send(node, r):
            return 0
        t = fire(node, loaded, max(free, r.free), 1)
        issue_line(r, p.issued, 0, t)
    node.waits = ENDED
    return 0


def run_preload(address: int) -> int:
    """Request, through one of `banks` ports, its lines of a preloaded array: line n at port n, and every `banks`-th line after it."""
    return _move_lines(address, 0)


def run_store(address: int) -> int:
    """Write, through one of `banks` ports, its lines of an array from the scratchpad to the memory: port number n writes line n and
    every `banks`-th line after it."""
    return _move_lines(address, 1)


@inline
def _move_lines(address: int, write: int) -> int:
    """Request (`write`: 1 to write) the lines of one of `banks` ports, as soon as it may."""
    node = node_at(address)
    r = requester_at(node.state)
    p = port_at(r.port)
    while r.bank + p.issued * r.banks < r.lines:
        if not may_send(node, r):
            return 0
        t = fire(node, 0, r.free, 1)
        issue_line(r, r.bank + p.issued * r.banks, write, t)
    node.waits = ENDED
    return 0


GATE = Record("array asked entries kept")
"""`array` is the address of the requester of a gate; `asked` counts the tokens with a request. The gate consumes the first
`entries` tokens (of a kept level), and `kept` counts them."""
gate_at = GATE.at


def run_gate(address: int) -> int:
    """Run the gate: fire once for each token of input 0, together with the number of its request at input 1."""
    node = node_at(address)
    s = gate_at(node.state)
    tokens, requests, out = source(node, 0), source(node, 1), target(node, 0)
    while True:
        k = common_tokens(node, 2)
        if k == 0:
            return 0
        visible_at, answer, has_request = max(visible(tokens), visible(requests)), 0, 0
        if head_run(requests).kind == REPEATED:
            answer = answer_cycle(node, requester_at(s.array), next_word(requests))
            if answer == WAIT:
                return 0
            has_request = 1
        if s.kept < s.entries:
            k = min(k, s.entries - s.kept)
            t = fire(node, wait_for_answer(node, visible_at, answer), 0, k)
            take(tokens, k, t)
            take(requests, k, t)
            s.kept += k
            s.asked += has_request * k
            continue
        k = min(k, room_at(node, 0))
        if k == 0:
            return 0
        visible_at = wait_for_answer(node, visible_at, answer)
        run = head_run(tokens)
        if run.kind == CONTROL:
            if not pass_control(node, run.word, visible_at, out.free):
                return 0
            continue
        kind, word = pass_on(run, tokens.offset, out, k)
        t = fire(node, visible_at, out.free, k)
        take(tokens, k, t)
        take(requests, k, t)
        push(out, kind, word, k, t)
        s.asked += has_request * k


REMOTE_SCAN = Record(f"{FIELDS} stops stop visible_at pos crd")
"""To the state of a scan this adds the end of each fiber in the array of coordinates (`stops`) and the end of the open fiber
(`stop`), the cycle in which its reference and the answer are visible, and the requesters of positions and coordinates."""
walk_at = REMOTE_SCAN.at


def run_walk(address: int) -> int:
    """Run the walking part: fire as a `scan` does, and once more for every further line of the coordinates."""
    node = node_at(address)
    s = walk_at(node.state)
    ref = source(node, 0)
    while True:
        if s.phase != EMITTING:
            if tokens_at(node, 0) == 0 or (s.pos != 0 and tokens_at(node, 1) == 0):
                return 0
            if s.phase == CLOSING or head_run(ref).kind == CONTROL:
                if not _close_fiber(node, s):
                    return 0
                continue
            if s.phase == IDLE and not _open_fiber(node, s):
                return 0
            if s.next == s.end:
                _take_reference(node, s, fire(node, s.visible_at, 0, 1))
                s.phase = CLOSING
                continue
        if not _ask_for_coordinates(node, s):
            return 0


@inline
def _close_fiber(node: Any, s: Any) -> bool:
    """Fire on the stop behind a fiber, or on a stop between fibers. Return False without room, after a fault, and after `D`."""
    if common_room(node, 3, 1) == 0:
        return False
    end, takes_stop = fiber_end(node, s)
    if node.fault != 0:
        return False
    t = close(node, visible(source(node, 0)), target(node, 2).free)
    if takes_stop:
        _take_reference(node, s, t)
    push_everywhere(node, end, t)
    s.phase = IDLE
    if end == DONE:
        node.waits = ENDED
    return bool(end != DONE)


@inline
def _open_fiber(node: Any, s: Any) -> bool:
    """Find the fiber at the next reference. Return False if the answer with its positions has not come, or after a fault."""
    ref = source(node, 0)
    s.visible_at = visible(ref)
    if s.pos != 0 and head_run(ref).kind != EMPTY:
        answer = answer_cycle(node, requester_at(s.pos), next_word(source(node, 1)))
        if answer == WAIT:
            return False
        s.visible_at = wait_for_answer(node, s.visible_at, answer)
    prefetch(s.lows + 8 * upcoming_word(ref))
    if not look_up_fiber(s, ref):
        node.fault = OUTSIDE
        return False
    if s.refs != 0 and s.next < s.end:
        s.stop = get_int(s.stops, next_word(ref))
    s.phase = OPENING
    return True


@inline
def _ask_for_coordinates(node: Any, s: Any) -> bool:
    """Fire on the next coordinates of the open fiber that one request covers, and return whether that was possible."""
    r, crds, refs, requests = requester_at(s.crd), target(node, 0), target(node, 1), target(node, 2)
    k = common_room(node, 3, min(node.burst, s.end - s.next))
    if k == 0:
        return False
    if s.refs == 0:
        t, k = read_elements(node, r, s.next, k, s.visible_at, requests.free)
    else:
        k = 1
        high = get_int(s.refs, s.next + 1) if s.next + 1 < s.end else s.stop
        t = read_bits(node, r, r.stride * get_int(s.refs, s.next), r.stride * high, s.visible_at, requests.free, 1)
    if t == WAIT:
        return False
    if s.phase == OPENING:
        _take_reference(node, s, t)
        s.phase = EMITTING
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
    """Run the emitting part of a scan: fire for each token once its request is answered, and emit coordinates and references."""
    node = node_at(address)
    s = walk_at(node.state)
    crd, requests, crds, refs = source(node, 0), source(node, 2), target(node, 0), target(node, 1)
    while True:
        k = common_tokens(node, 3)
        if k == 0:
            return 0
        visible_at, control, answer = visible(crd), is_control(crd), 0
        if not control:
            answer = answer_cycle(node, requester_at(s.crd), next_word(requests))
            if answer == WAIT:
                return 0
        k = common_room(node, 2, k)
        if k == 0:
            return 0
        free = max(crds.free, refs.free)
        if control:
            if not pass_control(node, head_run(crd).word, visible_at, free):
                return 0
            continue
        t = fire(node, wait_for_answer(node, visible_at, answer), free, k)
        give_coordinates(node, s, k, t)
        for q in range(3):
            take(source(node, q), k, t)


@inline
def give_coordinates(node: Any, s: Any, k: int, t: int) -> None:
    """Emit the next k coordinates and references, which stay where they are."""
    for q in range(2):
        reader = source(node, q)
        run = head_run(reader)
        step = 8 if run.kind == SLICE else 1
        push(target(node, q), run.kind, run.word + step * reader.offset, k, t)


def give_narrow_coordinates(node: Any, s: Any, k: int, t: int) -> None:
    """Emit the next k coordinates, which are stored in 32 bits, and their references. The reference of a coordinate is its position,
    so the stream of coordinates is read only for the cycles of its tokens.

    Kernels read words of 64 bits. Widening a whole level would take 8 bytes an entry, twice its size. So only emitted coordinates
    are widened, into the ring of the stream, which is a few times as large as its FIFOs.
    """
    position, into = next_word(source(node, 1)), scratch_address(target(node, 0))
    for i in range(k):
        set_int(into, i, get_int32(s.crds, position + i))
    push(target(node, 0), SCRATCH, into, k, t)
    push(target(node, 1), AFFINE, position, k, t)


run_give_narrow = specialize(run_give, "run_give_narrow", give_coordinates=inline(give_narrow_coordinates))
