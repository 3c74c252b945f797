"""The state of an HBM2 channel, which is one block of 64-bit words in memory. Functions get the address of the block as
`channel`.

A channel has 2 pseudo channels (PC) of 4 bank groups of 4 banks, and one controller. The number of a bank in its channel is `pc *
16 + group * 4 + bank`. Arrays hold, for every bank, the earliest cycles of its next commands, and words hold sets of banks, so
that a command slot checks all banks at once. Requests wait in two queues (`queues.py`), until a command serves them, or until
their row is opened: then they are active.

The earliest cycles of the next commands follow from earlier commands. They never become earlier while the state of the bank stays
the same, so they bound the cycles in which a slot must search for a command again. They count from `epoch`, the last cycle in which
a refresh was due, and so are short integers: those of all banks fit into one vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.histogram import BUCKETS
from fuseflow.memory.ports import FOREVER
from fuseflow.memory.timing import DISTANCE_NAMES
from fuseflow.native.records import (
    LANES,
    LONGEST,
    WORDS,
    Record,
    at_most,
    get_int,
    get_short,
    inline,
    least,
    outline,
    raise_all,
    set_int,
    set_short,
    whole_lines,
    zeros,
)

BANKS, PCS = LANES, 2
NEAR, FAR = 4, BANKS // PCS
"""The number of banks of a bank group, and of a pseudo channel."""
QUEUE = 32
"""The most entries of the read queue, and of the write queue."""

TIMING = Record(" ".join(DISTANCE_NAMES))
CHANNEL = Record(
    "clock epoch timing "
    "queued_reads queued_writes "  # their numbers
    "pinned_reads pinned_writes "  # sets of banks: whose row was opened for a read, or a write, that is still to be served
    "opened conflicted "  # sets of banks: with an open row; that were closed for a request to another row
    "writing "  # the queue that is served: 0 reads, 1 writes
    "refreshes refresh_due next_refresh "  # PCs whose refresh is pending, and since when
    "last_data "  # of any read: data leave in order
    "row_bus "  # free from this cycle on
    "column_wake row_wake accept_wake "  # no column command, no row command, no acceptance can be before
    "first last "  # of the FIFO: slots of the pool, -1 if it is empty
    "pool free room "  # address of the transactions, first free slot, number of free ones
    "outboxes "  # for each thread, what it learns about its requests; 0: there is one thread, and requests are finished at once
    # statistics
    "hits misses conflicts forwarded absorbed turnarounds "
    "refreshing refreshed "  # cycles of all refreshes so far; of those before the last completion
    "reads writes read_latency write_latency service last_done"
)
PC = Record(
    "read write close refresh "  # cycles of the last RD, WR, PRE or PREab, and REFab
    "act_1 act_2 act_3 "  # cycles of the last ACTs
    "next_act"  # as far as ACTs of other bank groups matter
)
WAITING = Record("end all hits hit_banks row_banks")
"""A queue: the position behind the last request; sets of positions: of all requests, and of those for open rows; sets of banks: those
with requests for their open row, and those with requests that need a row command. A bank whose row was opened for a request that
is still to be served gets no row command."""
TRANSACTION = Record(
    "next "  # slot, in the FIFO or among the free ones
    "arrival unit place write accepted "  # unit: the address in 32 B; place: row * 32 + bank
    "port request"  # whose answer it is part of
)
CHANNEL_SIZE, PC_SIZE = CHANNEL.size, PC.size
TRANSACTION_SIZE = TRANSACTION.size
channel_at, timing_at, transaction_at = CHANNEL.at, TIMING.at, TRANSACTION.at
pc_at, waiting_at = PC.at, WAITING.at

READS, WRITES = 0, 1
"""The numbers of the queues."""
POSITIONS = WORDS - 2
"""The positions of a queue, so that a set of them fits into a word. A queue has more positions than requests, so gaps are closed
seldom."""

# Where the parts of the block stand, in bytes. A vector starts with a cache line.
COUNTS, PINNED = CHANNEL.offset("queued_reads"), CHANNEL.offset("pinned_reads")
PCS_AT = CHANNEL_SIZE
CYCLES = 2 * BANKS
"""The size of an array with a cycle for each bank."""
OF_BANKS = 8 * BANKS
"""The size of an array with a word for each bank."""
COLUMNS_AT = whole_lines(PCS_AT + PCS * PC_SIZE)  # the earliest cycle of a RD of each bank's open row, and behind these of a WR
ROWS_AT = COLUMNS_AT + 2 * CYCLES  # of a PRE of each open bank, and of an ACT of each closed one
OPEN_AT = ROWS_AT + CYCLES  # the place of the open row, -1 if there is none
ACTIVE_AT = OPEN_AT + OF_BANKS  # the slot of the request for which the row was opened
ACCEPTED_AT = ACTIVE_AT + OF_BANKS  # the cycle in which it was accepted
OPENED_AT = ACCEPTED_AT + OF_BANKS  # the cycle of the last ACT
GROUPS_AT = OPENED_AT + OF_BANKS  # the cycle of the last ACT of each bank group
WAITING_AT = whole_lines(GROUPS_AT + 8 * BANKS // NEAR)
# In a queue: the place, the unit and the slot of the request at each position, and the set of the positions of each bank
BY_POSITION = 4 * WORDS
PLACES_AT = whole_lines(WAITING.size)
UNITS_AT = PLACES_AT + BY_POSITION
SLOTS_AT = UNITS_AT + BY_POSITION
BY_BANK = SLOTS_AT + BY_POSITION
WAITING_SIZE = BY_BANK + OF_BANKS
HISTOGRAM_AT = WAITING_AT + 2 * WAITING_SIZE
BLOCK = HISTOGRAM_AT + 8 * BUCKETS


def new_channel(timing: int, refresh_period: int) -> npt.NDArray[np.int64]:
    """Return the block of a channel at cycle 0, with all banks closed and without a pool. `timing` is the address of the command
    distances."""
    block = zeros(BLOCK // 8, np.int64)
    channel = block[: CHANNEL_SIZE // 8].view(CHANNEL.dtype)[0]
    channel["timing"], channel["next_refresh"] = timing, refresh_period
    channel["first"] = channel["last"] = channel["free"] = -1
    channel["column_wake"] = channel["row_wake"] = channel["accept_wake"] = 1
    block[OPEN_AT // 8 : OPEN_AT // 8 + BANKS] = -1
    block[OPENED_AT // 8 : WAITING_AT // 8] = -LONGEST
    block[PCS_AT // 8 : (PCS_AT + PCS * PC_SIZE) // 8] = -LONGEST
    return block


@inline
def pc_of(channel: int, bank: int) -> Any:
    return pc_at(channel + PCS_AT + PC_SIZE * (bank >> 4))


@inline
def transaction_of(channel: int, slot: int) -> Any:
    return transaction_at(channel_at(channel).pool + TRANSACTION_SIZE * slot)


@inline
def open_place(channel: int, bank: int) -> int:
    """Return the open row of a bank and the bank, packed as a place (row * 32 + bank), or -1 if the bank has no open row."""
    place: int = get_int(channel + OPEN_AT, bank)
    return place


@inline
def pinned_banks(channel: int, queue: int) -> int:
    """Return the set of pinned banks of a queue: their row was opened for a request of the queue that is still to be served."""
    banks: int = get_int(channel + PINNED, queue)
    return banks


@inline
def pin(channel: int, bank: int, queue: int, slot: int) -> None:
    """Pin a bank: note that its row was opened in this cycle for the request of a queue in a slot of the pool."""
    set_int(channel + ACTIVE_AT, bank, slot)
    set_int(channel + ACCEPTED_AT, bank, transaction_of(channel, slot).accepted)
    set_int(channel + PINNED, queue, pinned_banks(channel, queue) | 1 << bank)


@inline
def unpin(channel: int, bank: int, queue: int) -> None:
    """Unpin a bank: note that the request of a queue for which its row was opened was served."""
    set_int(channel + PINNED, queue, pinned_banks(channel, queue) & ~(1 << bank))


@inline
def columns(channel: int, queue: int) -> int:
    """Return the address of the array with the earliest cycle of a RD (read queue) or a WR (write queue) of each bank's open row."""
    return channel + COLUMNS_AT + CYCLES * queue


