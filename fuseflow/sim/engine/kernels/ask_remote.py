"""These kernels request data from a memory that takes time: the data at references, or ahead of use all lines of an array
(docs/explanation/memory.md).

They emit two streams on links: the tokens, and for each token the number of its request (none for an `N`). A gate lets these tokens
through once the answers to their requests are there.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.ports import port_at
from fuseflow.native.records import Record, get_int, inline
from fuseflow.sim.engine.memory_ports import (
    answer_cycle,
    issue_line,
    last_element_in,
    loaded_cycle,
    may_send,
    read_elements,
    requester_at,
    wait_for_answer,
)
from fuseflow.sim.engine.node_firing import (
    ENDED,
    OUTSIDE,
    TOUCH,
    WAIT,
    common_room,
    common_tokens,
    fire,
    node_at,
    pass_control,
    room_at,
    source,
    target,
)
from fuseflow.sim.engine.stream_rings import (
    AFFINE,
    CONTROL,
    EMPTY,
    REPEATED,
    head_run,
    next_word,
    pass_on,
    push,
    take,
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
    """Request, through one of `banks` ports, its lines of a preloaded array: port number n requests line n and every `banks`-th
    line after it."""
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
state_at = GATE.at


def run_gate(address: int) -> int:
    """Run the gate: fire once for each token of input 0, together with the number of its request at input 1."""
    node = node_at(address)
    s = state_at(node.state)
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
