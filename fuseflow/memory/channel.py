"""The state of a channel of a DRAM, which is one block of 64-bit words in memory. Functions get the address of the block as `channel`.

A channel has up to 128 banks, and one controller. For each of RD, WR, PRE and ACT, an array holds the earliest cycle in which every bank
may have the command, and words hold sets of 32 banks, so that a controller checks 32 banks at once. A command postpones others: a
row of numbers, one for each array and bank, is added to its cycle and raises all arrays (`dram_rows.py`). Requests wait in two queues
(`queues.py`), until a command serves them, or until their row is opened: then they are active.

Earliest cycles never become earlier while the state of the bank stays the same, so they bound the cycles in which a controller must
search for a command again. They count from `epoch`, a cycle that is at most `EPOCH` ago, and so are short integers.

Tables of different shapes have different kernels: `SHAPE` is a name that the kernels of other shapes have with other numbers
(`dram.py`), so that the compiler knows them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fuseflow.memory.histogram import BUCKETS
from fuseflow.memory.mapping import BANK_BITS
from fuseflow.memory.ports import FOREVER
from fuseflow.native.records import (
    LANES,
    WORDS,
    Record,
    at_most,
    get_int,
    get_short,
    inline,
    least,
    outline,
    raise_by,
    set_int,
    set_short,
    whole_lines,
    zeros,
)

CHANNEL = Record(
    "clock epoch deadline "  # the next cycle in which a refresh is due or the epoch ends
    "rows windows latest units "  # addresses of the table of distances: see `dram_rows.py`
    "queued_reads queued_writes read_room write_room "  # their numbers, and the most
    "high low "  # above and below these numbers of queued writes, the controller turns to writes and back
    "writing "  # the queue that is served: 0 reads, 1 writes
    "refreshes refresh_due next_refresh "  # the number of pending ones, the due cycle of the first, and of the next to come
    "refreshed_unit added_unit unit_count "  # the unit of the first pending refresh, of the next to come, and their number
    "read_latency refresh_end "  # cycles from RD to the end of its data, and from REF to ACT
    "window_shift bus_shift "  # of the number of a bank: the node whose ACTs a window limits, and the data bus
    "last_data "  # of any read: data leave in order
    "column_wake row_wake accept_wake "  # no column command, no row command, no acceptance can be before
    "opening opened activation "  # LPDDR5: whether an ACT2 is to come, the cycle of its ACT1, and the most cycles between the two
    "chosen chosen_bank "  # the slot of the request whose CAS was issued, or -1; its bank if it is active, else -1
    "clocked after_read after_write "  # the data clock runs before this cycle, and for these numbers of cycles after a RD and a WR
    "first last "  # of the FIFO: slots of the pool, -1 if it is empty
    "pool free room "  # address of the transactions, first free slot, number of free ones
    "outboxes "  # for each thread, what it learns about its requests; 0: there is one thread, and requests are finished at once
    # statistics
    "hits misses conflicts forwarded absorbed turnarounds "
    "activations closes closes_of_all refreshes_done read_clocks write_clocks "  # commands: ACT, PRE, PREab, REF, CAS
    "refreshing refreshed "  # cycles of all refreshes so far; of those before the last completion
    "reads writes read_latencies write_latencies service last_done"
)
TRANSACTION = Record(
    "next "  # slot, in the FIFO or among the free ones; in a queue 1 if it had a command before, else 0
    "arrival unit place write accepted "  # unit: the address in transactions; place: row and bank
    "port request"  # whose answer it is part of
)
UNIT = Record("banks_0 banks_1 banks_2 banks_3 bank alone gap")
"""What one refresh command refreshes: the set of banks, the first of them, and whether the command is that of a single bank, which a PRE
closes, and not a PREab; then the cycles until the next refresh is due."""
CHANNEL_SIZE, TRANSACTION_SIZE, UNIT_SIZE = CHANNEL.size, TRANSACTION.size, UNIT.size
channel_at, transaction_at, unit_at = CHANNEL.at, TRANSACTION.at, UNIT.at

READS, WRITES = 0, 1
"""The numbers of the queues."""
RD, WR, PRE, ACT, PREAB, REF = range(6)
"""The numbers of the commands. The first four have an array of earliest cycles; PREAB and REF are of a refresh."""
ARRAYS, COMMANDS = 4, 6
EPOCH = 1 << 13
NONE = -(1 << 14)
"""A number of cycles that postpones nothing."""
PLACE_BANK = (1 << BANK_BITS) - 1
"""The bits of a place that are its bank."""
COUNTS, ROOM = CHANNEL.offset("queued_reads"), CHANNEL.offset("read_room")
BY_WORD = 4 * WORDS
"""The bytes of a 32-bit number for each position of a word of a queue."""


class Shape(NamedTuple):
    """The shape of a channel, which is known when its kernels are compiled. Sets of banks have `bank_words` words, and sets of
    positions of a queue `queue_words`. `one_bus` is 1 if a cycle has one command of any kind, else 0. `edges` is 1 if only odd cycles
    may have another command than PRE, else 0. `apart` is 1 if a RD or WR postpones no ACT, and a PRE postpones ACTs only, else 0. The
    others are offsets of arrays in the block."""

    bank_words: int
    queue_words: int
    one_bus: int
    edges: int
    apart: int
    opened: int  # sets of banks: with an open row
    pinned: int  # for each queue: whose row was opened for a request that is still to be served
    hit_banks: int  # for each queue: with requests for their open row
    row_banks: int  # for each queue: with requests that need a row command, if not pinned
    cycles: int  # the arrays of earliest cycles
    past: int  # for each command and bank, the cycle of the last one
    open_places: int  # the place of the open row of each bank, -1 if there is none
    active: int  # the slot of the request for which the row was opened
    accepted: int  # the cycle in which it was accepted
    acts: int  # for each node whose ACTs a window limits, the cycles of the last three
    directions: int  # for each data bus, whether it read (1) or wrote (2) last
    queues: int
    # in a queue
    all: int  # the set of positions of all requests
    hits: int  # of those for open rows
    of_word: int  # for each word of banks, the set of positions of its requests
    places: int  # the place of the request at each position
    bank_sets: int  # the set of its bank alone, in its word of banks
    request_units: int  # its address in transactions
    slots: int  # its slot of the pool
    of_bank: int  # the set of positions of each bank
    queue_size: int
    histogram: int
    block: int


def shape_of(bank_words: int, queue_words: int, one_bus: int, edges: int, apart: int) -> Shape:
    """Lay out the block of a channel."""
    at = 0

    def take(count: int, size: int = 8) -> int:
        """Take the next lines of the block for an array."""
        nonlocal at
        start, at = at, at + whole_lines(count * size)
        return start

    banks, positions = LANES * bank_words, WORDS * queue_words
    take(1, CHANNEL_SIZE)
    sets = take(7 * bank_words)
    of_channel = [sets, *(sets + 8 * bank_words * k for k in (1, 3, 5)), take(ARRAYS * banks, 2), take(COMMANDS * banks, 2)]
    of_channel += [take(banks), take(banks), take(banks), take(4 * banks), take(banks)]
    queues = at
    every, hits, of_word = 8, 8 + 8 * queue_words, 8 + 16 * queue_words  # behind the end of the positions
    at = whole_lines(of_word + 8 * bank_words * queue_words)
    of_queue = [every, hits, of_word, *(take(positions, 4) for _ in range(4)), take(banks * queue_words), at]
    at = queues + 2 * at
    offsets = [*of_channel, queues, *of_queue, take(BUCKETS)]
    return Shape._make((bank_words, queue_words, one_bus, edges, apart, *offsets, at))


SHAPE = shape_of(1, 1, one_bus=0, edges=0, apart=0)


def new_channel(shape: Shape) -> npt.NDArray[np.int64]:
    """Return the block of a channel at cycle 0, with all banks closed and without a table and a pool."""
    block = zeros(shape.block // 8, np.int64)
    channel = block[: CHANNEL_SIZE // 8].view(CHANNEL.dtype)[0]
    channel["first"] = channel["last"] = channel["free"] = channel["chosen"] = -1
    channel["column_wake"] = channel["row_wake"] = channel["accept_wake"] = 1
    block[shape.open_places // 8 : shape.active // 8] = -1
    block[shape.past // 8 : shape.open_places // 8].view(np.int16)[:] = NONE
    block[shape.acts // 8 : shape.directions // 8] = NONE
    return block


# Sets of banks, at an offset of the block


@inline
def word_of(bank: int) -> int:
    """Return the word that has a bank, in a set of banks."""
    return bank >> 5 if SHAPE.bank_words > 1 else 0


@inline
def bit_of(bank: int) -> int:
    return 1 << (bank & LANES - 1)


@inline
def has_bank(channel: int, at: int, bank: int) -> bool:
    return bool(get_int(channel + at, word_of(bank)) >> (bank & LANES - 1) & 1)


@inline
def add_bank(channel: int, at: int, bank: int, wanted: bool = True) -> None:
    """Add a bank to a set if `wanted`. There is no branch, which would be taken by chance."""
    w = word_of(bank)
    set_int(channel + at, w, get_int(channel + at, w) | wanted << (bank & LANES - 1))


@inline
def discard_bank(channel: int, at: int, bank: int, wanted: bool = True) -> None:
    """Remove a bank from a set if `wanted`."""
    w = word_of(bank)
    set_int(channel + at, w, get_int(channel + at, w) & ~(wanted << (bank & LANES - 1)))


@inline
def of_queue(at: int, queue: int) -> int:
    """Return the offset of the set of banks of a queue, of two sets from `at` on."""
    return at + 8 * SHAPE.bank_words * queue


@inline
def pinned_banks(channel: int, w: int) -> int:
    """Return word `w` of the set of pinned banks."""
    banks: int = get_int(channel + SHAPE.pinned, w) | get_int(channel + of_queue(SHAPE.pinned, WRITES), w)
    return banks


@inline
def transaction_of(channel: int, slot: int) -> Any:
    return transaction_at(channel_at(channel).pool + TRANSACTION_SIZE * slot)


@inline
def open_place(channel: int, bank: int) -> int:
    """Return the place of the open row of a bank, or -1 if the bank has no open row."""
    place: int = get_int(channel + SHAPE.open_places, bank)
    return place


# Earliest cycles


@inline
def cycles_of(channel: int, command: int, w: int = 0) -> int:
    """Return the address of the earliest cycles of a command for the banks of word `w`."""
    return channel + SHAPE.cycles + 2 * LANES * (SHAPE.bank_words * command + w)


@inline
def ready_banks(channel: int, command: int, w: int) -> int:
    """Return the banks of word `w` that may have a command now."""
    c = channel_at(channel)
    banks: int = at_most(cycles_of(channel, command, w), c.clock - c.epoch)
    return banks


@inline
def bank_cycle(channel: int, command: int, bank: int) -> int:
    """Return the earliest cycle of a command of a bank."""
    cycle: int = channel_at(channel).epoch + get_short(cycles_of(channel, command), bank)
    return cycle


@inline
def first_cycle(channel: int, w: int, command: int, banks: int, other: int, others: int, soonest: int) -> int:
    """Return the earliest cycle of a command of a set of banks of word `w`, or of another command of another set; `soonest` if that is
    later, and FOREVER if both sets are empty. It often is `soonest`, which is found out faster than which cycle is the earliest."""
    epoch, cycles, other_cycles = channel_at(channel).epoch, cycles_of(channel, command, w), cycles_of(channel, other, w)
    if (banks & at_most(cycles, soonest - epoch)) | (others & at_most(other_cycles, soonest - epoch)) != 0:
        return soonest
    return epoch + least(cycles, banks, other_cycles, others) if banks | others != 0 else FOREVER


@inline
def edge(cycle: int) -> int:
    """Return the first cycle, from a cycle on, that may have another command than PRE."""
    return cycle | SHAPE.edges


@inline
def issue(channel: int, command: int, bank: int, first: int = RD, last: int = ACT) -> None:
    """Postpone all commands as a command of a bank demands that is issued now: those from `first` to `last`. PREAB and REF are issued for
    the first of their banks."""
    c = channel_at(channel)
    now, k = c.clock - c.epoch, LANES * SHAPE.bank_words * command + bank
    row = c.rows + 2 * ARRAYS * LANES * SHAPE.bank_words * k
    for line in range(first * SHAPE.bank_words, (last + 1) * SHAPE.bank_words):
        raise_by(channel + SHAPE.cycles + 2 * LANES * line, row + 2 * LANES * line, now)
    set_short(channel + SHAPE.past, k, now)


@inline
def limit_acts(channel: int, bank: int) -> None:
    """Postpone further ACTs of a bank's node after an ACT that is issued now: five take longer than a window, if that matters."""
    c = channel_at(channel)
    if c.windows == 0:
        return
    node = channel + SHAPE.acts + 32 * (bank >> c.window_shift)
    for w in range(SHAPE.bank_words):
        row = c.windows + 2 * LANES * (SHAPE.bank_words * bank + w)
        raise_by(cycles_of(channel, ACT, w), row, max(get_int(node, 2) - c.epoch, NONE))
    set_int(node, 2, get_int(node, 1))
    set_int(node, 1, get_int(node, 0))
    set_int(node, 0, c.clock)


@outline
def begin_epoch(channel: int) -> None:
    """Count cycles from now on."""
    c = channel_at(channel)
    passed = c.clock - c.epoch
    c.epoch = c.clock
    for k in range(ARRAYS * LANES * SHAPE.bank_words):
        set_short(channel + SHAPE.cycles, k, max(get_short(channel + SHAPE.cycles, k) - passed, 0))
    for k in range(COMMANDS * LANES * SHAPE.bank_words):
        set_short(channel + SHAPE.past, k, max(get_short(channel + SHAPE.past, k) - passed, NONE))
