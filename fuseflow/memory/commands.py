"""The commands of a channel, and how each changes its state."""

from __future__ import annotations

from fuseflow.memory.channel import (
    ACT,
    COMMANDS,
    NONE,
    PLACE_BANK,
    PRE,
    PREAB,
    RD,
    READS,
    REF,
    SHAPE,
    UNIT_SIZE,
    WRITES,
    add_bank,
    bank_cycle,
    channel_at,
    discard_bank,
    edge,
    first_cycle,
    has_bank,
    issue,
    limit_acts,
    of_queue,
    pinned_banks,
    ready_banks,
    transaction_of,
    unit_at,
)
from fuseflow.memory.ports import FOREVER
from fuseflow.memory.queues import (
    complete,
    note_closed,
    note_opened,
    note_unpinned,
    place_at,
    remove_request,
    slot_at,
)
from fuseflow.native.records import LANES, get_int, get_short, inline, latest, outline, set_int, trailing_zeros

# RD and WR


@inline
def oldest_active(channel: int) -> int:
    """Return the bank whose active request may have its RD or WR now and was accepted first, or -1. Of several such it is the bank whose
    row was opened first."""
    bank, queue = -1, channel_at(channel).writing
    for w in range(SHAPE.bank_words):
        active = get_int(channel + of_queue(SHAPE.pinned, queue), w) & ready_banks(channel, queue, w)
        others = get_int(channel + of_queue(SHAPE.pinned, 1 - queue), w)
        if others != 0:
            active |= others & ready_banks(channel, 1 - queue, w)
        while active != 0:
            other = LANES * w + trailing_zeros(active)
            active &= active - 1
            if bank < 0 or _is_older(channel, other, bank):
                bank = other
    return bank


@inline
def _is_older(channel: int, bank: int, other: int) -> bool:
    """Return whether the active request of a bank goes before that of another bank."""
    accepted, others = get_int(channel + SHAPE.accepted, bank), get_int(channel + SHAPE.accepted, other)
    if accepted != others:
        return bool(accepted < others)
    acts = channel + SHAPE.past + 2 * LANES * SHAPE.bank_words * ACT
    return bool(get_short(acts, bank) < get_short(acts, other))


@inline
def serve_active(channel: int, bank: int) -> None:
    """Issue the RD or WR for which the row of a bank was opened. The bank may be closed again."""
    c = channel_at(channel)
    queue = 1 if has_bank(channel, of_queue(SHAPE.pinned, WRITES), bank) else 0
    discard_bank(channel, of_queue(SHAPE.pinned, queue), bank)
    note_unpinned(channel, bank)
    _serve(channel, bank, queue, get_int(channel + SHAPE.active, bank))
    c.row_wake = min(c.row_wake, c.clock if c.refreshes > 0 else bank_cycle(channel, PRE, bank))


@inline
def serve_queued(channel: int, position: int) -> None:
    """Issue the RD or WR of a request at a position of the served queue."""
    c = channel_at(channel)
    queue = c.writing
    bank, slot = place_at(channel, queue, position) & PLACE_BANK, slot_at(channel, queue, position)
    remove_request(channel, queue, position)
    c.hits += 1 - transaction_of(channel, slot).next
    _serve(channel, bank, queue, slot)


@inline
def _serve(channel: int, bank: int, queue: int, slot: int) -> None:
    """Issue the RD or WR of the request of a queue in a slot of the pool, and complete the request."""
    c = channel_at(channel)
    done = c.clock
    issue(channel, queue, bank, last=PRE if SHAPE.apart != 0 else ACT)
    if queue == READS:
        c.last_data = max(c.last_data, c.clock + c.read_latency)  # data leave in order
        done = c.last_data
    _drive(channel, bank, queue)
    complete(channel, slot, done)


@inline
def _drive(channel: int, bank: int, queue: int) -> None:
    """Note in which direction data go on the bus of a bank."""
    c = channel_at(channel)
    directions, bus = channel + SHAPE.directions, bank >> c.bus_shift
    before = get_int(directions, bus)
    c.turnarounds += before == 2 - queue
    set_int(directions, bus, queue + 1)


@inline
def next_column(channel: int) -> int:
    """Return the first cycle after this one in which a RD or a WR may be issued, or FOREVER if no request waits for one."""
    c = channel_at(channel)
    queue, soonest, cycle = c.writing, edge(c.clock + 1), FOREVER
    for w in range(SHAPE.bank_words):
        banks = get_int(channel + of_queue(SHAPE.pinned, queue), w)
        others = get_int(channel + of_queue(SHAPE.pinned, 1 - queue), w)
        if c.refreshes == 0:
            banks |= get_int(channel + of_queue(SHAPE.hit_banks, queue), w)
        cycle = min(cycle, first_cycle(channel, w, queue, banks, 1 - queue, others, soonest))
    return edge(cycle)


# ACT and PRE


