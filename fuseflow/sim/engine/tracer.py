"""A tracer records every firing of a part with its cause, and the tokens that the firing took and emitted.

A kernel calls `note_firings` through its node (`node_records.fire`), in traced runs only. The cause of the cycle of a firing
follows from the next tokens of the inputs, which are not taken yet, and from the pops that free the slots. If several inputs may
be the cause, those from which the firing takes tokens, or which every firing inspects, decide; `_settle` sees them at the next
firing, or after the run.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.ports import issue_cycle, port_at, request_at, request_of
from fuseflow.native.records import Record, get_int, inline, set_int
from fuseflow.sim.engine.memory_ports import answered_port, answered_request, requester_at
from fuseflow.sim.engine.node_firing import WAIT, node_at, source, target
from fuseflow.sim.engine.pop_history import POPS_SIZE, pops_at
from fuseflow.sim.engine.stream_rings import (
    ELEMENT,
    READER_SIZE,
    STREAM_SIZE,
    is_control,
    reader_at,
    second_token,
    stream_at,
    tokens_left,
    visible,
)
from fuseflow.sim.events.log import INSIDE, MEMORY, OWN, SLOT, START, TOKEN

TRACER = Record(
    "note turns turn "  # as in `SPECIAL`; `node_firing.fire` calls the function
    "node part buffer "
    "marks candidates "  # by input, then by output: tokens so far; whether, and how, it may be the cause of a firing
    "relays closings "  # by output: the track of stops that wait for values, or 0; firings on stops so far
    "always unless merges "  # by input: whether every firing inspects it, if input `unless` - 1 stays; whether it is a merge
    "behind "  # whether the token after the next one may be inspected
    "fetches answers sends positions "  # requesters: that fetch ahead, whose answer is awaited, through which lines are sent
    "passed "  # the cycle from which a token was there that was taken without a firing
    "time span "  # of the last firings
    "may "  # the cycle in which the last firing might have been without turns
    "entry pending"  # addresses of the last event that may grow, of one whose cause is not settled; 0: none
)
EVENT_BUFFER = Record("events count limit lost start end flows")
"""The buffer of events of all tracers. `lost` counts events for which there was no room. Only events in cycles `start` to `end`
are noted; `flows` says whether tokens are noted, too."""
EVENT = Record("part time count step cause detail back due")
"""An event is a row of firings of a part. With `part` POP or PUSH it is instead `count` tokens taken from the reader, or put on
the stream, at address `detail`, within `step` cycles. `detail` of a firing is the address of a reader or a port. `due` is the
cycle in which a firing would have happened if all slots were free."""
POP, PUSH = -1, -2
DELAYED_STOP = 8
"""This replaces the cause TOKEN for a stop that may have waited for the value before it. Such a stop has a separate event, in the
track of the relay, with the cause RELAY and the part `detail` that emitted it."""
RELAY = 9
STOP_CANDIDATE = -1  # of a candidate: it is such a stop; else 1 more than the lag of the value
TRACER_SIZE, EVENT_SIZE = TRACER.size, EVENT.size
tracer_at, buffer_at, event_at = TRACER.at, EVENT_BUFFER.at, EVENT.at


def note_firings(address: int, t: int, k: int, visible_at: int, free: int) -> int:
    """Record k firings from cycle t on in the tracer at an address. Their tokens were visible by `visible_at`, and their slots
    free from `free` on. A wait for a turn counts for what the firing waited for before. k is 0 where a token was taken without a
    firing."""
    tracer = tracer_at(address)
    node = node_at(tracer.node)
    buffer = buffer_at(tracer.buffer)
    _settle(tracer, node, buffer)
    tracer.time, tracer.span = t, max(k, 1)
    if k == 0:
        if visible_at > node.last + 1:
            tracer.passed = visible_at
        return 0
    if t + k <= buffer.start or t >= buffer.end:
        tracer.entry = 0
        return 0
    may = tracer.may = max(node.ready, visible_at, free)
    at_own_pace = node.firings > 0 and may == node.ready and tracer.passed != may
    if at_own_pace and tracer.entry != 0:
        event = event_at(tracer.entry)
        gap = t - node.last
        if (k == 1 or gap == 1) and (event.count == 1 or event.step == gap):
            event.step = gap
            event.count += k
            return 0
    event_address = _append(buffer)
    tracer.entry = event_address
    if event_address == 0:
        return 0
    event = event_at(event_address)
    event.part, event.time, event.count, event.step, event.back, event.detail = tracer.part, t, k, 1, 0, 0
    event.due = min(max(node.ready, visible_at), t)
    if at_own_pace:
        event.cause, event.back = OWN, node.last
    elif may == node.ready and tracer.passed == may:
        reader = source(node, 0)
        event.cause = TOKEN if stream_at(reader.stream).lag == 0 else DELAYED_STOP
        event.back, event.detail = may - reader.latency - reader.delay, node.inputs
    elif may == 0:
        event.cause = START
    elif visible_at == may:
        _token(tracer, node, event, event_address, visible_at, free)
    else:
        _slot(tracer, node, event, event_address, free)
    return 0


@inline
def _append(buffer: Any) -> int:
    """Return the address of a new event in the buffer, or 0 if the buffer is full."""
    if buffer.count == buffer.limit:
        buffer.lost += 1
        return 0
    buffer.count += 1
    event_address: int = buffer.events + EVENT_SIZE * (buffer.count - 1)
    return event_address


@inline
def _token(tracer: Any, node: Any, event: Any, event_address: int, visible_at: int, free: int) -> None:
    """Record as the cause of a firing the token that became visible last, in cycle `visible_at`, or else a slot that became free in that
    cycle, or else an answer of the memory."""
    event.cause = TOKEN
    candidates = 0
    for q in range(node.arity):
        reader = source(node, q)
        is_last = tokens_left(reader) > 0 and visible(reader) == visible_at
        set_int(tracer.candidates, q, _origin(reader, is_control(reader)) if is_last else 0)
        candidates += is_last
    if candidates == 0 and tracer.behind != 0:
        for q in range(node.arity):
            reader = source(node, q)
            later, word = (WAIT, 0) if tokens_left(reader) == 0 else second_token(reader)
            set_int(tracer.candidates, q, _origin(reader, word != ELEMENT) if later == visible_at else 0)
            candidates += later == visible_at
    if candidates > 0:
        tracer.pending = event_address
        return
    if free == visible_at:
        _slot(tracer, node, event, event_address, free)
        if tracer.pending != 0:
            return
        event.cause = TOKEN
    event.back = -1
    if tracer.answers != 0:
        r = requester_at(tracer.answers)
        port = answered_port(r)
        event.cause, event.detail = MEMORY, port
        event.back = issue_cycle(port, answered_request(r, port))


@inline
def _origin(reader: Any, control: bool) -> int:
    """Return how a token, a possible cause, became visible: STOP_CANDIDATE for a delayed stop, or 1 more than its stream's lag."""
    lag = stream_at(reader.stream).lag
    return STOP_CANDIDATE if control and lag != 0 else 1 + lag


