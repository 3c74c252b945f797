"""The requests of all ports are sent to a model in the order in which they arrive.

Within cycle c, port c mod P comes first, then upwards in a circle, so the order does not depend on the windows. Ports are put into one
set for each of the next `SPAN` cycles, by the cycle of their first request that was not sent. So a cycle costs its requests and nothing
for other ports.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.ports import FOREVER, HIT, LATE, PORT_SIZE, memory_at, port_at, request_at, request_of
from fuseflow.native.bitsets import SHIFT, add, discard, next_in_word, next_member
from fuseflow.native.records import get_int, inline, outline, set_int, trailing_zeros

SPAN = 32
"""The number of cycles for which there are sets, more than a window of a simulation has."""


@inline
def start_sending(memory: int, until: int) -> int:
    """Prepare `next_port` for a window that ends at cycle `until`. Returns 0, or LATE if a request is of an earlier window."""
    m = memory_at(memory)
    if m.cycles != 0:  # of a window that was left for lack of room
        _forget_senders(memory)
    m.cycle, m.next = m.now, m.now
    return LATE if _begin_span(m, until) < m.now else 0


@inline
def next_port(memory: int, until: int) -> int:
    """Return the address of the port whose first unsent request arrives next, if that is before cycle `until`, and else 0."""
    m = memory_at(memory)
    if m.index >= 0 and port_at(_port(m)).due < m.alone:  # no other port is next
        return _port(m)
    while True:
        while m.cycles != 0:
            k = trailing_zeros(m.cycles)
            index = _next_sender(m, k)
            if index < 0:
                m.cycles &= m.cycles - 1
                m.index = -1
                continue
            m.index = index
            due = port_at(_port(m)).due
            if due == m.cycle + k:
                m.alone = _others_due(m, k, until)
                return _port(m)
            discard(_senders(m, k), index)
            _enlist(m, index, due, until)
        if m.next >= until:
            return 0
        _begin_span(m, until)


@inline
def _senders(m: Any, k: int) -> int:
    """Return the address of the set of ports whose first unsent request arrives k cycles after the begin of the span."""
    senders: int = m.senders + 8 * m.words * k
    return senders


@inline
def _next_sender(m: Any, k: int) -> int:
    """Return the next port, in circular order, of the set of cycle k of the span, or -1 if the set is empty."""
    start = m.index if m.index >= 0 else (m.cycle + k) % m.count
    index = next_member(_senders(m, k), m.words, start)
    return index if index >= 0 else next_member(_senders(m, k), m.words, 0)


@inline
def _port(m: Any) -> int:
    """Return the address of port `m.index`, whose turn it is."""
    port: int = m.ports + PORT_SIZE * m.index
    return port


@inline
def _others_due(m: Any, k: int, until: int) -> int:
    """Return a cycle, after cycle k of the span, before which port `m.index` alone has requests once those of cycle k are sent.
    If it has requests in cycle k, these come one after the other."""
    word, later = get_int(_senders(m, k), m.index >> SHIFT), m.cycles & -2 << k
    cycle: int = m.cycle + k + 1
    if m.words == 1 and word & (word - 1) == 0:  # no other port in cycle k
        cycle = min(until, m.next) if later == 0 else m.cycle + trailing_zeros(later)
    return cycle


@inline
def _enlist(m: Any, index: int, due: int, until: int) -> None:
    """Put port `index` into the set of the cycle `due` of its first unsent request, or note that cycle if it is after the span or
    window."""
    if due >= until or due >= m.cycle + SPAN:
        m.next = min(m.next, due)
    else:
        add(_senders(m, due - m.cycle), index)
        m.cycles |= 1 << (due - m.cycle)


@inline
def _begin_span(m: Any, until: int) -> int:
    """Begin a span at `m.next`, the first cycle with a request after the last span. Return the first cycle of all unsent
    requests, which must not be earlier than the window."""
    m.cycle, m.next, m.index = m.next, FOREVER, -1
    first = FOREVER
    for word in range(m.words):
        bit = -1
        while True:
            bit = next_in_word(get_int(m.unsent, word), bit)
            if bit < 0:
                break
            index = (word << SHIFT) + bit
            due = port_at(m.ports + PORT_SIZE * index).due
            first = min(first, due)
            if due >= m.cycle:
                _enlist(m, index, due, until)
    return first


@outline
def _forget_senders(memory: int) -> None:
    m = memory_at(memory)
    for k in range(SPAN * m.words):
        set_int(m.senders, k, 0)
    m.cycles = 0


@inline
def head_of(port: int) -> int:
    """Return the address of the first unsent request of the port at an address."""
    return request_of(port, port_at(port).sent)


@inline
def mark_sent(memory: int, port: int) -> None:
    """Mark the first unsent request of a port as sent. Requests after it for lines in the reuse buffer are skipped."""
    p = port_at(port)
    memory_at(memory).open += 1
    p.sent += 1
    p.part = 0
    if p.buffer != 0:
        while p.sent < p.issued and request_at(request_of(port, p.sent)).write == HIT:
            p.sent += 1
    if p.sent < p.issued:
        p.due = request_at(request_of(port, p.sent)).cycle
    else:
        p.due = FOREVER
        discard(p.unsent, p.number)


@inline
def next_request(memory: int) -> int:
    """Return the cycle of the first unsent request of all ports, or FOREVER if there is none."""
    m, due = memory_at(memory), FOREVER
    for word in range(m.words):
        bit = -1
        while True:
            bit = next_in_word(get_int(m.unsent, word), bit)
            if bit < 0:
                break
            due = min(due, port_at(m.ports + PORT_SIZE * ((word << SHIFT) + bit)).due)
    return due
