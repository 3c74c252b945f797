"""The requests that wait in a channel: a read queue and a write queue.

A request has a place in its queue, higher than the places of all older requests, until it leaves. Sets of places are bits of a
word. For each bank a queue has the set of its requests, and the first request that a column command, and a row command, would
serve. So a slot finds the oldest request to a bank that is ready without inspecting others.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.channel import (
    BANKS,
    BY_BANK,
    COUNTS,
    ENTRIES,
    FIRST_HITS,
    FIRST_OTHERS,
    PLACES,
    READS,
    WAITING_AT,
    WAITING_SIZE,
    WRITES,
    open_place,
    pinned_banks,
    place_of,
    waiting_at,
)
from fuseflow.native.records import get_int, inline, least_int32, outline, set_int, set_int32, trailing_zeros

NO_PLACE = 1 << PLACES
"""A bit above all places, for sets that may be empty."""


@inline
def queue_address(channel: int, queue: int) -> int:
    return channel + WAITING_AT + WAITING_SIZE * queue


@inline
def waiting_of(channel: int, queue: int) -> Any:
    """Return the record of a queue (READS or WRITES) of a channel, with its sets of requests."""
    return waiting_at(queue_address(channel, queue))


@inline
def of_bank(channel: int, queue: int, bank: int) -> int:
    """Return the set of places of a queue's requests that are for a bank."""
    members: int = get_int(queue_address(channel, queue) + BY_BANK, bank)
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
def first_hit(channel: int, queue: int, banks: int) -> int:
    """Return the place of the oldest request for an open row of a set of banks. Each of the banks must have such a request."""
    position: int = least_int32(queue_address(channel, queue) + FIRST_HITS, banks)
    return position


@inline
def first_other(channel: int, queue: int, banks: int) -> int:
    """Return the place of the oldest request for a row that is not open, of a set of banks. Each of the banks must have such a
    request."""
    position: int = least_int32(queue_address(channel, queue) + FIRST_OTHERS, banks)
    return position


@inline
def note_requests(channel: int, queue: int, bank: int) -> None:
    """Update the first requests of a bank in a queue, and the commands that they need, after the requests or the bank changed."""
    address = queue_address(channel, queue)
    q, member, mine = waiting_at(address), 1 << bank, of_bank(channel, queue, bank)
    hits = mine & q.hits
    others = mine ^ hits
    set_int32(address + FIRST_HITS, bank, trailing_zeros(hits | NO_PLACE))
    set_int32(address + FIRST_OTHERS, bank, trailing_zeros(others | NO_PLACE))
    pinned = (pinned_banks(channel, READS) | pinned_banks(channel, WRITES)) & member
    q.hit_banks = q.hit_banks & ~member | (member if hits != 0 else 0)
    q.row_banks = q.row_banks & ~member | (member ^ pinned if others != 0 else 0)


@inline
def append_entry(channel: int, queue: int, entry: int) -> None:
    """Put the request `entry` at the end of a queue."""
    address = queue_address(channel, queue)
    q, bank = waiting_at(address), place_of(entry) & 31
    if q.end == PLACES:
        _close_gaps(channel, queue)
    position = q.end
    q.end = position + 1
    q.all |= 1 << position
    if open_place(channel, bank) == place_of(entry):
        q.hits |= 1 << position
    set_int(address + ENTRIES, position, entry)
    set_int(address + BY_BANK, bank, get_int(address + BY_BANK, bank) | 1 << position)
    set_int(channel + COUNTS, queue, queue_length(channel, queue) + 1)
    note_requests(channel, queue, bank)


@inline
def remove_entry(channel: int, queue: int, position: int) -> None:
    """Remove the request at place `position` from a queue."""
    address = queue_address(channel, queue)
    q, bank, others = waiting_at(address), place_of(get_int(address + ENTRIES, position)) & 31, ~(1 << position)
    q.all &= others
    q.hits &= others
    if q.all == 0:
        q.end = 0
    set_int(address + BY_BANK, bank, get_int(address + BY_BANK, bank) & others)
    set_int(channel + COUNTS, queue, queue_length(channel, queue) - 1)
    note_requests(channel, queue, bank)


@outline
def _close_gaps(channel: int, queue: int) -> None:
    """Move the requests of a queue to its first places, in the same order."""
    address = queue_address(channel, queue)
    q = waiting_at(address)
    left, hits, end = q.all, 0, 0
    for bank in range(BANKS):
        set_int(address + BY_BANK, bank, 0)
    while left != 0:
        position = trailing_zeros(left)
        left &= left - 1
        entry = get_int(address + ENTRIES, position)
        bank = place_of(entry) & 31
        set_int(address + ENTRIES, end, entry)
        set_int(address + BY_BANK, bank, get_int(address + BY_BANK, bank) | 1 << end)
        hits |= (q.hits >> position & 1) << end
        end += 1
    q.end, q.all, q.hits = end, (1 << end) - 1, hits
    for bank in range(BANKS):
        note_requests(channel, queue, bank)


@inline
def note_opened(channel: int, place: int) -> None:
    """Update both queues after the row `place` was opened: all requests for it can be served, and others of the bank get no row
    command."""
    bank = place & 31
    for queue in range(READS, WRITES + 1):
        q, mine = waiting_of(channel, queue), of_bank(channel, queue, bank)
        while mine != 0:
            position = trailing_zeros(mine)
            mine &= mine - 1
            if place_of(entry_in(channel, queue, position)) == place:
                q.hits |= 1 << position
        if of_bank(channel, queue, bank) != 0:
            note_requests(channel, queue, bank)


@inline
def note_closed(channel: int, bank: int) -> None:
    """Update both queues after the row of a bank was closed: all requests of the bank need a row."""
    for queue in range(READS, WRITES + 1):
        q = waiting_of(channel, queue)
        if of_bank(channel, queue, bank) != 0:
            q.hits &= ~of_bank(channel, queue, bank)
            note_requests(channel, queue, bank)


@inline
def note_unpinned(channel: int, bank: int) -> None:
    """Update both queues after the request for which the row of a bank was opened was served: requests for other rows may close
    the row."""
    for queue in range(READS, WRITES + 1):
        if of_bank(channel, queue, bank) != 0:
            note_requests(channel, queue, bank)