@inline
def _slot(tracer: Any, node: Any, event: Any, event_address: int, free: int) -> None:
    """Record as the cause of a firing the slot that became free last, in cycle `free`, or else the answer that allowed another
    request, or another part of the node."""
    event.cause = SLOT
    candidates = 0
    for q in range(node.ports):
        stream, reader_address = target(node, q), 0
        for i in range(stream.count):
            address = get_int(stream.readers, i)
            if reader_address == 0 and _slot_free_from(reader_at(address), stream.pushed) == free:
                reader_address = address
        set_int(tracer.candidates, node.arity + q, reader_address)
        candidates += reader_address != 0
    if candidates > 0:
        tracer.pending = event_address
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
def _slot_free_from(reader: Any, pushed: int) -> int:
    """Return the cycle from which the FIFO of a reader has a slot for token number `pushed`, or -1 if the slot was never filled,
    or is not free yet."""
    pop = pushed - reader.depth
    if reader.depth == 0 or pop < 0 or pop >= reader.popped:
        return -1
    cursor = reader.slot_cursor
    while cursor + 1 < reader.noted and pops_at(reader.history + POPS_SIZE * ((cursor + 1) & reader.history_mask)).first <= pop:
        cursor += 1
    entry = pops_at(reader.history + POPS_SIZE * (cursor & reader.history_mask))
    cycle: int = entry.time + (pop - entry.first) * entry.step + 1 + reader.back
    return cycle


@inline
def _credit(requester: int, event: Any, free: int) -> None:
    """Record as an event's cause the answer that allowed another request, if it came in cycle `free`. `requester` 0: none."""
    if requester == 0:
        return
    r = requester_at(requester)
    p = port_at(r.port)
    credit = p.issued - r.outstanding
    if (r.next >= 0 or r.lines != 0) and credit >= 0 and request_at(request_of(r.port, credit)).visible == free:
        event.cause, event.detail, event.back = MEMORY, r.port, issue_cycle(r.port, credit)


