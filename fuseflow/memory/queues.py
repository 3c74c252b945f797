"""The requests that wait in a channel, in a read queue and a write queue, and the steps of a transaction before and after its
commands: its arrival in the FIFO, its acceptance by the controller, and its completion.

A request has a place in its queue, higher than the places of all older requests, until it leaves. Sets of places are bits of a
word. For each bank a queue has the set of its requests, and the first request that a column command, and a row command, would
serve. So a slot finds the oldest request to a bank that is ready without inspecting others.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.channel import (
    BANKS,
    BY_BANK,
    COUNTS,
    ENTRIES,
    FIRST_HITS,
    FIRST_OTHERS,
    HISTOGRAM_AT,
    PLACES,
    QUEUE,
    READS,
    TRANSACTION_SIZE,
    WAITING_AT,
    WAITING_SIZE,
    WRITES,
    channel_at,
    columns,
    entry_of,
    open_place,
    pinned_banks,
    place_of,
    row_ready,
    slot_of,
    transaction_of,
    waiting_at,
)
from fuseflow.memory.histogram import count_latency
from fuseflow.memory.ports import finish
from fuseflow.native.records import get_int, inline, least_int32, outline, prefetch, set_int, set_int32, trailing_zeros

NO_PLACE = 1 << PLACES
"""A bit above all places, for sets that may be empty."""


@inline
def queue_address(channel: int, queue: int) -> int:
    return channel + WAITING_AT + WAITING_SIZE * queue


@inline
def waiting_of(channel: int, queue: int) -> Any:
    """Return the record of a queue (READS or WRITES) of a channel, with its sets of requests."""
    return waiting_at(queue_address(channel, queue))


@inline
def of_bank(channel: int, queue: int, bank: int) -> int:
    """Return the set of places of a queue's requests that are for a bank."""
    members: int = get_int(queue_address(channel, queue) + BY_BANK, bank)
    return members


@inline
def entry_in(channel: int, queue: int, position: int) -> int:
    """Return the entry at a place of a queue."""
    entry: int = get_int(queue_address(channel, queue) + ENTRIES, position)
    return entry


@inline
def queue_length(channel: int, queue: int) -> int:
    """Return the number of requests in a queue."""
    length: int = get_int(channel + COUNTS, queue)
    return length


@inline
def first_hit(channel: int, queue: int, banks: int) -> int:
    """Return the place of the oldest request for an open row of a set of banks. Each of the banks must have such a request."""
    position: int = least_int32(queue_address(channel, queue) + FIRST_HITS, banks)
    return position


@inline
def first_other(channel: int, queue: int, banks: int) -> int:
    """Return the place of the oldest request for a row that is not open, of a set of banks. Each of the banks must have such a
    request."""
    position: int = least_int32(queue_address(channel, queue) + FIRST_OTHERS, banks)
    return position


@inline
def note_requests(channel: int, queue: int, bank: int) -> None:
    """Update the first requests of a bank in a queue, and the commands that they need, after the requests or the bank changed."""
    address = queue_address(channel, queue)
    q, member, mine = waiting_at(address), 1 << bank, of_bank(channel, queue, bank)
    hits = mine & q.hits
    others = mine ^ hits
    set_int32(address + FIRST_HITS, bank, trailing_zeros(hits | NO_PLACE))
    set_int32(address + FIRST_OTHERS, bank, trailing_zeros(others | NO_PLACE))
    pinned = (pinned_banks(channel, READS) | pinned_banks(channel, WRITES)) & member
    q.hit_banks = q.hit_banks & ~member | (member if hits != 0 else 0)
    q.row_banks = q.row_banks & ~member | (member ^ pinned if others != 0 else 0)


@inline
def append_entry(channel: int, queue: int, entry: int) -> None:
    """Put the request `entry` at the end of a queue."""
    address = queue_address(channel, queue)
    q, bank = waiting_at(address), place_of(entry) & 31
    if q.end == PLACES:
        _close_gaps(channel, queue)
    position = q.end
    q.end = position + 1
    q.all |= 1 << position
    if open_place(channel, bank) == place_of(entry):
        q.hits |= 1 << position
    set_int(address + ENTRIES, position, entry)
    set_int(address + BY_BANK, bank, get_int(address + BY_BANK, bank) | 1 << position)
    set_int(channel + COUNTS, queue, queue_length(channel, queue) + 1)
    note_requests(channel, queue, bank)


@inline
def remove_entry(channel: int, queue: int, position: int) -> None:
    """Remove the request at place `position` from a queue."""
    address = queue_address(channel, queue)
    q, bank, others = waiting_at(address), place_of(get_int(address + ENTRIES, position)) & 31, ~(1 << position)
    q.all &= others
    q.hits &= others
    if q.all == 0:
        q.end = 0
    set_int(address + BY_BANK, bank, get_int(address + BY_BANK, bank) & others)
    set_int(channel + COUNTS, queue, queue_length(channel, queue) - 1)
    note_requests(channel, queue, bank)


