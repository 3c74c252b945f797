"""The column slot of a cycle, in which at most one RD or WR is issued, for the oldest request that is ready."""

from __future__ import annotations

from fuseflow.memory.channel import (
    CLOSES_AT,
    OPENED_AT,
    QUEUE,
    READS,
    WRITES,
    active_entry,
    channel_at,
    pc_of,
    pinned_banks,
    place_of,
    queue_of,
    slot_of,
    timing_at,
    transaction_of,
    unpin,
)
from fuseflow.memory.ports import FOREVER
from fuseflow.memory.queues import complete
from fuseflow.memory.readiness import columns, postpone, postpone_all, postpone_pc, row_ready
from fuseflow.memory.waiting_requests import entry_in, first_hit, note_unpinned, remove_entry, waiting_of
from fuseflow.native.records import at_most, get_int, inline, least, trailing_zeros

HIGH = 8 * QUEUE // 10
"""The controller turns to writes when more than this many are queued, which is more than 0.8 of the queue."""
LOW = -(-2 * QUEUE // 10)
"""The controller turns back to reads when fewer than this many writes are queued, which is fewer than 0.2 of the queue."""


@inline
def flips(channel: int) -> bool:
    """Return whether the controller of a channel switches from reads to writes or back. Writes wait until there are many, or no
    reads."""
    c = channel_at(channel)
    if c.writing == 0:
        return bool(c.queued_writes > HIGH or c.queued_reads == 0)
    return bool(c.queued_writes < LOW and c.queued_reads != 0)


@inline
def column_slot(channel: int) -> None:
    """Issue the RD or WR of this cycle, if a request is ready, and note the first cycle in which the next one may be issued."""
    c = channel_at(channel)
    queue = c.writing
    hits = _hit_banks(channel)
    ready = at_most(columns(channel, queue), c.clock)
    active, others = ready & pinned_banks(channel, queue), pinned_banks(channel, 1 - queue)
    if others != 0:
        active |= others & at_most(columns(channel, 1 - queue), c.clock)
    entry = -1
    if active != 0:
        bank = _oldest_active(channel, active)
        entry = active_entry(channel, bank)
        unpin(channel, bank, queue_of(entry))
        note_unpinned(channel, bank)
    elif ready & hits != 0:
        position = first_hit(channel, queue, ready & hits)
        entry = entry_in(channel, queue, position)
        remove_entry(channel, queue, position)
        c.hits += 1
    if entry >= 0:
        _serve(channel, entry)
    if active != 0:  # its bank may be closed again
        c.row_wake = min(c.row_wake, row_ready(channel, place_of(entry) & 31))
    c.column_wake = _next_column(channel)
    if c.refreshes == 0 and flips(channel):  # before the row slot of the same cycle
        c.writing = 1 - c.writing
        c.row_wake = c.clock
        c.column_wake = c.clock + 1


@inline
def _hit_banks(channel: int) -> int:
    """Return the set of banks with requests of the served queue to their open row; during a refresh it is empty."""
    c = channel_at(channel)
    banks: int = waiting_of(channel, c.writing).hit_banks if c.refreshes == 0 else 0
    return banks


@inline
def _next_column(channel: int) -> int:
    """Return the first cycle after this one in which a RD or a WR may be issued, or FOREVER if no request waits for one."""
    c = channel_at(channel)
    queue = c.writing
    banks, others = pinned_banks(channel, queue) | _hit_banks(channel), pinned_banks(channel, 1 - queue)
    cycle = least(columns(channel, queue), banks) if banks != 0 else FOREVER
    if others != 0:
        cycle = min(cycle, least(columns(channel, 1 - queue), others))
    following: int = max(cycle, c.clock + 1)
    return following


@inline
def _oldest_active(channel: int, banks: int) -> int:
    """Return the bank of a set whose active request was accepted first, and of several such the bank whose row was opened
    first."""
    bank, left = trailing_zeros(banks), banks & (banks - 1)
    while left != 0:
        other = trailing_zeros(left)
        left &= left - 1
        accepted, others = _accepted(channel, bank), _accepted(channel, other)
        if others < accepted or (others == accepted and _opened(channel, other) < _opened(channel, bank)):
            bank = other
    return bank


@inline
def _accepted(channel: int, bank: int) -> int:
    cycle: int = transaction_of(channel, slot_of(active_entry(channel, bank))).accepted
    return cycle


@inline
def _opened(channel: int, bank: int) -> int:
    cycle: int = get_int(channel + OPENED_AT, bank)
    return cycle


@inline
def _serve(channel: int, entry: int) -> None:
    """Issue the RD or WR of the request `entry`, and complete the request."""
    c, bank = channel_at(channel), place_of(entry) & 31
    if queue_of(entry) == READS:
        _read(channel, bank)
        c.last_data = max(c.last_data, c.clock + timing_at(c.timing).read_data)  # data leave in order
        done = c.last_data
    else:
        _write(channel, bank)
        done = c.clock
    complete(channel, slot_of(entry), done)


@inline
def _read(channel: int, bank: int) -> None:
    c, p, reads, writes = channel_at(channel), pc_of(channel, bank), columns(channel, READS), columns(channel, WRITES)
    clock, after = c.clock, timing_at(c.timing)
    postpone_pc(reads, bank, 0, clock + after.same_near, clock + after.same_far)
    postpone_all(writes, bank, clock + after.read_to_write)
    postpone(channel + CLOSES_AT, bank, clock + after.read_to_close)
    p.close = max(p.close, clock + after.read_to_close)
    c.turnarounds += p.direction == 1
    p.direction = 0


@inline
def _write(channel: int, bank: int) -> None:
    c, p, reads, writes = channel_at(channel), pc_of(channel, bank), columns(channel, READS), columns(channel, WRITES)
    clock, after = c.clock, timing_at(c.timing)
    postpone_pc(writes, bank, 0, clock + after.same_near, clock + after.same_far)
    postpone_pc(reads, bank, 0, clock + after.write_to_read_near, clock + after.write_to_read_far)
    postpone(channel + CLOSES_AT, bank, clock + after.write_to_close)
    p.close = max(p.close, clock + after.write_to_close)
    c.turnarounds += p.direction == 0
    p.direction = 1
