"""The history of the pops of a reader: the cycles in which it took tokens, as runs. From it follow the free slots of a bounded FIFO,
and the peak occupancy of any."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, inline, outline

POPS = Record("first time step")
"""A run of pops: the number of its first token, the cycle of that pop, and the cycles from one pop to the next."""
pops_at, POPS_SIZE = POPS.at, POPS.size
ALWAYS = -(1 << 60)
"""`reach` of a reader whose peak is looked for at the end of every run: see `stream_rings.take`."""
SLOTS_AHEAD = 16
"""The runs of pops that are inspected for free slots."""
DEEP = 8
"""The slots of a FIFO from which on more than one run of pops is inspected."""


@inline
def note_pops(reader: Any, k: int, t: int) -> None:
    """Add k pops from cycle t on to the history of a reader, which consists of runs of pops `step` cycles apart."""
    noted = reader.noted
    if noted > reader.peak_cursor:
        last = pops_at(reader.history + POPS_SIZE * ((noted - 1) & reader.history_mask))
        count = reader.popped - last.first
        if last.time + count * last.step == t and (k == 1 or last.step == 1):
            return
        if count == 1 and k == 1 and noted > reader.sealed:
            last.step = t - last.time
            return
    entry = pops_at(reader.history + POPS_SIZE * (noted & reader.history_mask))
    entry.first = reader.popped
    entry.time = t
    entry.step = 1
    reader.noted = noted + 1
    occupied = noted - min(reader.peak_cursor, reader.slot_cursor)
    if 2 * occupied >= reader.history_mask:
        reader.reach = ALWAYS  # let the cursor follow
        if occupied >= reader.history_mask:
            reader.stalled, reader.until = 1, 0


@inline
def _end(reader: Any, cursor: int) -> int:
    """Return the number of the first token after the run of pops at index `cursor` of the history."""
    if cursor + 1 == reader.noted:
        return reader.popped
    return pops_at(reader.history + POPS_SIZE * ((cursor + 1) & reader.history_mask)).first


@outline
def raise_peak(reader: Any, production: int, cycles_before: int) -> None:
    """Raise the peak to the occupancy when the last token taken was produced, and in each of the `cycles_before` cycles before. Where
    slots are free `back` cycles later, `production` is that cycle less `back`: a pop then counts as if in the cycle of its slot.

    A token holds its slot from its producing firing until the cycle of its pop. In these cycles one token comes in each, so the
    occupancy falls only behind a cycle in which several leave. A run of pops ends in such a cycle, and the ends of all runs are
    enough.
    """
    cursor, start = reader.peak_cursor, production - cycles_before
    while start <= production:
        while cursor < reader.noted:
            entry = pops_at(reader.history + POPS_SIZE * (cursor & reader.history_mask))
            last = entry.time + (_end(reader, cursor) - entry.first - 1) * entry.step
            if last >= start:
                break
            cursor += 1
        cycle, popped = production, reader.popped
        if cursor < reader.noted:
            entry = pops_at(reader.history + POPS_SIZE * (cursor & reader.history_mask))
            cycle, popped = min(cycle, last), entry.first
            if entry.time < cycle:
                elapsed = cycle - entry.time
                popped += elapsed if entry.step == 1 else (elapsed + entry.step - 1) // entry.step
        reader.peak = max(reader.peak, reader.popped - (production - cycle) - popped)
        start = cycle + 1
    reader.peak_cursor = cursor
    reader.reach = reader.peak - reader.latency - reader.back - 1
    if reader.several != 0:
        reader.reach -= reader.popped - popped  # the next that leaves with others is looked at in any case


@inline
def slots_from(reader: Any, due: int, now: int) -> tuple[int, int]:
    """Return a number of slots of a bounded FIFO for which a node never waits if it fills one in a cycle, from cycle `now` on, and
    does not begin before the first is free; and that cycle (0: the slot was never filled). Pop number `due` frees the first slot;
    if `due` is negative, as many slots were never filled.

    In a run with FIFOs that got deeper, whose cycles are not used, the cycle may be that of an older pop.

    A pop frees a slot for the next cycle, or `back` cycles later. If the pops of a run are a cycle apart or more, all are early
    enough if the last is.
    """
    if due >= reader.popped:
        return 0, 0
    if reader.popped == 0:
        return -due, 0
    cursor, first = reader.slot_cursor, max(due, 0)
    end = _end(reader, cursor)
    while end <= first:
        cursor += 1
        end = _end(reader, cursor)
    reader.slot_cursor = cursor
    entry, free = pops_at(reader.history + POPS_SIZE * (cursor & reader.history_mask)), 0
    if due >= 0:
        free = entry.time + (due - entry.first) * entry.step + 1 + reader.back
        if free > now or reader.depth < DEEP:  # the node may wait for this slot, and for those that later runs of pops free
            return end - due if entry.step == 1 else 1, free
    known, lead, most = first, now - due - 1 - reader.back, min(cursor + SLOTS_AHEAD, reader.noted)
    while entry.time - entry.first + max(entry.step - 1, 0) * (end - 1 - entry.first) <= lead:
        known = end
        cursor += 1
        if cursor >= most:
            break
        entry = pops_at(reader.history + POPS_SIZE * (cursor & reader.history_mask))
        end = _end(reader, cursor)
    return max(known - due, 1), free
