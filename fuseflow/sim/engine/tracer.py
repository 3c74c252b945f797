"""What a traced run notes: every firing with what it waited for last, and the tokens that it took and gave.

A kernel calls `note` through its node (`nodes.fire`), in traced runs only. What made the firing as late as it is follows from the heads of
the inputs, which are not taken yet, and from the pops that free the slots. Where several inputs could be it, those that the firing then
took decide, or that it always looks at: `settle` sees them at the next firing, or after the run.
"""

from __future__ import annotations

from typing import Any

from fuseflow.sim.engine.memory_ports import requester_at
from fuseflow.sim.engine.node_records import WAIT, node_at, source, target
from fuseflow.sim.engine.stream_rings import (
    ELEMENT,
    POPS_SIZE,
    READER_SIZE,
    STREAM_SIZE,
    behind,
    is_control,
    left,
    pops_at,
    reader_at,
    stream_at,
    visible,
)
from fuseflow.sim.events.causes import INSIDE, MEMORY, OWN, SLOT, START, TOKEN
from fuseflow.sim.memory.ports import port_at, request_at, request_of
from fuseflow.sim.native.records import Record, get_int, inline, set_int

TRACER = Record(
    "note "  # address of the function: `nodes.fire` calls it
    "node part buffer "
    "marks candidates "  # by input, then by output: tokens so far; whether, and how, it may be what a firing waited for
    "relays closings "  # by output: the track of stops that wait for values, or 0; firings on stops so far
    "always unless turns "  # by input: whether every firing looks at it, if input `unless` - 1 is not taken; whether it is a merge
    "behind "  # whether the token behind the head may be looked at
    "fetches answers sends positions "  # requesters: of what is fetched ahead, whose answer is awaited, through which lines are sent
    "passed "  # the cycle from which a token was there that was taken without a firing
    "time span "  # of the last firings
    "entry pending"  # addresses of the last event that may grow, of one whose cause is not settled; 0: none
)
BUFFER = Record("events count limit lost start end flows")
"""`lost`: events for which there was no room; only those in cycles `start` to `end` are noted; whether tokens are noted, too."""
EVENT = Record("part time count step cause detail back")
"""`part` POPPED or PUSHED: so many tokens taken from the reader, given to the stream at address `detail`, in `step` cycles. `detail` of
a firing: the address of a reader or a port."""
POPPED, PUSHED = -1, -2
STOPPED = 8
"""In place of the cause TOKEN: a stop that may have waited for the value before it. It has an event of its own, in the track of the relay,
with the cause RELAYED: of what the part `detail` did."""
RELAYED = 9
RELAYS = -1  # of a candidate: it is such a stop; else 1 more than the lag of the value
TRACER_SIZE, EVENT_SIZE = TRACER.size, EVENT.size
tracer_at, buffer_at, event_at = TRACER.at, BUFFER.at, EVENT.at


def note(address: int, t: int, k: int, seen: int, free: int) -> int:
    """k firings from cycle t on, which looked at tokens visible by `seen` and filled slots free from `free` on. None: a token was taken
    without a firing."""
    tracer = tracer_at(address)
    node = node_at(tracer.node)
    buffer = buffer_at(tracer.buffer)
    _settle(tracer, node, buffer)
    tracer.time, tracer.span = t, max(k, 1)
    if k == 0:
        if seen > node.last + 1:
            tracer.passed = seen
        return 0
    if t + k <= buffer.start or t >= buffer.end:
        tracer.entry = 0
        return 0
    own = node.firings > 0 and t == node.ready and tracer.passed != t
    if own and tracer.entry != 0:
        event = event_at(tracer.entry)
        gap = t - node.last
        if (k == 1 or gap == 1) and (event.count == 1 or event.step == gap):
            event.step = gap
            event.count += k
            return 0
    made = _append(buffer)
    tracer.entry = made
    if made == 0:
        return 0
    event = event_at(made)
    event.part, event.time, event.count, event.step, event.back, event.detail = tracer.part, t, k, 1, 0, 0
    if own:
        event.cause, event.back = OWN, node.last
    elif t == node.ready and tracer.passed == t:
        reader = source(node, 0)
        event.cause = TOKEN if stream_at(reader.stream).lag == 0 else STOPPED
        event.back, event.detail = t - reader.latency - reader.delay, node.inputs
    elif t == 0:
        event.cause = START
    elif seen == t:
        _token(tracer, node, event, made, seen)
    else:
        _slot(tracer, node, event, made, free)
    return 0


