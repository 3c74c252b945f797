"""The row slot of a cycle, in which at most one ACT, PRE, PREab or REFab is issued."""

from __future__ import annotations

from fuseflow.sim.memory.channel import (
    BANKS,
    PCS,
    append_active,
    bank_of,
    channel_at,
    group_of,
    pc_of,
    place_of,
    timing_at,
)
from fuseflow.sim.memory.ports import FOREVER
from fuseflow.sim.memory.readiness import row_ready
from fuseflow.sim.memory.waiting_requests import closed_in, entry_in, note_closed, note_opened, of_bank, remove_entry, waiting_of
from fuseflow.sim.native.records import inline, trailing_zeros


@inline
def row_slot(channel: int) -> None:
    """Issue a row command for the oldest request that is ready: ACT if its bank is closed, or PRE if another row is open and no request
    is to be served there."""
    c = channel_at(channel)
    clock, queue, wake = c.clock, c.writing, FOREVER
    rows = waiting_of(channel, queue).rows
    for pc in range(PCS):  # one that takes no ACT yet has nothing for closed banks
        act = pc_of(channel, pc << 4).act
        if act > clock:
            waiting = rows & closed_in(channel, queue, pc)
            if waiting != 0:
                rows ^= waiting
                wake = min(wake, max(act, c.row_bus))
    while rows != 0:
        position = trailing_zeros(rows)
        entry = entry_in(channel, queue, position)
        bank = place_of(entry) & 31
        ready = row_ready(channel, bank)
        if ready > clock:
            rows &= ~of_bank(channel, queue, bank)
            wake = min(wake, ready)
            continue
        if bank_of(channel, bank).open >= 0:
            _close(channel, bank)
            wake = clock + 1
        else:
            remove_entry(channel, queue, position)
            append_active(channel, entry)
            _activate(channel, place_of(entry))
            wake = c.row_bus
        break
    c.row_wake = wake


@inline
def _close(channel: int, bank: int) -> None:
    c, b, p = channel_at(channel), bank_of(channel, bank), pc_of(channel, bank)
    clock, after = c.clock, timing_at(c.timing)
    b.open, b.conflict = -1, 1
    note_closed(channel, bank)
    p.opened -= 1
    b.act = max(b.act, clock + after.close_to_act)
    p.refresh = max(p.refresh, clock + after.close_to_refresh)


@inline
def _activate(channel: int, place: int) -> None:
    bank = place & 31
    c, b, g, p = channel_at(channel), bank_of(channel, bank), group_of(channel, bank), pc_of(channel, bank)
    clock, after = c.clock, timing_at(c.timing)
    c.conflicts += b.conflict
    c.misses += 1 - b.conflict
    b.open, b.conflict, b.pinned = place, 0, 1
    note_opened(channel, place)
    p.opened += 1
    p.pinned += 1
    p.act = max(p.act, clock + after.act_to_act_far, p.act_3 + after.four_acts)
    p.act_3, p.act_2, p.act_1 = p.act_2, p.act_1, clock
    p.close = max(p.close, clock + after.act_to_close)
    p.refresh = max(p.refresh, clock + after.act_to_refresh)
    g.act = max(g.act, clock + after.act_to_act_near)
    b.act = max(b.act, clock + after.act_to_act)
    b.close = max(b.close, clock + after.act_to_close)
    b.read = max(b.read, clock + after.act_to_read)
    b.write = max(b.write, clock + after.act_to_write)
    c.row_bus = clock + after.act_on_bus
    c.column_wake = min(c.column_wake, clock + min(after.act_to_read, after.act_to_write))


@inline
def refresh_slot(channel: int) -> None:
    """Issue the next command of the pending refreshes, those of PC 0 first: PREab while a bank is open, and then REFab."""
    c = channel_at(channel)
    clock, after = c.clock, timing_at(c.timing)
    bank = (PCS - c.refreshes) * (BANKS // PCS)
    p = pc_of(channel, bank)
    ready = max(p.close if p.opened > 0 else p.refresh, c.row_bus)
    c.row_wake = max(ready, clock + 1)
    if ready > clock:
        return
    if p.opened == 0:
        p.act = max(p.act, clock + after.refresh_to_act)
        p.close = max(p.close, clock + after.refresh_to_close)
        c.refreshes -= 1
        if c.refreshes == 0:
            c.column_wake = clock + 1
            c.refreshing += clock + after.refresh_to_act - c.refresh_due
    elif p.pinned == 0:
        for k in range(bank, bank + BANKS // PCS):
            bank_of(channel, k).open = -1
            note_closed(channel, k)
        p.opened = 0
        p.act = max(p.act, clock + after.close_to_act)
        p.refresh = max(p.refresh, clock + after.close_to_refresh)
