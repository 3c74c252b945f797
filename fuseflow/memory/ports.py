"""The ports of a memory: the requests of the nodes of a graph, or of a trace, and the cycles of their answers. They are the same
for every model.

A port is a ring of requests in the order of issue. `issue` appends a request, `next_port` (`sending.py`) yields the requests to a
model in the order in which they arrive, and `settle` makes answers visible, in order. All are plain functions of addresses, for
kernels to call. Cycles at ports are cycles of the accelerator; a memory with another clock converts them in `arrival` and
`settle`.

A port that reads may have a reuse buffer (`reuse_buffer.py`). A request for a line in it is not sent: its answer comes
`HIT_CYCLES` later, or with the answer before it if that comes later.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.histogram import count_latency
from fuseflow.memory.reuse_buffer import look_up
from fuseflow.native.bitsets import SHIFT, add, discard, next_in_word
from fuseflow.native.records import Record, get_int, inline, outline

FOREVER = 1 << 60
HIT_CYCLES = 1
"""The cycles from a request for a line in the reuse buffer to its answer."""
HIT = 2
"""The value of `write` in a request for a line that is in the reuse buffer."""

REQUEST = Record(
    "address bytes write "
    "cycle left "  # of arrival; transactions without an answer
    "accepted done "  # the latest of its transactions, memory cycles
    "visible"  # the cycle from which the port sees the answer; -1 while it is open
)
PORT = Record(
    "ring mask "
    "issued sent answered released "  # requests so far; those before `released` may be overwritten
    "due "  # cycle of the first request that was not sent
    "part "  # transactions of it that were sent nevertheless
    "last "  # cycle of the last answer
    "timeless "  # requests are answered at once: cycles are not used
    "number unsent finished "  # of the port; sets of ports: with a request to send; with a request finished in this window
    "bytes transactions latency "  # requested; moved; from issue to answer, summed over moved requests
    "buffer hits "  # address of the reuse buffer, or 0; requests for lines in it
    "way"  # the cycles that a request takes to the memory, and its answer back
)
MEMORY = Record(
    "ports count "
    "now "  # the end of the last window
    "open "  # requests that were sent and are not answered
    "words unsent finished "  # sets of ports, of `words` words, as in `PORT`
    "senders cycles cycle index alone next "  # whose requests are being sent: see `sending.py`
    "numerator denominator "  # memory cycles in accelerator cycles
    "delay "  # from acceptance, or the end of a write, to the earliest answer
    "model "  # address of the model's own state
    "latencies"  # histogram of the latencies of reads
)
REQUEST_SIZE, PORT_SIZE = REQUEST.size, PORT.size
FULL, LATE = -1, -1
request_at, port_at, memory_at = REQUEST.at, PORT.at, MEMORY.at


@inline
def request_of(port: int, number: int) -> int:
    """Return the address of the record of a request of the port at an address."""
    p = port_at(port)
    request: int = p.ring + REQUEST_SIZE * (number & p.mask)
    return request


@inline
def issue_cycle(port: int, number: int) -> int:
    """Return the cycle in which a request of the port at an address was made."""
    cycle: int = request_at(request_of(port, number)).cycle - port_at(port).way
    return cycle


@inline
def issue(port: int, address: int, size: int, write: int, cycle: int) -> int:
    """Request `size` bytes, 1 or more, at the port at an address, and return the number of the request, or FULL if the ring has
    no room. The request arrives when its way is over. Cycles must not decrease, and must not be before the end of the last window."""
    p = port_at(port)
    number: int = p.issued
    if number - p.released > p.mask:
        return FULL
    r = request_at(request_of(port, number))
    r.address, r.bytes, r.write, r.cycle = address, size, write, cycle + p.way
    r.left, r.accepted, r.done, r.visible = 0, 0, 0, -1
    p.issued = number + 1
    p.bytes += size
    if p.timeless != 0:
        r.visible = cycle
        p.sent = p.answered = p.issued
    elif p.buffer != 0 and look_up(p.buffer, address // size):
        _hit(port, number)
    elif p.sent == number:
        p.due = r.cycle
        add(p.unsent, p.number)
    return number


@outline
def _hit(port: int, number: int) -> None:
    """Mark a request as one for a line in the reuse buffer. It is answered at once, if all earlier requests of the port are."""
    p, r = port_at(port), request_at(request_of(port, number))
    r.write = HIT
    p.hits += 1
    if p.sent == number:
        p.sent = p.issued
        if p.answered == number:
            _answer_hit(p, r)


@inline
def _answer_hit(p: Any, r: Any) -> None:
    """Answer the request `r`, for a line in the reuse buffer, after all earlier requests of the port `p`."""
    p.last = max(p.last, r.cycle - p.way + HIT_CYCLES)
    p.answered += 1
    r.visible = p.last


@inline
def arrival(memory: int, cycle: int) -> int:
    """Return the memory cycle that corresponds to a cycle of the accelerator. Both clocks start together."""
    m = memory_at(memory)
    return cycle if m.numerator == m.denominator else cycle * m.numerator // m.denominator


@inline
def _at_port(m: Any, cycle: int) -> int:
    """Return the first cycle of the accelerator that is not before memory cycle `cycle`."""
    return cycle if m.numerator == m.denominator else (cycle * m.denominator + m.numerator - 1) // m.numerator


@inline
def finish(port: int, number: int, accepted: int, done: int) -> None:
    """Note that one transaction of a request of a port has been accepted and completed at these memory cycles."""
    r = request_at(request_of(port, number))
    r.left -= 1
    r.accepted = max(r.accepted, accepted)
    r.done = max(r.done, done)
    if r.left == 0:
        p = port_at(port)
        add(p.finished, p.number)


@inline
def settle(memory: int, until: int) -> None:
    """Set the time of a memory to the cycle `until`, and let each port see the answers that are known by then, in the order of its
    requests. The nodes of a graph and its memory run by turns, some cycles at a time. No turn has more cycles than an answer takes at
    least, so an answer that a node sees in one turn was known before that turn."""
    m = memory_at(memory)
    m.now = max(m.now, until)
    for k in range(m.words):
        bit = -1
        while True:
            bit = next_in_word(get_int(m.finished, k), bit)
            if bit < 0:
                break
            _answer(m, (k << SHIFT) + bit)


@inline
def _answer(m: Any, k: int) -> None:
    """Make the known answers of port k visible, in order, up to the first request that is not finished."""
    port = m.ports + PORT_SIZE * k
    p = port_at(port)
    while p.answered < p.sent:
        r = request_at(request_of(port, p.answered))
        if r.left > 0:
            break
        if r.write == HIT:
            _answer_hit(p, r)
            continue
        visible = r.done + m.delay if r.write != 0 else max(r.done, r.accepted + m.delay)
        p.last = max(p.last, _at_port(m, visible) + p.way)
        latency = p.last - r.cycle + p.way
        p.latency += latency
        if r.write == 0:
            count_latency(m.latencies, latency)
        p.answered += 1
        m.open -= 1
        r.visible = p.last
    discard(m.finished, k)