@inline
def _append(buffer: Any) -> int:
    """The address of a new event; 0 if there is no room."""
    if buffer.count == buffer.limit:
        buffer.lost += 1
        return 0
    buffer.count += 1
    found: int = buffer.events + EVENT_SIZE * (buffer.count - 1)
    return found


@inline
def _token(tracer: Any, node: Any, event: Any, made: int, seen: int) -> None:
    """The token that was visible last, or else the answer."""
    event.cause = TOKEN
    found = 0
    for q in range(node.arity):
        reader = source(node, q)
        here = left(reader) > 0 and visible(reader) == seen
        set_int(tracer.candidates, q, _origin(reader, is_control(reader)) if here else 0)
        found += here
    if found == 0 and tracer.behind != 0:
        for q in range(node.arity):
            reader = source(node, q)
            later, word = (WAIT, 0) if left(reader) == 0 else behind(reader)
            set_int(tracer.candidates, q, _origin(reader, word != ELEMENT) if later == seen else 0)
            found += later == seen
    if found > 0:
        tracer.pending = made
        return
    event.back = -1
    if tracer.answers != 0:
        r = requester_at(tracer.answers)
        event.cause, event.detail = MEMORY, r.port
        event.back = request_at(request_of(r.port, r.wanted)).cycle


@inline
def _origin(reader: Any, control: bool) -> int:
    """How a token that may be waited for came to be visible: see RELAYS."""
    lag = stream_at(reader.stream).lag
    return RELAYS if control and lag != 0 else 1 + lag


@inline
def _slot(tracer: Any, node: Any, event: Any, made: int, free: int) -> None:
    """The slot that was free last, or else the answer that allows another request, or another part of the node."""
    event.cause = SLOT
    found = 0
    for q in range(node.ports):
        stream, at = target(node, q), 0
        for i in range(stream.count):
            address = get_int(stream.readers, i)
            if at == 0 and _freed(reader_at(address), stream.pushed) == free:
                at = address
        set_int(tracer.candidates, node.arity + q, at)
        found += at != 0
    if found > 0:
        tracer.pending = made
        return
    event.cause, event.back = INSIDE, free - 1
    if tracer.fetches != 0:
        r = requester_at(tracer.fetches)
        needed = port_at(r.port).issued - r.ahead
        if needed >= 0 and get_int(r.touched, needed) + 1 == free:
            return
    _credit(tracer.sends, event, free)
    if event.cause == INSIDE:
        _credit(tracer.positions, event, free)


@inline
def _freed(reader: Any, pushed: int) -> int:
    """From when the slot of the next token is free; -1 if it was never filled, or is not free yet."""
    due = pushed - reader.depth
    if reader.depth == 0 or due < 0 or due >= reader.popped:
        return -1
    cursor = reader.slot_cursor
    while cursor + 1 < reader.noted and pops_at(reader.history + POPS_SIZE * ((cursor + 1) & reader.history_mask)).first <= due:
        cursor += 1
    entry = pops_at(reader.history + POPS_SIZE * (cursor & reader.history_mask))
    found: int = entry.time + (due - entry.first) * entry.step + 1
    return found


@inline
def _credit(requester: int, event: Any, free: int) -> None:
    if requester == 0:
        return
    r = requester_at(requester)
    p = port_at(r.port)
    credit = p.issued - r.outstanding
    if (r.next >= 0 or r.lines != 0) and credit >= 0 and request_at(request_of(r.port, credit)).visible == free:
        event.cause, event.detail, event.back = MEMORY, r.port, request_at(request_of(r.port, credit)).cycle


