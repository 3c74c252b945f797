"""The row slot of a cycle, in which at most one ACT, PRE, PREab or REFab is issued."""

from __future__ import annotations

from fuseflow.memory.channel import (
    ACTS_AT,
    CLOSES_AT,
    OPEN_AT,
    PCS,
    READS,
    WRITES,
    channel_at,
    pc_of,
    pin,
    pinned_banks,
    place_of,
    timing_at,
)
from fuseflow.memory.ports import FOREVER
from fuseflow.memory.readiness import (
    FAR,
    banks_for_row_commands,
    columns,
    next_row_command,
    postpone,
    postpone_all,
    postpone_pc,
)
from fuseflow.memory.waiting_requests import entry_in, first_other, note_closed, note_opened, remove_entry, waiting_of
from fuseflow.native.records import inline, outline, set_int


@inline
def row_slot(channel: int) -> None:
    """Issue a row command of a channel for the oldest request that is ready: ACT if its bank is closed, or PRE if another row is
    open and the bank is not pinned."""
    c = channel_at(channel)
    queue = c.writing
    q = waiting_of(channel, queue)
    ready = q.row_banks & banks_for_row_commands(channel, c.clock) if q.row_banks != 0 and c.row_bus <= c.clock else 0
    if ready != 0:
        position = first_other(channel, queue, ready)
        entry = entry_in(channel, queue, position)
        if c.opened >> (place_of(entry) & 31) & 1:
            _close(channel, place_of(entry) & 31)
        else:
            remove_entry(channel, queue, position)
            _activate(channel, entry)
    c.row_wake = max(next_row_command(channel, q.row_banks), c.clock + 1) if q.row_banks != 0 else FOREVER


@inline
def _close(channel: int, bank: int) -> None:
    c, p = channel_at(channel), pc_of(channel, bank)
    clock, after = c.clock, timing_at(c.timing)
    set_int(channel + OPEN_AT, bank, -1)
    c.opened &= ~(1 << bank)
    c.conflicted |= 1 << bank
    note_closed(channel, bank)
    postpone(channel + ACTS_AT, bank, clock + after.close_to_act)
    p.refresh = max(p.refresh, clock + after.close_to_refresh)


@outline
def _close_all(channel: int, first: int) -> None:
    """Close all banks of the pseudo channel whose first bank is `first`."""
    for bank in range(first, first + FAR):
        channel_at(channel).opened &= ~(1 << bank)
        set_int(channel + OPEN_AT, bank, -1)
        note_closed(channel, bank)


@inline
def _activate(channel: int, entry: int) -> None:
    """Issue the ACT that opens the row of the request `entry`, pin the bank, and postpone other commands accordingly."""
    place, acts = place_of(entry), channel + ACTS_AT
    bank = place & 31
    c, p = channel_at(channel), pc_of(channel, bank)
    clock, after = c.clock, timing_at(c.timing)
    conflicted = c.conflicted >> bank & 1
    c.conflicts += conflicted
    c.misses += 1 - conflicted
    c.conflicted &= ~(1 << bank)
    c.opened |= 1 << bank
    set_int(channel + OPEN_AT, bank, place)
    pin(channel, entry)
    note_opened(channel, place)
    far = max(clock + after.act_to_act_far, p.act_3 + after.four_acts)
    postpone_pc(acts, bank, clock + after.act_to_act, clock + after.act_to_act_near, far)
    postpone(channel + CLOSES_AT, bank, clock + after.act_to_close)
    postpone(columns(channel, READS), bank, clock + after.act_to_read)
    postpone(columns(channel, WRITES), bank, clock + after.act_to_write)
    p.act_3, p.act_2, p.act_1 = p.act_2, p.act_1, clock
    p.close = max(p.close, clock + after.act_to_close)
    p.refresh = max(p.refresh, clock + after.act_to_refresh)
    c.row_bus = clock + after.act_on_bus
    c.column_wake = min(c.column_wake, clock + min(after.act_to_read, after.act_to_write))


@inline
def refresh_slot(channel: int) -> None:
    """Issue the next command of a channel's pending refreshes, pseudo channel 0 first: PREab while a bank is open, and then
    REFab."""
    c = channel_at(channel)
    clock, after = c.clock, timing_at(c.timing)
    bank = (PCS - c.refreshes) * FAR
    p, banks = pc_of(channel, bank), ((1 << FAR) - 1) << bank
    opened = c.opened & banks
    ready = max(p.close if opened != 0 else p.refresh, c.row_bus)
    c.row_wake = max(ready, clock + 1)
    if ready > clock:
        return
    if opened == 0:
        postpone_all(channel + ACTS_AT, bank, clock + after.refresh_to_act)
        p.close = max(p.close, clock + after.refresh_to_close)
        c.refreshes -= 1
        if c.refreshes == 0:
            c.column_wake = clock + 1
            c.refreshing += clock + after.refresh_to_act - c.refresh_due
    elif (pinned_banks(channel, READS) | pinned_banks(channel, WRITES)) & banks == 0:
        _close_all(channel, bank)
        postpone_all(channel + ACTS_AT, bank, clock + after.close_to_act)
        p.refresh = max(p.refresh, clock + after.close_to_refresh)
