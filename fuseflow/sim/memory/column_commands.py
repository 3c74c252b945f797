"""The column slot of a cycle, in which at most one RD or WR is issued, for the oldest request that is ready."""

from __future__ import annotations

from fuseflow.sim.memory.channel import (
    ACTIVE,
    QUEUE,
    READS,
    bank_of,
    channel_at,
    first_entry,
    group_of,
    pc_of,
    place_of,
    queue_length,
    queue_of,
    remove_entry,
    slot_of,
    timing_at,
    transaction_of,
)
from fuseflow.sim.memory.ports import FOREVER
from fuseflow.sim.memory.queues import complete, complete_read
from fuseflow.sim.memory.readiness import column_ready
from fuseflow.sim.native.records import get_int, inline

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
    queue, pick, wake, oldest = ACTIVE, -1, FOREVER, FOREVER
    first = first_entry(channel, ACTIVE)
    for j in range(c.active):
        entry = get_int(first, j)
        ready = column_ready(channel, place_of(entry) & 31, queue_of(entry))
        if ready > clock:
            wake = min(wake, ready)
            continue
        accepted = transaction_of(channel, slot_of(entry)).accepted
        if accepted < oldest:
            pick, oldest = j, accepted
    if pick < 0 and c.refreshes == 0:
        queue = c.writing
        first, waiting = first_entry(channel, queue), 0  # banks that are not ready, as bits
        for j in range(queue_length(channel, queue)):
            place = place_of(get_int(first, j))
            bank = place & 31
            if waiting >> bank & 1 or bank_of(channel, bank).open != place:
                continue
            ready = column_ready(channel, bank, queue)
            if ready <= clock:
                pick = j
                break
            waiting |= 1 << bank
            wake = min(wake, ready)
    if pick < 0:
        c.column_wake = wake
        return
    c.column_wake = clock + 1
    entry = get_int(first_entry(channel, queue), pick)
    remove_entry(channel, queue, pick)
    if queue_of(entry) == READS:
        _read(channel, place_of(entry) & 31)
        complete_read(channel, slot_of(entry), clock + timing_at(c.timing).read_data)
    else:
        _write(channel, place_of(entry) & 31)
        complete(channel, slot_of(entry), clock)
    if queue == ACTIVE:
        _unpin(channel, place_of(entry) & 31)
    else:
        c.hits += 1
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
    pc_of(channel, bank).pinned -= 1
    c.row_wake = min(c.row_wake, max(b.close, c.row_bus))
