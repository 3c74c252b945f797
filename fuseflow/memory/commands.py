"""The commands of a channel: a cycle has a column slot for one RD or WR, and a row slot for one ACT, PRE, PREab or REFab."""

from __future__ import annotations

from fuseflow.memory.channel import (
    ACTS_AT,
    CLOSES_AT,
    FAR,
    OPEN_AT,
    OPENED_AT,
    PCS,
    QUEUE,
    READS,
    WRITES,
    active_entry,
    banks_for_row_commands,
    channel_at,
    columns,
    next_row_command,
    pc_of,
    pin,
    pinned_banks,
    place_of,
    postpone,
    postpone_all,
    postpone_pc,
    queue_of,
    row_ready,
    slot_of,
    timing_at,
    transaction_of,
    unpin,
)
from fuseflow.memory.ports import FOREVER
from fuseflow.memory.queues import (
    complete,
    entry_in,
    first_hit,
    first_other,
    note_closed,
    note_opened,
    note_unpinned,
    remove_entry,
    waiting_of,
)
from fuseflow.native.records import at_most, get_int, inline, least, outline, set_int, trailing_zeros

HIGH = 8 * QUEUE // 10
"""The controller turns to writes when more than this many are queued, which is more than 0.8 of the queue."""
LOW = -(-2 * QUEUE // 10)
"""The controller turns back to reads when fewer than this many writes are queued, which is fewer than 0.2 of the queue."""


@inline
def flips(channel: int) -> bool:
    """Return whether the controller of a channel switches from reads to writes or back. Writes wait until there are many, or no reads."""
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
    """Return the bank of a set whose active request was accepted first, and of several such the bank whose row was opened first."""
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
    """Issue the next command of a channel's pending refreshes, pseudo channel 0 first: PREab while a bank is open, and then REFab."""
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