@inline
def ready_banks(channel: int, cycles: int) -> int:
    """Return the set of banks whose earliest cycle, in an array at the address `cycles`, has come."""
    c = channel_at(channel)
    banks: int = at_most(cycles, c.clock - c.epoch)
    return banks


@inline
def first_cycle(channel: int, cycles: int, banks: int, soonest: int) -> int:
    """Return the earliest of the cycles of a set of banks in an array at the address `cycles`, `soonest` if that is later, and
    FOREVER if the set is empty. It often is `soonest`, which is found out faster than which of the cycles is the earliest."""
    epoch = channel_at(channel).epoch
    if banks & at_most(cycles, soonest - epoch) != 0:
        return soonest
    return epoch + least(cycles, banks) if banks != 0 else FOREVER


@inline
def postpone(channel: int, cycles: int, banks: int, cycle: int) -> None:
    """Postpone the next commands of a set of banks to a cycle or later. `cycles` is the address of an array of earliest cycles."""
    raise_all(cycles, banks, cycle - channel_at(channel).epoch)


@inline
def near_banks(bank: int) -> int:
    """Return the banks of a bank's group, with the bank itself."""
    return ((1 << NEAR) - 1) << (bank & -NEAR)


@inline
def far_banks(bank: int) -> int:
    """Return the banks of a bank's pseudo channel, with the bank itself."""
    return ((1 << FAR) - 1) << (bank & -FAR)


@outline
def begin_epoch(channel: int) -> None:
    """Count the cycles of the next commands from now on."""
    c = channel_at(channel)
    passed = c.clock - c.epoch
    c.epoch = c.clock
    for k in range(3 * BANKS):
        set_short(channel + COLUMNS_AT, k, max(get_short(channel + COLUMNS_AT, k) - passed, 0))


@inline
def next_row_command(channel: int, banks: int) -> int:
    """Return the first cycle after this one in which a PRE or an ACT may be issued for a bank of a set, or FOREVER if the set is empty."""
    c = channel_at(channel)
    cycle: int = first_cycle(channel, channel + ROWS_AT, banks, max(c.row_bus, c.clock + 1))
    return cycle


@inline
def row_ready(channel: int, bank: int) -> int:
    """Return the earliest cycle of a row command of a bank: of a PRE if the bank is open, of an ACT if it is closed."""
    c = channel_at(channel)
    ready: int = max(c.epoch + get_short(channel + ROWS_AT, bank), c.row_bus)
    return ready