@inline
def open_or_close(channel: int, position: int) -> None:
    """Issue the ACT of the request at a position of the served queue, or the PRE of its bank if another row is open."""
    c = channel_at(channel)
    queue = c.writing
    place, slot = place_at(channel, queue, position), slot_at(channel, queue, position)
    t = transaction_of(channel, slot)
    if has_bank(channel, SHAPE.opened, place & PLACE_BANK):
        c.conflicts += 1 - t.next
        t.next = 1
        c.closes += 1
        issue(channel, PRE, place & PLACE_BANK, first=ACT if SHAPE.apart != 0 else RD)
        _close(channel, place & PLACE_BANK)
    else:
        c.misses += 1 - t.next
        remove_request(channel, queue, position)
        _activate(channel, place, queue, slot)


@inline
def _close(channel: int, bank: int) -> None:
    set_int(channel + SHAPE.open_places, bank, -1)
    discard_bank(channel, SHAPE.opened, bank)
    note_closed(channel, bank)


@inline
def _activate(channel: int, place: int, queue: int, slot: int) -> None:
    """Issue the ACT that opens the row `place` for the request of a queue in a slot of the pool, and pin the bank."""
    c, bank = channel_at(channel), place & PLACE_BANK
    c.activations += 1
    add_bank(channel, SHAPE.opened, bank)
    set_int(channel + SHAPE.open_places, bank, place)
    set_int(channel + SHAPE.active, bank, slot)
    set_int(channel + SHAPE.accepted, bank, transaction_of(channel, slot).accepted)
    add_bank(channel, of_queue(SHAPE.pinned, queue), bank)
    note_opened(channel, place)
    issue(channel, ACT, bank)
    limit_acts(channel, bank)
    c.column_wake = min(c.column_wake, bank_cycle(channel, queue, bank))


@inline
def next_row_command(channel: int, opens: int) -> int:
    """Return the first cycle after this one in which a PRE or, with `opens` (1, else 0), an ACT may be issued for the served queue, or
    FOREVER if no request waits for one."""
    c = channel_at(channel)
    at, cycle = of_queue(SHAPE.row_banks, c.writing), FOREVER
    for w in range(SHAPE.bank_words):
        banks, opened = get_int(channel + at, w), get_int(channel + SHAPE.opened, w)
        closed = banks & ~opened & -opens
        if SHAPE.edges == 0:
            cycle = min(cycle, first_cycle(channel, w, PRE, banks & opened, ACT, closed, c.clock + 1))
        elif banks != 0:
            cycle = min(cycle, first_cycle(channel, w, PRE, banks & opened, ACT, 0, c.clock + 1))
            cycle = min(cycle, edge(first_cycle(channel, w, PRE, 0, ACT, closed, edge(c.clock + 1))))
    return cycle


# Refresh


@outline
def issue_refresh(channel: int) -> bool:
    """Issue the next command of the first pending refresh, if it is ready: PRE or PREab while a bank is open, and then REF. Return whether
    a command was issued, and set the wake-up for the next one."""
    c = channel_at(channel)
    unit = c.units + UNIT_SIZE * c.refreshed_unit
    u, single = unit_at(unit), unit_at(unit).alone != 0
    opened, pinned = 0, 0
    for w in range(SHAPE.bank_words):
        banks = get_int(unit, w)
        opened |= banks & get_int(channel + SHAPE.opened, w)
        pinned |= banks & pinned_banks(channel, w)
    if opened != 0 and single:
        ready = bank_cycle(channel, PRE, u.bank)
    elif opened != 0:
        ready = _refresh_cycle(channel, PREAB)
    else:
        ready = edge(max(_refresh_cycle(channel, REF), c.clock))
    c.row_wake = FOREVER if pinned != 0 else max(ready, c.clock + 1)
    if pinned != 0 or ready > c.clock:
        return False
    if opened == 0:
        _refresh(channel)
    elif single:
        c.closes += 1
        issue(channel, PRE, u.bank)
        _close(channel, u.bank)
    else:
        c.closes_of_all += 1
        issue(channel, PREAB, u.bank)
        _close_all(channel, unit)
    return True


@inline
def _refresh_cycle(channel: int, command: int) -> int:
    """Return the earliest cycle of the PREAB or REF of the first pending refresh, from all commands before."""
    c = channel_at(channel)
    row = c.latest + 2 * COMMANDS * LANES * SHAPE.bank_words * (2 * c.refreshed_unit + command - PREAB)
    now = NONE
    for line in range(COMMANDS * SHAPE.bank_words):
        now = max(now, latest(channel + SHAPE.past + 2 * LANES * line, row + 2 * LANES * line))
    cycle: int = c.epoch + now
    return cycle


@inline
def _refresh(channel: int) -> None:
    """Issue the REF of the first pending refresh."""
    c = channel_at(channel)
    issue(channel, REF, unit_at(c.units + UNIT_SIZE * c.refreshed_unit).bank)
    c.refreshes_done += 1
    c.refreshed_unit = (c.refreshed_unit + 1) % c.unit_count
    c.refreshes -= 1
    if c.refreshes == 0:
        c.column_wake = c.accept_wake = c.clock + 1
        c.refreshing += c.clock + c.refresh_end - c.refresh_due


@inline
def _close_all(channel: int, unit: int) -> None:
    """Close all banks of a unit of refreshes."""
    for w in range(SHAPE.bank_words):
        banks = get_int(unit, w) & get_int(channel + SHAPE.opened, w)
        while banks != 0:
            _close(channel, LANES * w + trailing_zeros(banks))
            banks &= banks - 1