@inline
def _settle(tracer: Any, node: Any, buffer: Any) -> None:
    """What the last firings took and gave: note it, and which of several they waited for."""
    if tracer.pending != 0:
        event = event_at(tracer.pending)
        if event.cause == TOKEN:
            q = _looked_at(tracer, node)
            reader = source(node, q)
            event.detail, event.back = node.inputs + READER_SIZE * q, event.time - reader.latency - reader.delay
            how = get_int(tracer.candidates, q)
            if how == RELAYS:
                event.cause = STOPPED
            else:
                event.back -= how - 1
        else:
            event.detail, event.back = _filled(tracer, node), event.time - 1
        tracer.pending = 0
    for q in range(node.arity):
        taken = source(node, q).popped - get_int(tracer.marks, q)
        if taken > 0 and buffer.flows != 0 and tracer.time < buffer.end:
            _flow(tracer, buffer, POPPED, taken, node.inputs + READER_SIZE * q, 0)
        set_int(tracer.marks, q, source(node, q).popped)
    closed = node.closings > tracer.closings
    tracer.closings = node.closings
    for q in range(node.ports):
        given = target(node, q).pushed - get_int(tracer.marks, node.arity + q)
        if given > 0 and buffer.flows != 0 and tracer.time < buffer.end:
            stream = target(node, q)
            late = max(stream.given - tracer.time, 0) if closed else stream.lag
            _flow(tracer, buffer, PUSHED, given, node.outputs + STREAM_SIZE * q, late)
        set_int(tracer.marks, node.arity + q, target(node, q).pushed)
        if given > 0 and get_int(tracer.relays, q) != 0 and closed:
            _relay(tracer, buffer, target(node, q), get_int(tracer.relays, q))


@inline
def _relay(tracer: Any, buffer: Any, stream: Any, track: int) -> None:
    """A stop that was given by the last firing, or by the last value where that is later."""
    t = max(tracer.time, stream.given)
    if t < buffer.start or t >= buffer.end:
        return
    made = _append(buffer)
    if made != 0:
        event = event_at(made)
        event.part, event.time, event.count, event.step = track, t, 1, 1
        event.cause, event.detail = RELAYED, tracer.part
        event.back = stream.given - stream.lag if stream.given > tracer.time else tracer.time


@inline
def _flow(tracer: Any, buffer: Any, kind: int, tokens: int, detail: int, late: int) -> None:
    made = _append(buffer)
    if made != 0:
        event = event_at(made)
        event.part, event.time, event.count, event.detail = kind, tracer.time + late, tokens, detail
        event.step = tracer.span if tokens == tracer.span else 1


@inline
def _looked_at(tracer: Any, node: Any) -> int:
    """Of the inputs with the last token, the first that the firing took or always looks at. A merge that took none of them looked at the
    lane behind the one that it took from. A comparison of `align` looks at its first two, and takes nothing below."""
    taken, found, first = -1, -1, -1
    always = tracer.unless == 0 or source(node, tracer.unless - 1).popped == get_int(tracer.marks, tracer.unless - 1)
    for q in range(node.arity - 1, -1, -1):
        takes = source(node, q).popped > get_int(tracer.marks, q)
        if takes:
            taken = q
        if get_int(tracer.candidates, q) != 0:
            first = q
            if takes or (always and get_int(tracer.always, q) != 0):
                found = q
    if found >= 0:
        return found
    if tracer.turns != 0 and taken >= 0:
        for i in range(1, node.arity):
            q = (taken + i) % node.arity
            if get_int(tracer.candidates, q) != 0:
                return q
    return first


@inline
def _filled(tracer: Any, node: Any) -> int:
    """The reader of the first of the outputs with the last slot that got a token."""
    found = 0
    for q in range(node.ports - 1, -1, -1):
        at = get_int(tracer.candidates, node.arity + q)
        if at != 0 and (found == 0 or target(node, q).pushed > get_int(tracer.marks, node.arity + q)):
            found = at
    return found


def settle_all(tracers: int, count: int, size: int) -> int:
    """Settle every part, between two visits."""
    for i in range(count):
        tracer = tracer_at(tracers + size * i)
        _settle(tracer, node_at(tracer.node), buffer_at(tracer.buffer))
    return 0
