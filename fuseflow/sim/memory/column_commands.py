"""The column slot of a cycle, in which at most one RD or WR is issued, for the oldest request that is ready."""

from __future__ import annotations

from fuseflow.sim.memory.channel import (
    QUEUE,
    READS,
    active_entry,
    bank_of,
    channel_at,
    group_of,
    pc_of,
    place_of,
    queue_of,
    remove_active,
    slot_of,
    timing_at,
    transaction_of,
)
from fuseflow.sim.memory.ports import FOREVER
from fuseflow.sim.memory.queues import complete, complete_read
from fuseflow.sim.memory.readiness import column_ready, opened_later, row_opened
from fuseflow.sim.memory.waiting_requests import entry_in, note_unpinned, of_bank, remove_entry, waiting_of
from fuseflow.sim.native.records import inline, trailing_zeros

HIGH = 8 * QUEUE // 10
"""The controller turns to writes when more than this many are queued, which is more than 0.8 of the queue."""
LOW = -(-2 * QUEUE // 10)
"""The controller turns back to reads when fewer than this many writes are queued, which is fewer than 0.2 of the queue."""


@inline
def flips(channel: int) -> bool:
    """Return whether the controller turns from reads to writes or back. Writes wait until there are many of them, or no reads."""
    c = channel_at(channel)
    if c.writing == 0:
        return bool(c.queued_writes > HIGH or c.queued_reads == 0)
    return bool(c.queued_writes < LOW and c.queued_reads != 0)


@inline
def column_slot(channel: int) -> None:
    """Issue the RD or WR of this cycle, if a request is ready, and note when the next one can be."""
    c = channel_at(channel)
    clock = c.clock
    queue, pick, wake, oldest = c.writing, -1, FOREVER, FOREVER
    later = opened_later(channel)
    for j in range(c.active):
        entry = active_entry(channel, j)
        ready = column_ready(channel, place_of(entry) & 31, queue_of(entry))
        if ready > clock:
            wake = min(wake, ready)
            following = row_opened(channel, place_of(entry) & 31, queue_of(entry)) + later
            if following > clock:  # those behind it were opened later
                wake = min(wake, following)
                break
            continue
        accepted = transaction_of(channel, slot_of(entry)).accepted
        if accepted < oldest:
            pick, oldest = j, accepted
    is_hit = pick < 0
    if is_hit and c.refreshes == 0:
        hits = waiting_of(channel, queue).hits
        while hits != 0:
            position = trailing_zeros(hits)
            bank = place_of(entry_in(channel, queue, position)) & 31
            ready = column_ready(channel, bank, queue)
            if ready <= clock:
                pick = position
                break
            hits &= ~of_bank(channel, queue, bank)
            wake = min(wake, ready)
    if pick < 0:
        c.column_wake = wake
        return
    c.column_wake = clock + 1
    if is_hit:
        entry = entry_in(channel, queue, pick)
        remove_entry(channel, queue, pick)
    else:
        entry = active_entry(channel, pick)
        remove_active(channel, pick)
    if queue_of(entry) == READS:
        _read(channel, place_of(entry) & 31)
        complete_read(channel, slot_of(entry), clock + timing_at(c.timing).read_data)
    else:
        _write(channel, place_of(entry) & 31)
        complete(channel, slot_of(entry), clock)
    if is_hit:
        c.hits += 1
    else:
        _unpin(channel, place_of(entry) & 31)
    if c.refreshes == 0 and flips(channel):  # before the row slot of the same cycle
        c.writing = 1 - c.writing
        c.row_wake = clock


@inline
def _read(channel: int, bank: int) -> None:
    c, b, g, p = channel_at(channel), bank_of(channel, bank), group_of(channel, bank), pc_of(channel, bank)
    clock, after = c.clock, timing_at(c.timing)
    p.read = max(p.read, clock + after.same_far)
    p.write = max(p.write, clock + after.read_to_write)
    p.close = max(p.close, clock + after.read_to_close)
    g.read = max(g.read, clock + after.same_near)
    b.close = max(b.close, clock + after.read_to_close)
    c.turnarounds += p.direction == 1
    p.direction = 0


@inline
def _write(channel: int, bank: int) -> None:
    c, b, g, p = channel_at(channel), bank_of(channel, bank), group_of(channel, bank), pc_of(channel, bank)
    clock, after = c.clock, timing_at(c.timing)
    p.write = max(p.write, clock + after.same_far)
    p.read = max(p.read, clock + after.write_to_read_far)
    p.close = max(p.close, clock + after.write_to_close)
    g.write = max(g.write, clock + after.same_near)
    g.read = max(g.read, clock + after.write_to_read_near)
    b.close = max(b.close, clock + after.write_to_close)
    c.turnarounds += p.direction == 0
    p.direction = 1


@inline
def _unpin(channel: int, bank: int) -> None:
    """Note that the request that opened the bank's row is served, so the bank may be closed again."""
    c, b = channel_at(channel), bank_of(channel, bank)
    b.pinned = 0
    note_unpinned(channel, bank)
    pc_of(channel, bank).pinned -= 1
    c.row_wake = min(c.row_wake, max(b.close, c.row_bus))
