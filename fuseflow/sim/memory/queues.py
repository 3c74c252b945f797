"""What happens to a transaction before and after its commands: its arrival in the FIFO, its acceptance by the controller, and its
completion."""

from __future__ import annotations

from typing import Any

from fuseflow.sim.memory.channel import (
    HISTOGRAM_AT,
    QUEUE,
    TRANSACTION_SIZE,
    WRITES,
    bank_of,
    channel_at,
    entry_of,
    place_of,
    slot_of,
    transaction_of,
)
from fuseflow.sim.memory.histogram import count_latency
from fuseflow.sim.memory.ports import finish
from fuseflow.sim.memory.readiness import column_ready, row_ready
from fuseflow.sim.memory.waiting_requests import append_entry, entry_in, of_bank, queue_length
from fuseflow.sim.native.records import inline, prefetch, trailing_zeros


@inline
def enqueue(channel: int, arrival: int, unit: int, place: int, write: int, port: int, request: int) -> None:
    """Put a transaction behind those in the FIFO. The pool must have room."""
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
    """Accept what has arrived, in order, until a queue is full. Then all transactions behind it wait, too."""
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
        elif queue == WRITES:  # the queued write takes the data along
            c.absorbed += 1
            complete(channel, slot, c.clock)
        else:  # data from the queued write
            c.forwarded += 1
            complete_read(channel, slot, c.clock + 1)


@inline
def _expect_command(channel: int, place: int) -> None:
    """Let the column slot or the row slot wake as soon as the first command of a request can be issued that was just queued. The request
    of a pinned bank waits until another one is served; that wakes the row slot."""
    c, bank = channel_at(channel), place & 31
    b = bank_of(channel, bank)
    if b.open == place:
        c.column_wake = min(c.column_wake, max(column_ready(channel, bank, c.writing), c.clock + 1))
    elif b.pinned == 0:
        c.row_wake = min(c.row_wake, max(row_ready(channel, bank), c.clock + 1))


@inline
def is_queued(channel: int, t: Any) -> bool:
    """Return whether a write to the same 32 bytes is in the write queue. A write whose row has been opened for it does not count any
    more."""
    left = of_bank(channel, WRITES, t.place & 31)
    while left != 0:
        entry = entry_in(channel, WRITES, trailing_zeros(left))
        left &= left - 1
        if place_of(entry) == t.place and transaction_of(channel, slot_of(entry)).unit == t.unit:
            return True
    return False


@inline
def complete_read(channel: int, slot: int, ready: int) -> None:
    """Complete a read whose data are there at cycle `ready`. Data leave in order."""
    c = channel_at(channel)
    c.last_data = max(c.last_data, ready)
    complete(channel, slot, c.last_data)


@inline
def complete(channel: int, slot: int, done: int) -> None:
    """Answer a transaction in cycle `done`, and free its slot."""
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
