"""DRAM, command by command: banks, bank groups, ranks and pseudo channels, FR-FCFS scheduling, write drain and refresh.

One model runs all tables (`dram_table.py`). The oracle is Ramulator 2.1 (SAFARI Research Group, ETH Zurich and Carnegie Mellon University;
MIT licence; the successor of Luo et al., "Ramulator 2.0", IEEE CAL 2023), with its controllers `GenericDDR`, `HBM12`, `HBM34` and
`LPDDR5`. The model is written anew, without any of its code. It accepts and completes every transaction in the same cycle as
Ramulator (docs/explanation/memory.md).
"""

from __future__ import annotations

from fuseflow.memory.channel import EPOCH, UNIT_SIZE, begin_epoch, channel_at, unit_at
from fuseflow.memory.controllers import note_accepted, tick_two_buses
from fuseflow.memory.mapping import DIGIT, DIGIT_BITS, DIGITS, PLACE_BITS
from fuseflow.memory.ports import (
    LATE,
    arrival,
    memory_at,
    port_at,
    request_at,
    settle,
)
from fuseflow.memory.queues import accept, enqueue
from fuseflow.memory.sending import head_of, mark_sent, next_port, start_sending
from fuseflow.native.records import Record, get_int, inline, outline

DRAM = Record("channels count places unit_bits")
"""The state of the model: the addresses of the channels' addresses and the mapping's tables, and the bits of a transaction's bytes."""
dram_at = DRAM.at
tick = tick_two_buses
"""The cycle of a controller: a name that the kernels of other controllers have with another function."""


def advance_dram(memory: int, until: int) -> int:
    """Run all channels of the memory at an address to cycle `until` of the ports. Returns 0, or 1 + the number of a channel whose
    pool needs room before it can continue, or LATE if a request is older than the last window."""
    model = dram_at(memory_at(memory).model)
    if start_sending(memory, until) == LATE:
        return LATE
    port = next_port(memory, until)
    while port != 0:
        short = _send(memory, port)
        if short != 0:
            return short
        port = next_port(memory, until)
    end = arrival(memory, until)
    for k in range(model.count):
        advance_channel(get_int(model.channels, k), end)
    settle(memory, until)
    return 0


@inline
def _send(memory: int, port: int) -> int:
    """Put the transactions of a port's first unsent request into the channels' FIFOs. Returns 0, or 1 + the number of a full channel."""
    model, p = dram_at(memory_at(memory).model), port_at(port)
    r = request_at(head_of(port))
    cycle = arrival(memory, r.cycle)
    first, last = r.address >> model.unit_bits, (r.address + r.bytes - 1) >> model.unit_bits
    if p.part == 0:
        r.left = last - first + 1
    for unit in range(first + p.part, last + 1):
        packed = packed_place(model.places, unit)
        k = packed >> PLACE_BITS
        channel = get_int(model.channels, k)
        if channel_at(channel).room == 0:
            return k + 1
        enqueue(channel, cycle, unit, packed & ((1 << PLACE_BITS) - 1), r.write, port, p.sent)
        p.part += 1
    p.transactions += p.part
    mark_sent(memory, port)
    return 0


@inline
def packed_place(places: int, unit: int) -> int:
    """Return channel, row and bank of the transaction `unit`, packed as in the module `mapping`, from its tables at `places`."""
    packed = 0
    for k in range(DIGITS):
        packed ^= get_int(places, DIGIT * k + (unit >> DIGIT_BITS * k & DIGIT - 1))
    return packed


@inline
def advance_channel(channel: int, end: int) -> None:
    """Run a channel to memory cycle `end`. Requests that arrive at `end` or later may be enqueued afterwards."""
    c = channel_at(channel)
    cycle = min(c.deadline, c.accept_wake, c.column_wake, c.row_wake)  # nothing can happen before
    while cycle <= end:
        c.clock = cycle
        if cycle == c.deadline:
            _meet_deadline(channel)
        if cycle >= c.accept_wake:
            accept(channel)
            note_accepted(channel)
        tick(channel)
        cycle = min(c.deadline, c.accept_wake, c.column_wake, c.row_wake)
    c.clock = max(c.clock, end)


@outline
def _meet_deadline(channel: int) -> None:
    """Put the refreshes that are due on the list, and begin another epoch if this one ends."""
    c = channel_at(channel)
    if c.clock >= c.epoch + EPOCH:
        begin_epoch(channel)
    while c.next_refresh == c.clock:
        if c.refreshes == 0:
            c.refresh_due = c.clock
        c.refreshes += 1
        c.column_wake = c.row_wake = c.clock
        c.next_refresh += unit_at(c.units + UNIT_SIZE * c.added_unit).gap
        c.added_unit = (c.added_unit + 1) % c.unit_count
    c.deadline = min(c.next_refresh, c.epoch + EPOCH)
