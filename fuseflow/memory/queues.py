"""The requests that wait in a channel, in a read queue and a write queue, and the steps of a transaction before and after its
commands: its arrival in the FIFO, its acceptance by the controller, and its completion.

A request has a position in its queue, higher than the positions of all older requests, until it leaves. Sets of positions are bits
of a word. One instruction compares the places of all positions, so a slot finds the oldest request for a bank that is ready without
inspecting others.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.channel import (
    BANKS,
    BY_BANK,
    COUNTS,
    HISTOGRAM_AT,
    PLACES_AT,
    POSITIONS,
    QUEUE,
    READS,
    SLOTS_AT,
    TRANSACTION_SIZE,
    UNITS_AT,
    WAITING_AT,
    WAITING_SIZE,
    WRITES,
    channel_at,
    columns,
    open_place,
    pinned_banks,
    row_ready,
    transaction_of,
    waiting_at,
)
from fuseflow.memory.histogram import count_latency
from fuseflow.memory.mailboxes import report
from fuseflow.memory.ports import FOREVER, finish, request_of
from fuseflow.native.records import (
    among,
    equal,
    get_int,
    get_int32,
    get_short,
    inline,
    outline,
    prefetch,
    put,
    set_int,
    set_int32,
    trailing_zeros,
)


@inline
def queue_address(channel: int, queue: int) -> int:
    return channel + WAITING_AT + WAITING_SIZE * queue


@inline
def waiting_of(channel: int, queue: int) -> Any:
    """Return the record of a queue (READS or WRITES) of a channel, with its sets of requests."""
    return waiting_at(queue_address(channel, queue))


@inline
def of_bank(channel: int, queue: int, bank: int) -> int:
    """Return the set of positions of a queue's requests that are for a bank."""
    members: int = get_int(queue_address(channel, queue) + BY_BANK, bank)
    return members


@inline
def place_at(channel: int, queue: int, position: int) -> int:
    """Return the place (row and bank) of the request at a position of a queue."""
    place: int = get_int32(queue_address(channel, queue) + PLACES_AT, position)
    return place


@inline
def slot_at(channel: int, queue: int, position: int) -> int:
    """Return the slot of the pool of the request at a position of a queue."""
    slot: int = get_int32(queue_address(channel, queue) + SLOTS_AT, position)
    return slot


@inline
def queue_length(channel: int, queue: int) -> int:
    """Return the number of requests in a queue."""
    length: int = get_int(channel + COUNTS, queue)
    return length


@inline
def first_hit(channel: int, queue: int, banks: int) -> int:
    """Return the position of the oldest request for an open row of a set of banks. One of the banks must have such a request."""
    position: int = trailing_zeros(waiting_of(channel, queue).hits & among(queue_address(channel, queue) + PLACES_AT, banks))
    return position


@inline
def first_other(channel: int, queue: int, banks: int) -> int:
    """Return the position of the oldest request for a row that is not open, of a set of banks. One of the banks must have such a
    request."""
    q = waiting_of(channel, queue)
    position: int = trailing_zeros(q.all & ~q.hits & among(queue_address(channel, queue) + PLACES_AT, banks))
    return position


@inline
def append_request(channel: int, queue: int, place: int, unit: int, slot: int) -> None:
    """Put the request in a slot of the pool at the end of a queue."""
    address = queue_address(channel, queue)
    q, bank = waiting_at(address), place & 31
    if q.end == POSITIONS:
        _close_gaps(channel, queue)
    position = q.end
    q.end = position + 1
    q.all |= 1 << position
    put(address + PLACES_AT, position, place)
    put(address + UNITS_AT, position, unit)
    set_int32(address + SLOTS_AT, position, slot)
    set_int(address + BY_BANK, bank, of_bank(channel, queue, bank) | 1 << position)
    set_int(channel + COUNTS, queue, queue_length(channel, queue) + 1)
    if open_place(channel, bank) == place:
        q.hits |= 1 << position
        q.hit_banks |= 1 << bank
    else:
        q.row_banks |= 1 << bank & ~(pinned_banks(channel, READS) | pinned_banks(channel, WRITES))


@inline
def remove_request(channel: int, queue: int, position: int) -> None:
    """Remove the request at a position of a queue. It is for an open row, or its row is opened next."""
    address = queue_address(channel, queue)
    q, bank, others = waiting_at(address), place_at(channel, queue, position) & 31, ~(1 << position)
    q.all &= others
    q.hits &= others
    if q.all == 0:
        q.end = 0
    mine = of_bank(channel, queue, bank) & others
    set_int(address + BY_BANK, bank, mine)
    if queue_length(channel, queue) == QUEUE:  # a transaction may have been refused
        channel_at(channel).accept_wake = channel_at(channel).clock + 1
    set_int(channel + COUNTS, queue, queue_length(channel, queue) - 1)
    q.hit_banks &= ~((mine & q.hits == 0) << bank)


@outline
def _close_gaps(channel: int, queue: int) -> None:
    """Move the requests of a queue to its first positions, in the same order."""
    address = queue_address(channel, queue)
    q = waiting_at(address)
    left, hits, end = q.all, 0, 0
    for bank in range(BANKS):
        set_int(address + BY_BANK, bank, 0)
    while left != 0:
        position = trailing_zeros(left)
        left &= left - 1
        for array in (PLACES_AT, UNITS_AT, SLOTS_AT):
            set_int32(address + array, end, get_int32(address + array, position))
        bank = place_at(channel, queue, end) & 31
        set_int(address + BY_BANK, bank, of_bank(channel, queue, bank) | 1 << end)
        hits |= (q.hits >> position & 1) << end
        end += 1
    q.end, q.all, q.hits = end, (1 << end) - 1, hits


