"""The requests that wait in a channel, in a read queue and a write queue, and the steps of a transaction before and after its
commands: its arrival in the FIFO, its acceptance by the controller, and its completion.

A request has a position in its queue, higher than the positions of all older requests, until it leaves. Sets of positions are bits
of words. One instruction compares the banks of all positions of a word, so a controller finds the oldest request for a bank that is
ready without inspecting others.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.channel import (
    ACT,
    BY_WORD,
    COUNTS,
    PLACE_BANK,
    PRE,
    READS,
    ROOM,
    SHAPE,
    TRANSACTION_SIZE,
    WRITES,
    add_bank,
    bank_cycle,
    bit_of,
    channel_at,
    discard_bank,
    has_bank,
    of_queue,
    open_place,
    pinned_banks,
    ready_banks,
    transaction_of,
    word_of,
)
from fuseflow.memory.histogram import count_latency
from fuseflow.memory.mailboxes import report
from fuseflow.memory.ports import FOREVER, finish, request_of
from fuseflow.native.records import (
    LANES,
    WORDS,
    common,
    equal,
    get_int,
    get_int32,
    inline,
    outline,
    prefetch,
    put,
    set_int,
    set_int32,
    trailing_zeros,
)

POSITIONS = WORDS - 2
"""The positions of a word of a queue. A queue has more positions than requests, so gaps are closed seldom."""
NOWHERE = 1 << 20
"""A position that is higher than all others."""


@inline
def queue_of(channel: int, queue: int) -> int:
    """Return the address of a queue (READS or WRITES) of a channel."""
    return channel + SHAPE.queues + SHAPE.queue_size * queue


@inline
def word_at(position: int) -> int:
    """Return the word that has a position, in a set of positions."""
    return position >> 6 if SHAPE.queue_words > 1 else 0


@inline
def is_empty(address: int) -> bool:
    """Return whether the queue at an address has no request."""
    every = 0
    for v in range(SHAPE.queue_words):
        every |= get_int(address + SHAPE.all, v)
    return every == 0


@inline
def of_bank(address: int, bank: int, v: int) -> int:
    """Return word `v` of the set of positions of the requests for a bank, in the queue at an address."""
    members: int = get_int(address + SHAPE.of_bank, SHAPE.queue_words * bank + v)
    return members


@inline
def place_at(channel: int, queue: int, position: int) -> int:
    """Return the place (row and bank) of the request at a position of a queue."""
    place: int = get_int32(queue_of(channel, queue) + SHAPE.places, position)
    return place


@inline
def slot_at(channel: int, queue: int, position: int) -> int:
    """Return the slot of the pool of the request at a position of a queue."""
    slot: int = get_int32(queue_of(channel, queue) + SHAPE.slots, position)
    return slot


@inline
def queue_length(channel: int, queue: int) -> int:
    """Return the number of requests in a queue."""
    length: int = get_int(channel + COUNTS, queue)
    return length


@inline
def _positions(address: int, v: int, w: int, banks: int) -> int:
    """Return word `v` of the set of positions of requests for a set of banks of word `w`, and of others that are not in the queue."""
    members: int = common(address + SHAPE.bank_sets + BY_WORD * v, banks)
    if SHAPE.bank_words > 1:
        members &= get_int(address + SHAPE.of_word, SHAPE.queue_words * w + v)
    return members


@inline
def first_hit(channel: int, queue: int) -> int:
    """Return the position of the oldest request of a queue that may have its RD or WR now, or NOWHERE."""
    address, at = queue_of(channel, queue), of_queue(SHAPE.hit_banks, queue)
    for v in range(SHAPE.queue_words):
        members = 0
        for w in range(SHAPE.bank_words):
            banks = get_int(channel + at, w) & ready_banks(channel, queue, w)
            if banks != 0:
                members |= _positions(address, v, w, banks)
        members &= get_int(address + SHAPE.hits, v)
        if members != 0:
            return WORDS * v + trailing_zeros(members)
    return NOWHERE


@inline
def first_other(channel: int, queue: int, opens: int) -> int:
    """Return the position of the oldest request of a queue that may have its PRE or, with `opens` (1, else 0), its ACT now, or NOWHERE."""
    address, at = queue_of(channel, queue), of_queue(SHAPE.row_banks, queue)
    for v in range(SHAPE.queue_words):
        members = 0
        for w in range(SHAPE.bank_words):
            banks, opened = get_int(channel + at, w), get_int(channel + SHAPE.opened, w)
            if banks != 0:
                banks &= (opened & ready_banks(channel, PRE, w)) | (~opened & -opens & ready_banks(channel, ACT, w))
            if banks != 0:
                members |= _positions(address, v, w, banks)
        members &= get_int(address + SHAPE.all, v) & ~get_int(address + SHAPE.hits, v)
        if members != 0:
            return WORDS * v + trailing_zeros(members)
    return NOWHERE


@inline
def position_of(channel: int, queue: int, slot: int) -> int:
    """Return the position in a queue of the request in a slot of the pool, or NOWHERE."""
    address = queue_of(channel, queue)
    for v in range(SHAPE.queue_words):
        members = get_int(address + SHAPE.all, v) & equal(address + SHAPE.slots + BY_WORD * v, slot)
        if members != 0:
            return WORDS * v + trailing_zeros(members)
    return NOWHERE


@inline
def append_request(channel: int, queue: int, place: int, unit: int, slot: int) -> None:
    """Put the request in a slot of the pool at the end of a queue. If the queue is served, set the wake-up for column commands or for row
    commands to the cycle in which its first command can be issued. The request of a pinned bank waits until another is served, which
    wakes the channel."""
    c, address, bank = channel_at(channel), queue_of(channel, queue), place & PLACE_BANK
    if get_int(address, 0) == WORDS * SHAPE.queue_words - 2:
        _close_gaps(channel, queue)
    position = get_int(address, 0)
    _place(address, position, bank)
    put(address + SHAPE.places, position, place)
    put(address + SHAPE.bank_sets, position, bit_of(bank))
    put(address + SHAPE.request_units, position, unit)
    set_int32(address + SHAPE.slots, position, slot)
    set_int(channel + COUNTS, queue, queue_length(channel, queue) + 1)
    if open_place(channel, bank) == place:
        v = word_at(position)
        set_int(address + SHAPE.hits, v, get_int(address + SHAPE.hits, v) | 1 << (position & WORDS - 1))
        add_bank(channel, of_queue(SHAPE.hit_banks, queue), bank)
        if queue == c.writing:
            c.column_wake = min(c.column_wake, bank_cycle(channel, queue, bank))
    elif pinned_banks(channel, word_of(bank)) & bit_of(bank) == 0:
        add_bank(channel, of_queue(SHAPE.row_banks, queue), bank)
        if queue == c.writing:
            c.row_wake = min(c.row_wake, row_cycle(channel, bank))


@inline
def _place(address: int, position: int, bank: int) -> None:
    """Put the last position of the queue at an address into the sets."""
    v, bit = word_at(position), 1 << (position & WORDS - 1)
    following = position + 1
    if SHAPE.queue_words > 1 and following & WORDS - 1 == POSITIONS and v + 1 < SHAPE.queue_words:
        following = WORDS * (v + 1)
    set_int(address, 0, following)
    set_int(address + SHAPE.all, v, get_int(address + SHAPE.all, v) | bit)
    k = SHAPE.queue_words * bank + v
    set_int(address + SHAPE.of_bank, k, get_int(address + SHAPE.of_bank, k) | bit)
    if SHAPE.bank_words > 1:
        k = SHAPE.queue_words * word_of(bank) + v
        set_int(address + SHAPE.of_word, k, get_int(address + SHAPE.of_word, k) | bit)


@inline
def remove_request(channel: int, queue: int, position: int) -> None:
    """Remove the request at a position of a queue. It is for an open row, or its row is opened next."""
    address, bank = queue_of(channel, queue), place_at(channel, queue, position) & PLACE_BANK
    v, others = word_at(position), ~(1 << (position & WORDS - 1))
    set_int(address + SHAPE.all, v, get_int(address + SHAPE.all, v) & others)
    set_int(address + SHAPE.hits, v, get_int(address + SHAPE.hits, v) & others)
    k = SHAPE.queue_words * bank + v
    set_int(address + SHAPE.of_bank, k, get_int(address + SHAPE.of_bank, k) & others)
    if SHAPE.bank_words > 1:
        k = SHAPE.queue_words * word_of(bank) + v
        set_int(address + SHAPE.of_word, k, get_int(address + SHAPE.of_word, k) & others)
    if is_empty(address):
        set_int(address, 0, 0)
    if queue_length(channel, queue) == get_int(channel + ROOM, queue):  # a transaction may have been refused
        channel_at(channel).accept_wake = channel_at(channel).clock + 1
    set_int(channel + COUNTS, queue, queue_length(channel, queue) - 1)
    discard_bank(channel, of_queue(SHAPE.hit_banks, queue), bank, not _has(address, bank, True))


@inline
def _has(address: int, bank: int, hits: bool) -> bool:
    """Return whether the queue at an address has a request for the open row of a bank, or, without `hits`, for another row of it."""
    members = 0
    for v in range(SHAPE.queue_words):
        own = get_int(address + SHAPE.hits, v)
        members |= of_bank(address, bank, v) & (own if hits else ~own)
    return members != 0


@outline
def _close_gaps(channel: int, queue: int) -> None:
    """Move the requests of a queue to its first positions, in the same order."""
    address = queue_of(channel, queue)
    set_int(address, 0, 0)
    for k in range(SHAPE.queue_words * LANES * SHAPE.bank_words):
        set_int(address + SHAPE.of_bank, k, 0)
    for k in range(SHAPE.queue_words * SHAPE.bank_words):
        set_int(address + SHAPE.of_word, k, 0)
    for v in range(SHAPE.queue_words):
        left, hits = get_int(address + SHAPE.all, v), get_int(address + SHAPE.hits, v)
        set_int(address + SHAPE.all, v, 0)
        set_int(address + SHAPE.hits, v, 0)
        while left != 0:
            k = trailing_zeros(left)
            left &= left - 1
            position, end = WORDS * v + k, get_int(address, 0)
            for array in (SHAPE.places, SHAPE.bank_sets, SHAPE.request_units, SHAPE.slots):
                set_int32(address + array, end, get_int32(address + array, position))
            _place(address, end, place_at(channel, queue, end) & PLACE_BANK)
            into = address + SHAPE.hits
            set_int(into, word_at(end), get_int(into, word_at(end)) | (hits >> k & 1) << (end & WORDS - 1))


@inline
def note_opened(channel: int, place: int) -> None:
    """Update both queues after the row `place` was opened for a request: all requests for it can be served, and others of the bank
    get no row command."""
    bank = place & PLACE_BANK
    for queue in range(READS, WRITES + 1):
        address, members = queue_of(channel, queue), 0
        discard_bank(channel, of_queue(SHAPE.row_banks, queue), bank)
        for v in range(SHAPE.queue_words):
            every = get_int(address + SHAPE.all, v)
            if every != 0:
                hits = every & equal(address + SHAPE.places + BY_WORD * v, place)
                set_int(address + SHAPE.hits, v, get_int(address + SHAPE.hits, v) | hits)
                members |= hits
        add_bank(channel, of_queue(SHAPE.hit_banks, queue), bank, members != 0)


@inline
def note_closed(channel: int, bank: int) -> None:
    """Update both queues after the row of a bank was closed: all requests of the bank need a row."""
    for queue in range(READS, WRITES + 1):
        address, members = queue_of(channel, queue), 0
        for v in range(SHAPE.queue_words):
            mine = of_bank(address, bank, v)
            set_int(address + SHAPE.hits, v, get_int(address + SHAPE.hits, v) & ~mine)
            members |= mine
        discard_bank(channel, of_queue(SHAPE.hit_banks, queue), bank)
        add_bank(channel, of_queue(SHAPE.row_banks, queue), bank, members != 0)


@inline
def note_unpinned(channel: int, bank: int) -> None:
    """Update both queues after a bank served the request that its row was opened for: requests for other rows may close it."""
    for queue in range(READS, WRITES + 1):
        add_bank(channel, of_queue(SHAPE.row_banks, queue), bank, _has(queue_of(channel, queue), bank, False))


@inline
def enqueue(channel: int, arrival: int, unit: int, place: int, write: int, port: int, request: int) -> None:
    """Put a transaction at the end of the FIFO of a channel. `unit` is its address in transactions, `place` its row and bank, and
    `request` the number of its request at the port. The pool must have room."""
    c = channel_at(channel)
    slot = c.free
    t = transaction_of(channel, slot)
    c.free = t.next
    prefetch(c.pool + TRANSACTION_SIZE * c.free)  # it comes from the memory of another window
    c.room -= 1
    t.next, t.arrival, t.unit, t.place, t.write, t.port, t.request = -1, arrival, unit, place, write, port, request
    if c.first < 0:
        c.first = slot
        c.accept_wake = min(c.accept_wake, arrival + 1)
    else:
        transaction_of(channel, c.last).next = slot
    c.last = slot


@inline
def accept(channel: int) -> None:
    """Accept the transactions that arrived at a channel before this cycle, in order, up to one whose queue is full; the rest wait, too."""
    c = channel_at(channel)
    c.accept_wake = FOREVER
    while c.first >= 0:
        slot = c.first
        t = transaction_of(channel, slot)
        if t.arrival >= c.clock:
            c.accept_wake = t.arrival + 1
            return
        following, queue = t.next, t.write
        prefetch(c.pool + TRANSACTION_SIZE * following)
        queued = is_queued(channel, t)
        if not queued and queue_length(channel, queue) >= get_int(channel + ROOM, queue):
            return
        t.accepted, t.next = c.clock - 1, 0
        c.first = following
        if not queued:
            if c.outboxes == 0:
                prefetch(request_of(t.port, t.request))  # it is completed soon
            append_request(channel, queue, t.place, t.unit, slot)
        else:
            _join_queued(channel, slot)


@outline
def _join_queued(channel: int, slot: int) -> None:
    """Complete a transaction at once by a queued write of the same bytes: a read takes the write's data, a write replaces them."""
    c = channel_at(channel)
    if transaction_of(channel, slot).write != 0:
        c.absorbed += 1
        complete(channel, slot, c.clock - 1)
    else:
        c.forwarded += 1
        c.last_data = max(c.last_data, c.clock)  # data leave in order
        complete(channel, slot, c.last_data)


