"""The steps of a transaction before and after its commands: its arrival in the FIFO, its acceptance by the controller, and its
completion."""

from __future__ import annotations

from typing import Any

from fuseflow.memory.channel import (
    HISTOGRAM_AT,
    QUEUE,
    READS,
    TRANSACTION_SIZE,
    WRITES,
    channel_at,
    entry_of,
    open_place,
    pinned_banks,
    place_of,
    slot_of,
    transaction_of,
)
from fuseflow.memory.histogram import count_latency
from fuseflow.memory.ports import finish
from fuseflow.memory.readiness import columns, row_ready
from fuseflow.memory.waiting_requests import append_entry, entry_in, of_bank, queue_length
from fuseflow.native.records import get_int, inline, outline, prefetch, trailing_zeros


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
    """Accept the transactions that have arrived at a channel, in order, up to one whose queue is full. All later ones then wait,
    too."""
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
