"""The controllers of a channel: which commands a cycle may have, and in which order they are tried.

All serve the oldest request that is ready: an active request, else the first pending refresh, else a request of the served queue. A
request that is not ready blocks no younger one. HBM has a bus for RD and WR, and another for all other commands. The other
controllers have one bus.
"""

from __future__ import annotations

from fuseflow.memory.channel import SHAPE, channel_at, edge, transaction_of
from fuseflow.memory.commands import (
    issue_refresh,
    next_column,
    next_row_command,
    oldest_active,
    open_or_close,
    serve_active,
    serve_queued,
)
from fuseflow.memory.queues import NOWHERE, first_hit, first_other, position_of, slot_at
from fuseflow.native.records import get_int, inline


@inline
def flips(channel: int) -> bool:
    """Return whether the controller of a channel switches from reads to writes or back. Writes wait until there are many, or no reads.
    During a refresh nothing is switched."""
    c = channel_at(channel)
    if c.writing == 0:
        return bool((c.queued_writes > c.high or c.queued_reads == 0) and c.refreshes == 0)
    return bool(c.queued_writes < c.low and c.queued_reads != 0 and c.refreshes == 0)


@inline
def note_accepted(channel: int) -> None:
    """Wake the controller if it switches once requests are accepted: always with two buses, with one bus only if it tries the queues."""
    c = channel_at(channel)
    if flips(channel):
        if SHAPE.one_bus == 0:
            c.writing = 1 - c.writing
        c.column_wake = c.row_wake = c.clock


# HBM


@inline
def tick_two_buses(channel: int) -> None:
    """Run a cycle with a bus for RD and WR and one for other commands. In HBM3 and HBM4 a cycle is half a clock, and even cycles may have
    a PRE only."""
    c = channel_at(channel)
    if c.clock >= c.column_wake:
        if edge(c.clock) == c.clock:
            _column_slot(channel)
        else:
            c.column_wake = c.clock + 1
    if c.clock >= c.row_wake:
        if c.refreshes > 0:
            issue_refresh(channel)
        else:
            _row_slot(channel)


@inline
def _column_slot(channel: int) -> None:
    """Issue the RD or WR of this cycle, if a request is ready, and note the first cycle in which the next one may be issued."""
    c = channel_at(channel)
    bank = oldest_active(channel)
    if bank >= 0:
        serve_active(channel, bank)
    elif c.refreshes == 0:
        position = first_hit(channel, c.writing)
        if position != NOWHERE:
            serve_queued(channel, position)
            if flips(channel):  # before the row slot of the same cycle
                c.writing = 1 - c.writing
                c.row_wake = c.clock
    c.column_wake = next_column(channel)


@inline
def _row_slot(channel: int) -> None:
    """Issue a row command of a channel for the oldest request that is ready: ACT if its bank is closed, or PRE if another row is
    open and the bank is not pinned."""
    c = channel_at(channel)
    position = first_other(channel, c.writing, 1 if edge(c.clock) == c.clock else 0)
    if position != NOWHERE:
        open_or_close(channel, position)
        if flips(channel):  # perhaps not any more after the next acceptance
            c.accept_wake = c.clock + 1
    c.row_wake = next_row_command(channel, 1)


# One bus


@inline
def tick_one_bus(channel: int) -> None:
    """Run a cycle that has one command of any kind."""
    c = channel_at(channel)
    if c.clock < c.column_wake and c.clock < c.row_wake:
        return
    bank = oldest_active(channel)
    if bank >= 0:
        serve_active(channel, bank)
    elif c.refreshes > 0:
        issue_refresh(channel)
    else:
        _switch(channel)
        hit, other = first_hit(channel, c.writing), first_other(channel, c.writing, 1)
        if hit < other:
            serve_queued(channel, hit)
        elif other != NOWHERE:
            open_or_close(channel, other)
    _wake_later(channel, 1)


@inline
def _switch(channel: int) -> None:
    c = channel_at(channel)
    if flips(channel):
        c.writing = 1 - c.writing


@inline
def _wake_later(channel: int, opens: int) -> None:
    """Note the first cycle in which the next command may be issued. ACTs count if `opens` is 1."""
    c = channel_at(channel)
    c.column_wake = next_column(channel)
    c.row_wake = max(c.row_wake, c.clock + 1) if c.refreshes > 0 else next_row_command(channel, opens)
    if flips(channel):
        c.row_wake = c.clock + 1


@inline
def tick_lpddr5(channel: int) -> None:
    """Run a cycle of LPDDR5, which has one command of any kind. An ACT is ACT1, and ACT2 follows when nothing else can be issued, at the
    latest `activation` cycles later. A RD or WR while the data clock stands is a CAS, which the RD or WR follows at once."""
    c = channel_at(channel)
    if c.clock < c.column_wake and c.clock < c.row_wake:
        return
    opens, issued = 1 - c.opening, True
    if c.chosen >= 0:
        _serve(channel, c.chosen_bank, c.chosen)
        c.chosen = -1
    elif c.opening != 0 and c.clock >= c.opened + c.activation:
        c.opening = 0
    else:
        bank = oldest_active(channel)
        if bank >= 0:
            _access(channel, bank, get_int(channel + SHAPE.active, bank))
        elif c.refreshes > 0:
            issued = issue_refresh(channel)
        else:
            issued = _serve_queue(channel, opens)
        if not issued:
            c.opening = 0
    _wake_later(channel, 1 - c.opening)
    if c.opening != 0 or c.chosen >= 0:
        c.row_wake = c.clock + 1


@inline
def _serve_queue(channel: int, opens: int) -> bool:
    """Issue the next command of the oldest ready request of the served queue, and return whether there is one. ACT1 is tried if
    `opens` is 1."""
    c = channel_at(channel)
    _switch(channel)
    hit, other = first_hit(channel, c.writing), first_other(channel, c.writing, opens)
    if hit < other:
        _access(channel, -1, slot_at(channel, c.writing, hit))
    elif other != NOWHERE:
        before = c.activations
        open_or_close(channel, other)
        if c.activations != before:
            c.opening, c.opened = 1, c.clock
    return hit != other


@inline
def _access(channel: int, bank: int, slot: int) -> None:
    """Issue the RD or WR of the request in a slot of the pool, which is the active request of `bank`, or queued if that is -1. If the
    data clock stands, the CAS is issued instead, or the ACT2 of another bank if it cannot wait for both."""
    c = channel_at(channel)
    if c.clock < c.clocked:
        _serve(channel, bank, slot)
    elif c.opening != 0 and c.clock + 1 >= c.opened + c.activation:
        c.opening = 0
    else:
        c.chosen, c.chosen_bank = slot, bank
        if transaction_of(channel, slot).write == 0:
            c.read_clocks += 1
        else:
            c.write_clocks += 1


@inline
def _serve(channel: int, bank: int, slot: int) -> None:
    """Issue the RD or WR of the request in a slot of the pool, as `_access` does, and keep the data clock running."""
    c = channel_at(channel)
    after = c.after_read if transaction_of(channel, slot).write == 0 else c.after_write
    if bank >= 0:
        serve_active(channel, bank)
    else:
        serve_queued(channel, position_of(channel, c.writing, slot))
    c.clocked = max(c.clocked, c.clock + after)
