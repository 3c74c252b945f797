"""The commands of a channel: a cycle has a column slot for one RD or WR, and a row slot for one ACT, PRE, PREab or REFab."""

from __future__ import annotations

from fuseflow.memory.channel import (
    ACCEPTED_AT,
    ACTIVE_AT,
    FAR,
    GROUPS_AT,
    NEAR,
    OPEN_AT,
    OPENED_AT,
    PCS,
    QUEUE,
    READS,
    ROWS_AT,
    WRITES,
    channel_at,
    columns,
    far_banks,
    first_cycle,
    near_banks,
    next_row_command,
    pc_of,
    pin,
    pinned_banks,
    postpone,
    ready_banks,
    row_ready,
    timing_at,
    unpin,
)
from fuseflow.memory.queues import (
    complete,
    first_hit,
    first_other,
    note_closed,
    note_opened,
    note_unpinned,
    place_at,
    remove_request,
    slot_at,
    waiting_of,
)
from fuseflow.native.records import get_int, inline, outline, set_int, trailing_zeros

HIGH = 8 * QUEUE // 10
"""The controller turns to writes when more than this many are queued, which is more than 0.8 of the queue."""
LOW = -(-2 * QUEUE // 10)
"""The controller turns back to reads when fewer than this many writes are queued, which is fewer than 0.2 of the queue."""


@inline
def flips(channel: int) -> bool:
    """Return whether the controller of a channel switches from reads to writes or back. Writes wait until there are many, or no reads.
    During a refresh nothing is switched."""
    c = channel_at(channel)
    if c.writing == 0:
        return bool((c.queued_writes > HIGH or c.queued_reads == 0) and c.refreshes == 0)
    return bool(c.queued_writes < LOW and c.queued_reads != 0 and c.refreshes == 0)


@inline
def column_slot(channel: int) -> None:
    """Issue the RD or WR of this cycle, if a request is ready, and note the first cycle in which the next one may be issued."""
    c = channel_at(channel)
    queue = c.writing
    ready = ready_banks(channel, columns(channel, queue))
    active, others, hits = ready & pinned_banks(channel, queue), pinned_banks(channel, 1 - queue), ready & _hit_banks(channel)
    if others != 0:
        active |= others & ready_banks(channel, columns(channel, 1 - queue))
    if active != 0:
        _serve_active(channel, _oldest_active(channel, active))
    elif hits != 0:
        position = first_hit(channel, queue, hits)
        bank, slot = place_at(channel, queue, position) & 31, slot_at(channel, queue, position)
        remove_request(channel, queue, position)
        c.hits += 1
        _serve(channel, bank, queue, slot)
        if flips(channel):  # before the row slot of the same cycle
            c.writing = 1 - c.writing
            c.row_wake = c.clock
    c.column_wake = _next_column(channel)


@inline
def _serve_active(channel: int, bank: int) -> None:
    """Issue the RD or WR for which the row of a bank was opened. The bank may be closed again."""
    c = channel_at(channel)
    queue = pinned_banks(channel, WRITES) >> bank & 1
    unpin(channel, bank, queue)
    note_unpinned(channel, bank)
    _serve(channel, bank, queue, get_int(channel + ACTIVE_AT, bank))
    c.row_wake = min(c.row_wake, row_ready(channel, bank))


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
    cycle: int = first_cycle(channel, columns(channel, queue), banks, c.clock + 1)
    if others != 0:
        cycle = min(cycle, first_cycle(channel, columns(channel, 1 - queue), others, c.clock + 1))
    return cycle


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
    cycle: int = get_int(channel + ACCEPTED_AT, bank)
    return cycle


@inline
def _opened(channel: int, bank: int) -> int:
    cycle: int = get_int(channel + OPENED_AT, bank)
    return cycle


@inline
def _serve(channel: int, bank: int, queue: int, slot: int) -> None:
    """Issue the RD or WR of the request of a queue in a slot of the pool, and complete the request."""
    c = channel_at(channel)
    done = c.clock
    if queue == READS:
        _read(channel, bank)
        c.last_data = max(c.last_data, c.clock + timing_at(c.timing).read_data)  # data leave in order
        done = c.last_data
    else:
        _write(channel, bank)
    complete(channel, slot, done)


@inline
def _read(channel: int, bank: int) -> None:
    c, p, reads, writes = channel_at(channel), pc_of(channel, bank), columns(channel, READS), columns(channel, WRITES)
    clock, after, far = c.clock, timing_at(c.timing), far_banks(bank)
    postpone(channel, reads, far, clock + after.same_far)
    postpone(channel, reads, near_banks(bank), clock + after.same_near)
    postpone(channel, writes, far, clock + after.read_to_write)
    postpone(channel, channel + ROWS_AT, 1 << bank, clock + after.read_to_close)
    c.turnarounds += p.read < p.write
    p.read = clock


@inline
def _write(channel: int, bank: int) -> None:
    c, p, reads, writes = channel_at(channel), pc_of(channel, bank), columns(channel, READS), columns(channel, WRITES)
    clock, after, near, far = c.clock, timing_at(c.timing), near_banks(bank), far_banks(bank)
    postpone(channel, writes, far, clock + after.same_far)
    postpone(channel, writes, near, clock + after.same_near)
    postpone(channel, reads, far, clock + after.write_to_read_far)
    postpone(channel, reads, near, clock + after.write_to_read_near)
    postpone(channel, channel + ROWS_AT, 1 << bank, clock + after.write_to_close)
    c.turnarounds += p.write < p.read
    p.write = clock


@inline
def row_slot(channel: int) -> None:
    """Issue a row command of a channel for the oldest request that is ready: ACT if its bank is closed, or PRE if another row is
    open and the bank is not pinned."""
    c = channel_at(channel)
    queue = c.writing
    q = waiting_of(channel, queue)
    ready = q.row_banks & ready_banks(channel, channel + ROWS_AT) if q.row_banks != 0 and c.row_bus <= c.clock else 0
    if ready != 0:
        position = first_other(channel, queue, ready)
        place = place_at(channel, queue, position)
        if c.opened >> (place & 31) & 1:
            _close(channel, place & 31)
        else:
            slot = slot_at(channel, queue, position)
            remove_request(channel, queue, position)
            _activate(channel, place, queue, slot)
            if flips(channel):  # perhaps not any more after the next acceptance
                c.accept_wake = c.clock + 1
    c.row_wake = next_row_command(channel, q.row_banks)


@inline
def _close(channel: int, bank: int) -> None:
    c, p = channel_at(channel), pc_of(channel, bank)
    set_int(channel + OPEN_AT, bank, -1)
    c.opened &= ~(1 << bank)
    c.conflicted |= 1 << bank
    note_closed(channel, bank)
    _postpone_act(channel, bank)
    p.close = c.clock


@inline
def _postpone_act(channel: int, bank: int) -> None:
    """Postpone the next ACT of a bank that is closed now, as its PRE and earlier ACTs demand."""
    c, after = channel_at(channel), timing_at(channel_at(channel).timing)
    own = get_int(channel + OPENED_AT, bank) + after.act_to_act
    near = get_int(channel + GROUPS_AT, bank // NEAR) + after.act_to_act_near
    cycle = max(c.clock + after.close_to_act, own, near, pc_of(channel, bank).next_act)
    postpone(channel, channel + ROWS_AT, 1 << bank, cycle)


@outline
def _close_all(channel: int, first: int) -> None:
    """Close all banks of the pseudo channel whose first bank is `first`."""
    for bank in range(first, first + FAR):
        channel_at(channel).opened &= ~(1 << bank)
        set_int(channel + OPEN_AT, bank, -1)
        note_closed(channel, bank)
        _postpone_act(channel, bank)


@inline
def _activate(channel: int, place: int, queue: int, slot: int) -> None:
    """Issue the ACT that opens the row `place` for the request of a queue in a slot of the pool, pin the bank, and postpone other
    commands accordingly."""
    bank, rows = place & 31, channel + ROWS_AT
    c, p = channel_at(channel), pc_of(channel, bank)
    clock, after = c.clock, timing_at(c.timing)
    conflicted = c.conflicted >> bank & 1
    c.conflicts += conflicted
    c.misses += 1 - conflicted
    c.conflicted &= ~(1 << bank)
    c.opened |= 1 << bank
    set_int(channel + OPEN_AT, bank, place)
    pin(channel, bank, queue, slot)
    note_opened(channel, place)
    p.next_act = max(clock + after.act_to_act_far, p.act_3 + after.four_acts)
    set_int(channel + OPENED_AT, bank, clock)
    set_int(channel + GROUPS_AT, bank // NEAR, clock)
    postpone(channel, rows, far_banks(bank) & ~c.opened, p.next_act)
    postpone(channel, rows, near_banks(bank) & ~c.opened, clock + after.act_to_act_near)
    postpone(channel, rows, 1 << bank, clock + after.act_to_close)
    postpone(channel, columns(channel, READS), 1 << bank, clock + after.act_to_read)
    postpone(channel, columns(channel, WRITES), 1 << bank, clock + after.act_to_write)
    p.act_3, p.act_2, p.act_1 = p.act_2, p.act_1, clock
    c.row_bus = clock + after.act_on_bus
    c.column_wake = min(c.column_wake, clock + min(after.act_to_read, after.act_to_write))


@inline
def refresh_slot(channel: int) -> None:
    """Issue the next command of a channel's pending refreshes, pseudo channel 0 first: PREab while a bank is open, and then REFab."""
    c = channel_at(channel)
    clock, after = c.clock, timing_at(c.timing)
    bank = (PCS - c.refreshes) * FAR
    p, banks = pc_of(channel, bank), far_banks(bank)
    opened = c.opened & banks
    if opened != 0:
        ready = max(p.read + after.read_to_close, p.write + after.write_to_close, p.act_1 + after.act_to_close, c.row_bus)
        ready = max(ready, p.refresh + after.refresh_to_close)
    else:
        ready = max(p.act_1 + after.act_to_refresh, p.close + after.close_to_refresh, c.row_bus)
    c.row_wake = max(ready, clock + 1)
    if ready > clock:
        return
    if opened == 0:
        postpone(channel, channel + ROWS_AT, banks, clock + after.refresh_to_act)
        p.refresh = clock
        c.refreshes -= 1
        if c.refreshes == 0:
            c.column_wake = c.accept_wake = clock + 1
            c.refreshing += clock + after.refresh_to_act - c.refresh_due
    elif (pinned_banks(channel, READS) | pinned_banks(channel, WRITES)) & banks == 0:
        _close_all(channel, bank)
        p.close = clock