@inline
def _settle(tracer: Any, node: Any, buffer: Any) -> None:
    """Record the tokens that the last firings took and emitted, and which of several candidates was their cause."""
    if tracer.pending != 0:
        event = event_at(tracer.pending)
        if event.cause == TOKEN:
            q = _last_input(tracer, node)
            reader = source(node, q)
            event.detail, event.back = node.inputs + READER_SIZE * q, tracer.may - reader.latency - reader.delay
            origin = get_int(tracer.candidates, q)
            if origin == STOP_CANDIDATE:
                event.cause = DELAYED_STOP
            else:
                event.back -= origin - 1
        else:
            event.detail = _filled_reader(tracer, node)
            event.back = tracer.may - 1 - reader_at(event.detail).back
        tracer.pending = 0
    for q in range(node.arity):
        pops = source(node, q).popped - get_int(tracer.marks, q)
        if pops > 0 and buffer.flows != 0 and tracer.time < buffer.end:
            _flow(tracer, buffer, POP, pops, node.inputs + READER_SIZE * q, 0)
        set_int(tracer.marks, q, source(node, q).popped)
    closed = node.closings > tracer.closings
    tracer.closings = node.closings
    for q in range(node.ports):
        pushes = target(node, q).pushed - get_int(tracer.marks, node.arity + q)
        if pushes > 0 and buffer.flows != 0 and tracer.time < buffer.end:
            stream = target(node, q)
            late = max(stream.given - tracer.time, 0) if closed else stream.lag
            _flow(tracer, buffer, PUSH, pushes, node.outputs + STREAM_SIZE * q, late)
        set_int(tracer.marks, node.arity + q, target(node, q).pushed)
        if pushes > 0 and get_int(tracer.relays, q) != 0 and closed:
            _relay(tracer, buffer, target(node, q), get_int(tracer.relays, q))


@inline
def _relay(tracer: Any, buffer: Any, stream: Any, track: int) -> None:
    """Record an event for a stop that the last firing emitted, in that cycle or in that of the last value if it is later."""
    t = max(tracer.time, stream.given)
    if t < buffer.start or t >= buffer.end:
        return
    event_address = _append(buffer)
    if event_address != 0:
        event = event_at(event_address)
        event.part, event.time, event.count, event.step, event.due = track, t, 1, 1, t
        event.cause, event.detail = RELAY, tracer.part
        event.back = stream.given - stream.lag if stream.given > tracer.time else tracer.time


@inline
def _flow(tracer: Any, buffer: Any, kind: int, tokens: int, detail: int, late: int) -> None:
    """Record tokens that the last firings took (`kind` POP) or emitted (PUSH), `late` cycles after those firings."""
    event_address = _append(buffer)
    if event_address != 0:
        event = event_at(event_address)
        event.part, event.time, event.count, event.detail = kind, tracer.time + late, tokens, detail
        event.step = tracer.span if tokens == tracer.span else 1


@inline
def _last_input(tracer: Any, node: Any) -> int:
    """Return, of the inputs with the last token, the first from which the firing took or that it always inspects. A merge that
    took none of them inspected the lane after the one that it took from. A comparison of `align` inspects its first two inputs,
    and takes nothing below."""
    last_taken, choice, first = -1, -1, -1
    always = tracer.unless == 0 or source(node, tracer.unless - 1).popped == get_int(tracer.marks, tracer.unless - 1)
    for q in range(node.arity - 1, -1, -1):
        is_taken = source(node, q).popped > get_int(tracer.marks, q)
        if is_taken:
            last_taken = q
        if get_int(tracer.candidates, q) != 0:
            first = q
            if is_taken or (always and get_int(tracer.always, q) != 0):
                choice = q
    if choice >= 0:
        return choice
    if tracer.merges != 0 and last_taken >= 0:
        for i in range(1, node.arity):
            q = (last_taken + i) % node.arity
            if get_int(tracer.candidates, q) != 0:
                return q
    return first


@inline
def _filled_reader(tracer: Any, node: Any) -> int:
    """Return, of the outputs whose slot became free last, the address of the reader of the first that got a token."""
    reader_address = 0
    for q in range(node.ports - 1, -1, -1):
        candidate = get_int(tracer.candidates, node.arity + q)
        if candidate != 0 and (reader_address == 0 or target(node, q).pushed > get_int(tracer.marks, node.arity + q)):
            reader_address = candidate
    return reader_address


def settle_all(tracers: int, count: int, size: int) -> int:
    """Record what is pending of the last firings of all `count` tracers, which are `size` bytes apart."""
    for i in range(count):
        tracer = tracer_at(tracers + size * i)
        _settle(tracer, node_at(tracer.node), buffer_at(tracer.buffer))
    return 0