@outline
def _close_gaps(channel: int, queue: int) -> None:
    """Move the requests of a queue to its first places, in the same order."""
    address = queue_address(channel, queue)
    q = waiting_at(address)
    left, hits, end = q.all, 0, 0
    for bank in range(BANKS):
        set_int(address + BY_BANK, bank, 0)
    while left != 0:
        position = trailing_zeros(left)
        left &= left - 1
        entry = get_int(address + ENTRIES, position)
        bank = place_of(entry) & 31
        set_int(address + ENTRIES, end, entry)
        set_int(address + BY_BANK, bank, get_int(address + BY_BANK, bank) | 1 << end)
        hits |= (q.hits >> position & 1) << end
        end += 1
    q.end, q.all, q.hits = end, (1 << end) - 1, hits
    for bank in range(BANKS):
        note_requests(channel, queue, bank)


@inline
def note_opened(channel: int, place: int) -> None:
    """Update both queues after the row `place` was opened: all requests for it can be served, and others of the bank get no row
    command."""
    bank = place & 31
    for queue in range(READS, WRITES + 1):
        q, mine = waiting_of(channel, queue), of_bank(channel, queue, bank)
        while mine != 0:
            position = trailing_zeros(mine)
            mine &= mine - 1
            if place_of(entry_in(channel, queue, position)) == place:
                q.hits |= 1 << position
        if of_bank(channel, queue, bank) != 0:
            note_requests(channel, queue, bank)


@inline
def note_closed(channel: int, bank: int) -> None:
    """Update both queues after the row of a bank was closed: all requests of the bank need a row."""
    for queue in range(READS, WRITES + 1):
        q = waiting_of(channel, queue)
        if of_bank(channel, queue, bank) != 0:
            q.hits &= ~of_bank(channel, queue, bank)
            note_requests(channel, queue, bank)


@inline
def note_unpinned(channel: int, bank: int) -> None:
    """Update both queues after the request for which the row of a bank was opened was served: requests for other rows may close
    the row."""
    for queue in range(READS, WRITES + 1):
        if of_bank(channel, queue, bank) != 0:
            note_requests(channel, queue, bank)


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
    else:
        transaction_of(channel, c.last).next = slot
    c.last = slot


@inline
def accept(channel: int) -> None:
    """Accept the transactions that have arrived at a channel, in order, up to one whose queue is full. All later ones then wait, too."""
    c = channel_at(channel)
    while c.first >= 0:
        slot = c.first
        t = transaction_of(channel, slot)
        if t.arrival > c.clock:
            return
        following, queue = t.next, t.write
        queued = is_queued(channel, t)
        if not queued and queue_length(channel, queue) >= QUEUE:
            return
        t.accepted = c.clock
        c.first = following
        if not queued:
            append_entry(channel, queue, entry_of(t.place, queue, slot))
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
        complete(channel, slot, c.clock)
    else:
        c.forwarded += 1
        c.last_data = max(c.last_data, c.clock + 1)  # data leave in order
        complete(channel, slot, c.last_data)


@inline
def _expect_command(channel: int, place: int) -> None:
    """Set the wake-up of the column slot or the row slot to the cycle in which the first command of a request at `place`, just
    queued, can be issued. The request of a pinned bank waits until another is served, which wakes the row slot."""
    c, bank = channel_at(channel), place & 31
    pinned = pinned_banks(channel, READS) | pinned_banks(channel, WRITES)
    if open_place(channel, bank) == place:
        c.column_wake = min(c.column_wake, max(get_int(columns(channel, c.writing), bank), c.clock + 1))
    elif pinned >> bank & 1 == 0:
        c.row_wake = min(c.row_wake, max(row_ready(channel, bank), c.clock + 1))


@inline
def is_queued(channel: int, t: Any) -> bool:
    """Return whether a write to the same 32 bytes as transaction `t` is in the write queue. A write whose row was opened for it
    has left the queue."""
    left = of_bank(channel, WRITES, t.place & 31)
    while left != 0:
        entry = entry_in(channel, WRITES, trailing_zeros(left))
        left &= left - 1
        if place_of(entry) == t.place and transaction_of(channel, slot_of(entry)).unit == t.unit:
            return True
    return False


@inline
def complete(channel: int, slot: int, done: int) -> None:
    """Complete the transaction in a slot of the pool in cycle `done`, and free the slot."""
    c = channel_at(channel)
    t = transaction_of(channel, slot)
    finish(t.port, t.request, t.accepted, done)
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