@inline
def note_opened(channel: int, place: int) -> None:
    """Update both queues after the row `place` was opened for a request: all requests for it can be served, and others of the bank
    get no row command."""
    bank = place & 31
    for queue in range(READS, WRITES + 1):
        q = waiting_of(channel, queue)
        q.row_banks &= ~(1 << bank)
        if q.all != 0:
            hits = q.all & equal(queue_address(channel, queue) + PLACES_AT, place)
            q.hits |= hits
            q.hit_banks |= (hits != 0) << bank


@inline
def note_closed(channel: int, bank: int) -> None:
    """Update both queues after the row of a bank was closed: all requests of the bank need a row."""
    for queue in range(READS, WRITES + 1):
        q, mine = waiting_of(channel, queue), of_bank(channel, queue, bank)
        q.hits &= ~mine
        q.hit_banks &= ~(1 << bank)
        q.row_banks |= (mine != 0) << bank


@inline
def note_unpinned(channel: int, bank: int) -> None:
    """Update both queues after the request for which the row of a bank was opened was served: requests for other rows may close
    the row."""
    for queue in range(READS, WRITES + 1):
        q = waiting_of(channel, queue)
        q.row_banks |= (of_bank(channel, queue, bank) & ~q.hits != 0) << bank


@inline
def enqueue(channel: int, arrival: int, unit: int, place: int, write: int, port: int, request: int) -> None:
    """Put a transaction at the end of the FIFO of a channel. `unit` is its address in 32 bytes, `place` its row and bank, and
    `request` the number of its request at the port. The pool must have room."""
    c = channel_at(channel)
    slot = c.free
    t = transaction_of(channel, slot)
    c.free = t.next
    prefetch(c.pool + TRANSACTION_SIZE * c.free)  # it comes from the memory of another window
    c.room -= 1
    t.next, t.arrival, t.unit, t.place, t.write, t.port, t.request = -1, arrival, unit, place, write, port, request
    if c.first < 0:
        c.first = slot
        c.accept_wake = min(c.accept_wake, arrival + 1)
    else:
        transaction_of(channel, c.last).next = slot
    c.last = slot


@inline
def accept(channel: int) -> None:
    """Accept the transactions that arrived at a channel before this cycle, in order, up to one whose queue is full. All later ones
    then wait, too."""
    c = channel_at(channel)
    c.accept_wake = FOREVER
    while c.first >= 0:
        slot = c.first
        t = transaction_of(channel, slot)
        if t.arrival >= c.clock:
            c.accept_wake = t.arrival + 1
            return
        following, queue = t.next, t.write
        queued = is_queued(channel, t)
        if not queued and queue_length(channel, queue) >= QUEUE:
            return
        t.accepted = c.clock - 1
        c.first = following
        if not queued:
            if c.outboxes == 0:
                prefetch(request_of(t.port, t.request))  # it is completed soon
            append_request(channel, queue, t.place, t.unit, slot)
            if queue == c.writing:
                _expect_command(channel, t.place)
        else:
            _join_queued(channel, slot)


@outline
def _join_queued(channel: int, slot: int) -> None:
    """Complete a transaction at once by a queued write of the same bytes: a read takes the data of that write, and a write
    replaces them."""
    c = channel_at(channel)
    if transaction_of(channel, slot).write != 0:
        c.absorbed += 1
        complete(channel, slot, c.clock - 1)
    else:
        c.forwarded += 1
        c.last_data = max(c.last_data, c.clock)  # data leave in order
        complete(channel, slot, c.last_data)


@inline
def _expect_command(channel: int, place: int) -> None:
    """Set the wake-up of the column slot or the row slot to the cycle in which the first command of a request at `place`, just
    queued, can be issued. The request of a pinned bank waits until another is served, which wakes the row slot."""
    c, bank = channel_at(channel), place & 31
    pinned = pinned_banks(channel, READS) | pinned_banks(channel, WRITES)
    if open_place(channel, bank) == place:
        c.column_wake = min(c.column_wake, c.epoch + get_short(columns(channel, c.writing), bank))
    elif pinned >> bank & 1 == 0:
        c.row_wake = min(c.row_wake, row_ready(channel, bank))


@inline
def is_queued(channel: int, t: Any) -> bool:
    """Return whether a write to the same 32 bytes as transaction `t` is in the write queue. A write whose row was opened for it
    has left the queue."""
    q = waiting_of(channel, WRITES)
    return bool(q.all != 0 and q.all & equal(queue_address(channel, WRITES) + UNITS_AT, t.unit) != 0)


@inline
def complete(channel: int, slot: int, done: int) -> None:
    """Complete the transaction in a slot of the pool in cycle `done`, and free the slot."""
    c = channel_at(channel)
    t = transaction_of(channel, slot)
    if c.outboxes == 0:
        finish(t.port, t.request, t.accepted, done)
    else:
        report(c.outboxes, t.port, t.request, t.accepted, done)
    c.service += done - t.accepted
    if t.write == 0:
        c.reads += 1
        c.read_latency += done - t.arrival
        count_latency(channel + HISTOGRAM_AT, done - t.arrival)
    else:
        c.writes += 1
        c.write_latency += done - t.arrival
    c.last_done = max(c.last_done, done)
    c.refreshed = c.refreshing
    t.next = c.free
    c.free = slot
    c.room += 1