@inline
def row_cycle(channel: int, bank: int) -> int:
    """Return the earliest cycle of a row command of a bank: of a PRE if the bank is open, of an ACT if it is closed."""
    return bank_cycle(channel, PRE if has_bank(channel, SHAPE.opened, bank) else ACT, bank)


@inline
def is_queued(channel: int, t: Any) -> bool:
    """Return whether a write to the bytes of transaction `t` is queued. A write that a row was opened for has left the queue."""
    address, members = queue_of(channel, WRITES), 0
    for v in range(SHAPE.queue_words):
        every = get_int(address + SHAPE.all, v)
        if every != 0:
            members |= every & equal(address + SHAPE.request_units + BY_WORD * v, t.unit)
    return members != 0


@inline
def complete(channel: int, slot: int, done: int) -> None:
    """Complete the transaction in a slot of the pool in cycle `done`, and free the slot."""
    c = channel_at(channel)
    t = transaction_of(channel, slot)
    if c.outboxes == 0:
        finish(t.port, t.request, t.accepted, done)
    else:
        report(c.outboxes, t.port, t.request, t.accepted, done)
    c.service += done - t.accepted
    if t.write == 0:
        c.reads += 1
        c.read_latencies += done - t.arrival
        count_latency(channel + SHAPE.histogram, done - t.arrival)
    else:
        c.writes += 1
        c.write_latencies += done - t.arrival
    c.last_done = max(c.last_done, done)
    c.refreshed = c.refreshing
    t.next = c.free
    c.free = slot
    c.room += 1
