"""The state of an HBM2 channel, which is one block of 64-bit words at an address.

A channel has 2 pseudo channels (PC) of 4 bank groups of 4 banks, and one controller. The number of a bank in its channel is `pc * 16 +
group * 4 + bank`. The fields of banks, groups and PCs hold the earliest cycles of their next commands. Requests wait in two queues
(`waiting_requests.py`), until a command serves them, or until their row is opened: then they are active.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.sim.memory.histogram import BUCKETS
from fuseflow.sim.memory.timing import DISTANCE_NAMES
from fuseflow.sim.native.records import Record, get_int, inline, set_int

BANKS, GROUPS, PCS = 32, 8, 2
QUEUE = 32
"""The entries that the read queue, and the write queue, can hold."""

TIMING = Record(" ".join(DISTANCE_NAMES))
CHANNEL = Record(
    "clock timing "
    "queued_reads queued_writes active "  # their numbers
    "writing "  # the queue that is served: 0 reads, 1 writes
    "refreshes refresh_due next_refresh "  # PCs whose refresh is pending, and since when
    "last_data "  # of any read: data leave in order
    "row_bus "  # free from this cycle on
    "column_wake row_wake "  # no column, no row command can issue before
    "first last "  # of the FIFO: slots of the pool, -1 if it is empty
    "pool free room "  # address of the transactions, first free slot, number of free ones
    # statistics
    "hits misses conflicts forwarded absorbed turnarounds "
    "refreshing refreshed "  # cycles of all refreshes so far; of those before the last completion
    "reads writes read_latency write_latency service last_done"
)
BANK = Record(
    "open "  # place of the open row, -1 if none
    "conflict "  # it was closed for a request to another row
    "act close read write "
    "pinned "  # the request that opened the row is still to be served
    "spare"
)
GROUP = Record("act read write spare")
PC = Record(
    "act read write close refresh "  # `close`, `refresh`: of all banks
    "opened pinned "  # banks
    "direction "  # of the data bus: 0 read, 1 write, -1 before the first
    "act_1 act_2 act_3"  # cycles of the last ACTs
)
WAITING = Record("end all hits rows closed of_pc_1")
"""A queue: the place behind the last request; and as sets of places all requests, those of open rows, those for which a row command
can be issued, those of banks that are closed, and those of PC 1. Banks whose row was opened for a request that is still to be served
get no row command."""
TRANSACTION = Record(
    "next "  # slot, in the FIFO or among the free ones
    "arrival unit place write accepted "  # unit: the address in 32 B; place: row * 32 + bank
    "port request"  # whose answer it is part of
)
CHANNEL_SIZE, BANK_SIZE, GROUP_SIZE, PC_SIZE = CHANNEL.size, BANK.size, GROUP.size, PC.size
TRANSACTION_SIZE = TRANSACTION.size
channel_at, timing_at, transaction_at = CHANNEL.at, TIMING.at, TRANSACTION.at
bank_at, group_at, pc_at, waiting_at = BANK.at, GROUP.at, PC.at, WAITING.at

READS, WRITES = 0, 1
"""The numbers of the queues."""
PLACES = 62
"""The places of a queue, which fit into a word beside its sign. They are more than it has requests, so gaps are closed seldom."""

# Where the parts of the block stand, in bytes
COUNTS = CHANNEL.offset("queued_reads")
BANKS_AT = CHANNEL_SIZE
GROUPS_AT = BANKS_AT + BANKS * BANK_SIZE
PCS_AT = GROUPS_AT + GROUPS * GROUP_SIZE
ACTIVE_AT = PCS_AT + PCS * PC_SIZE
WAITING_AT = ACTIVE_AT + 8 * BANKS
OF_BANK = WAITING.size  # in a queue: the set of the requests of each bank, and behind them the entries
ENTRIES = OF_BANK + 8 * BANKS
WAITING_SIZE = ENTRIES + 8 * PLACES
HISTOGRAM_AT = WAITING_AT + 2 * WAITING_SIZE
BLOCK = HISTOGRAM_AT + 8 * BUCKETS

SLOT_BITS, PLACE_AT = 31, 32
"""Where the parts of an entry of a queue stand. An entry is one word: the slot of the transaction in the pool in the lower bits, then one
bit for the queue that accepted it, and above it the place."""
SLOT_MASK = (1 << SLOT_BITS) - 1


def new_channel(timing: int, refresh_period: int) -> npt.NDArray[np.int64]:
    """Return the block of a channel at cycle 0, with all banks closed and without a pool. `timing` is the address of the command
    distances."""
    block = np.zeros(BLOCK // 8, np.int64)
    channel = block[: BANKS_AT // 8].view(CHANNEL.dtype)[0]
    channel["timing"], channel["next_refresh"] = timing, refresh_period
    channel["first"] = channel["last"] = channel["free"] = -1
    block[BANKS_AT // 8 : GROUPS_AT // 8].view(BANK.dtype)["open"] = -1
    pcs = block[PCS_AT // 8 : ACTIVE_AT // 8].view(PC.dtype)
    pcs["direction"] = -1
    for last in ("act_1", "act_2", "act_3"):
        pcs[last] = -(1 << 30)
    return block


@inline
def bank_of(channel: int, bank: int) -> Any:
    return bank_at(channel + BANKS_AT + BANK_SIZE * bank)


@inline
def group_of(channel: int, bank: int) -> Any:
    return group_at(channel + GROUPS_AT + GROUP_SIZE * (bank >> 2))


@inline
def pc_of(channel: int, bank: int) -> Any:
    return pc_at(channel + PCS_AT + PC_SIZE * (bank >> 4))


@inline
def transaction_of(channel: int, slot: int) -> Any:
    return transaction_at(channel_at(channel).pool + TRANSACTION_SIZE * slot)


@inline
def active_entry(channel: int, position: int) -> int:
    """Return one of the requests whose row was opened for them and that are still to be served. They stand in the order of their ACTs, at
    most one for each bank."""
    entry: int = get_int(channel + ACTIVE_AT, position)
    return entry


@inline
def append_active(channel: int, entry: int) -> None:
    c = channel_at(channel)
    set_int(channel + ACTIVE_AT, c.active, entry)
    c.active += 1


@inline
def remove_active(channel: int, position: int) -> None:
    c = channel_at(channel)
    c.active -= 1
    for j in range(position, c.active):
        set_int(channel + ACTIVE_AT, j, get_int(channel + ACTIVE_AT, j + 1))


@inline
def entry_of(place: int, queue: int, slot: int) -> int:
    return place << PLACE_AT | queue << SLOT_BITS | slot


@inline
def place_of(entry: int) -> int:
    return entry >> PLACE_AT


@inline
def queue_of(entry: int) -> int:
    return entry >> SLOT_BITS & 1


@inline
def slot_of(entry: int) -> int:
    return entry & SLOT_MASK
