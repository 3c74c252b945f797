"""The requests that wait in a channel: a read queue and a write queue.

A request has a place in its queue, higher than those of all older ones, until it leaves. Sets of places are bits of a word. Of each
bank a queue has the set of its requests, and of all banks the sets of those that a column command and a row command would serve. So a
slot looks at no request twice whose bank is not ready, and at none that it cannot serve.
"""

from __future__ import annotations

from typing import Any

from fuseflow.sim.memory.channel import (
    BANKS,
    COUNTS,
    ENTRIES,
    OF_BANK,
    PLACES,
    READS,
    WAITING_AT,
    WAITING_SIZE,
    WRITES,
    bank_of,
    place_of,
    waiting_at,
)
from fuseflow.sim.native.records import get_int, inline, outline, set_int, trailing_zeros


@inline
def queue_address(channel: int, queue: int) -> int:
    return channel + WAITING_AT + WAITING_SIZE * queue


@inline
def waiting_of(channel: int, queue: int) -> Any:
    """Return the sets of requests of a queue."""
    return waiting_at(queue_address(channel, queue))


@inline
def of_bank(channel: int, queue: int, bank: int) -> int:
    """Return the set of requests of a queue that are for a bank."""
    members: int = get_int(queue_address(channel, queue) + OF_BANK, bank)
    return members


@inline
def entry_in(channel: int, queue: int, position: int) -> int:
    """Return the entry at a place of a queue."""
    entry: int = get_int(queue_address(channel, queue) + ENTRIES, position)
    return entry


@inline
def queue_length(channel: int, queue: int) -> int:
    """Return the number of requests in a queue."""
    length: int = get_int(channel + COUNTS, queue)
    return length


@inline
def append_entry(channel: int, queue: int, entry: int) -> None:
    """Put a request at the end of a queue."""
    address = queue_address(channel, queue)
    q, bank = waiting_at(address), place_of(entry) & 31
    if q.end == PLACES:
        _close_gaps(address)
    position, b = q.end, bank_of(channel, bank)
    q.end = position + 1
    q.all |= 1 << position
    if b.open == place_of(entry):
        q.hits |= 1 << position
    elif b.pinned == 0:
        q.rows |= 1 << position
    if b.open < 0:
        q.closed |= 1 << position
    q.of_pc_1 |= (bank >> 4) << position
    set_int(address + ENTRIES, position, entry)
    set_int(address + OF_BANK, bank, get_int(address + OF_BANK, bank) | 1 << position)
    set_int(channel + COUNTS, queue, queue_length(channel, queue) + 1)


@inline
def remove_entry(channel: int, queue: int, position: int) -> None:
    """Take the request at a place out of a queue."""
    address = queue_address(channel, queue)
    q, bank, others = waiting_at(address), place_of(get_int(address + ENTRIES, position)) & 31, ~(1 << position)
    q.all &= others
    q.hits &= others
    q.rows &= others
    q.closed &= others
    q.of_pc_1 &= others
    if q.all == 0:
        q.end = 0
    set_int(address + OF_BANK, bank, get_int(address + OF_BANK, bank) & others)
    set_int(channel + COUNTS, queue, queue_length(channel, queue) - 1)


@outline
def _close_gaps(address: int) -> None:
    """Move the requests of a queue to its first places, in the same order."""
    q = waiting_at(address)
    left, hits, rows, closed, of_pc_1, end = q.all, 0, 0, 0, 0, 0
    for bank in range(BANKS):
        set_int(address + OF_BANK, bank, 0)
    while left != 0:
        position = trailing_zeros(left)
        left &= left - 1
        entry = get_int(address + ENTRIES, position)
        bank = place_of(entry) & 31
        set_int(address + ENTRIES, end, entry)
        set_int(address + OF_BANK, bank, get_int(address + OF_BANK, bank) | 1 << end)
        hits |= (q.hits >> position & 1) << end
        rows |= (q.rows >> position & 1) << end
        closed |= (q.closed >> position & 1) << end
        of_pc_1 |= (bank >> 4) << end
        end += 1
    q.end, q.all, q.hits, q.rows, q.closed, q.of_pc_1 = end, (1 << end) - 1, hits, rows, closed, of_pc_1


@inline
def closed_in(channel: int, queue: int, pc: int) -> int:
    """Return the set of requests of a queue that are for closed banks of a PC."""
    q = waiting_of(channel, queue)
    members: int = q.closed & (q.of_pc_1 if pc == 1 else ~q.of_pc_1)
    return members


@inline
def note_opened(channel: int, place: int) -> None:
    """Note that a row was opened for a request. Others of the row can be served, and no row command is for those of the bank."""
    bank = place & 31
    for queue in range(READS, WRITES + 1):
        q, mine = waiting_of(channel, queue), of_bank(channel, queue, bank)
        q.rows &= ~mine
        q.closed &= ~mine
        while mine != 0:
            position = trailing_zeros(mine)
            mine &= mine - 1
            if place_of(entry_in(channel, queue, position)) == place:
                q.hits |= 1 << position


@inline
def note_closed(channel: int, bank: int) -> None:
    """Note that the row of a bank was closed. All requests of the bank need a row."""
    for queue in range(READS, WRITES + 1):
        q, mine = waiting_of(channel, queue), of_bank(channel, queue, bank)
        q.hits &= ~mine
        q.rows |= mine
        q.closed |= mine


@inline
def note_unpinned(channel: int, bank: int) -> None:
    """Note that the request was served for which the row of a bank was opened. Those of other rows may have it closed."""
    for queue in range(READS, WRITES + 1):
        q = waiting_of(channel, queue)
        q.rows |= of_bank(channel, queue, bank) & ~q.hits
