"""The column slot of a cycle, in which at most one RD or WR is issued, for the oldest request that is ready."""

from __future__ import annotations

from fuseflow.sim.memory.channel import (
    ACTIVE,
    BANK,
    BANK_SIZE,
    BANKS_AT,
    GROUP,
    GROUP_SIZE,
    GROUPS_AT,
    PC,
    PC_SIZE,
    PCS_AT,
    QUEUE,
    bank_of,
    channel_at,
    first_entry,
    group_of,
    pc_of,
    place_of,
    queue_length,
    remove_entry,
    slot_of,
    timing_at,
    transaction_of,
)
from fuseflow.sim.memory.ports import FOREVER
from fuseflow.sim.memory.queues import complete, complete_read
from fuseflow.sim.native.records import get_int, inline

OF_BANK, OF_GROUP, OF_PC = BANKS_AT + BANK.offset("read"), GROUPS_AT + GROUP.offset("read"), PCS_AT + PC.offset("read")
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
        t = transaction_of(channel, slot_of(entry))
        ready = column_ready(channel, place_of(entry) & 31, t.write)
        if ready > clock:
            wake = min(wake, ready)
        elif t.accepted < oldest:
            pick, oldest = j, t.accepted
    if pick < 0 and c.refreshes == 0:
        queue = c.writing
        first = first_entry(channel, queue)
        for j in range(queue_length(channel, queue)):
            place = place_of(get_int(first, j))
            if bank_of(channel, place & 31).open == place:
                ready = column_ready(channel, place & 31, queue)
                if ready <= clock:
                    pick = j
                    break
                wake = min(wake, ready)
    if pick < 0:
        c.column_wake = wake
        return
    c.column_wake = clock + 1
    entry = get_int(first_entry(channel, queue), pick)
    remove_entry(channel, queue, pick)
    if transaction_of(channel, slot_of(entry)).write == 0:
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
def column_ready(channel: int, bank: int, write: int) -> int:
    """Return the earliest cycle of a RD (or, with `write`, of a WR) of the bank's open row."""
    of_bank: int = get_int(channel + OF_BANK + BANK_SIZE * bank, write)
    of_group: int = get_int(channel + OF_GROUP + GROUP_SIZE * (bank >> 2), write)
    of_pc: int = get_int(channel + OF_PC + PC_SIZE * (bank >> 4), write)
    return max(of_bank, of_group, of_pc)


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
