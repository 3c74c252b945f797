"""The rules of a channel, each on a few requests, by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fuseflow.memory.mapping import MAPPINGS
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram
from fuseflow.memory.statistics import ChannelStatistics

READ, WRITE = False, True


@dataclass(frozen=True)
class Run:
    accepted: list[int]
    done: list[int]
    seen: list[int]
    channel: ChannelStatistics


def place(bank: int = 0, row: int = 0, column: int = 0) -> int:
    """The address of a place in a single channel, mapped RoBaRaCoCh."""
    group, pc = (bank >> 2) & 3, bank >> 4
    return row << 15 | (bank & 3) << 13 | group << 11 | pc << 10 | column << 5


def run(*requests: tuple[int, bool, int]) -> Run:
    """Arrival, whether it writes, and address of each."""
    memory = Memory(Dram(1, MAPPINGS["RoBaRaCoCh"]), ports=1)
    for cycle, write, address in requests:
        memory.issue(0, address, 32, write, cycle)
    memory.drain()
    records = memory.requests(0)
    (channel,) = memory.model.channels()
    return Run(records["accepted"].tolist(), records["done"].tolist(), records["visible"].tolist(), channel)


def test_idle_latencies_of_a_closed_bank_a_hit_and_a_conflict() -> None:
    found = run((0, READ, place()), (100, READ, place(column=1)), (200, READ, place(row=1)))
    assert found.done == found.seen == [32, 117, 245]
    assert (found.channel.misses, found.channel.hits, found.channel.conflicts) == (1, 1, 1)


def test_a_write_is_done_with_its_command_and_seen_one_look_ahead_later() -> None:
    found = run((0, WRITE, place()), (100, WRITE, place(column=1)))
    assert found.done == [14, 101]  # ACT at 1, WR 13 later; WR at once
    assert found.seen == [31, 118]


def test_a_read_of_a_queued_write_is_forwarded() -> None:
    """The write waits, since reads go first. The second read's data leave after those of the read before it."""
    busy = [(0, READ, place(row=row)) for row in range(3)]
    found = run(*busy, (0, WRITE, place(4)), (5, READ, place(4)), (20, READ, place(4)), (20, READ, place(4, column=1)))
    assert found.accepted[4:] == [5, 20, 20]
    assert found.done[4:6] == [6, 32]
    assert found.done[6] > 37  # another 32 bytes: a transaction of its own
    assert found.channel.forwarded == 2


def test_a_port_sees_a_forwarded_read_17_cycles_after_its_acceptance() -> None:
    memory = Memory(Dram(1, MAPPINGS["RoBaRaCoCh"]), ports=2)
    for row in range(3):
        memory.issue(0, place(row=row), 32, READ, 0)
    memory.issue(0, place(4), 32, WRITE, 0)
    memory.issue(1, place(4), 32, READ, 5)
    memory.advance(6)
    assert memory.requests(1)["done"].tolist() == [6] and memory.answer_cycle(1, 0) == 22


def test_a_write_to_what_a_queued_write_writes_is_absorbed() -> None:
    found = run(
        (0, READ, place()), (0, READ, place(row=1)), (0, WRITE, place(4)), (7, WRITE, place(4)), (7, WRITE, place(4, column=1))
    )
    assert (found.accepted[3], found.done[3]) == (7, 7)
    assert found.channel.absorbed == 1
    assert found.done[2] > 15 and found.done[4] > found.done[2]


def test_a_write_whose_row_was_opened_for_it_is_no_longer_seen() -> None:
    found = run((0, WRITE, place()), (5, READ, place()))
    assert found.done == [14, 14 + 15 + 16]  # WR to RD of the bank group
    assert found.channel.forwarded == 0 and found.channel.hits == 1


def test_a_full_queue_refuses_and_all_behind_it_wait() -> None:
    """33 reads of different rows of a bank: the first leaves the queue with its ACT in cycle 1, the second 48 later."""
    reads = [(0, READ, place(row=row)) for row in range(34)]
    found = run(*reads, (0, WRITE, place(4)), (3, READ, place(8)))
    assert found.accepted[:32] == [0] * 32
    assert found.accepted[32:36] == [1, 49, 49, 97]


def test_what_a_queued_write_answers_is_never_refused() -> None:
    reads = [(0, READ, place(row=row)) for row in range(33)]
    found = run((0, WRITE, place(4)), *reads, (2, READ, place(4)), (2, WRITE, place(4)))
    assert found.accepted[33:] == [1, 2, 2]  # the last read takes the 32nd entry; these two need none


@pytest.mark.parametrize(("writes", "drained"), [(25, 0), (26, 20)])
def test_writes_are_drained_from_26_down_to_6(writes: int, drained: int) -> None:
    """Reads of one bank's rows keep the read queue busy; writes are to one row of the other pseudo channel."""
    reads = [(0, READ, place(row=row)) for row in range(20)]
    found = run(*reads, *[(0, WRITE, place(16, column=column)) for column in range(writes)])
    last_read_opened = found.done[19] - 31  # its ACT; before it, the read queue was not empty
    assert sum(done < last_read_opened for done in found.done[20:]) == drained


def test_a_request_that_is_not_ready_blocks_nobody() -> None:
    found = run((0, READ, place()), (40, READ, place(row=1)), (40, READ, place(4)))
    assert found.done == [32, 85, 73]  # conflict; closed bank, one cycle after the PRE on the row bus


def test_a_young_request_may_close_a_row_that_older_hits_wait_for() -> None:
    opening = [(0, READ, place(0)), (0, READ, place(1))]
    older = [(100, READ, place(1, column=column)) for column in range(1, 9)]
    waiting, young = (100, READ, place(0, column=1)), (100, READ, place(0, row=1))
    assert run(*opening, *older, waiting).channel.hits == 9
    found = run(*opening, *older, waiting, young).channel
    assert (found.hits, found.misses, found.conflicts) == (8, 3, 1)  # the older one finds the bank closed
    assert found.activations == 4


def test_a_row_stays_open_for_the_request_that_opened_it() -> None:
    """The read opens row 1 in cycle 4. Writes turn the bus and hold its RD back until 41; the write to row 0, ready to close the row at
    40, waits for it: PRE at 46, ACT 59, WR 72."""
    found = run(
        (3, WRITE, place(row=0)), (3, READ, place(row=1, column=2)), (5, WRITE, place(row=1)), (8, WRITE, place(1, row=1)),
        (9, WRITE, place(1, row=1)),
    )  # fmt: skip
    assert found.done == [72, 57, 17, 22, 26]


def test_a_refresh_blocks_both_pseudo_channels() -> None:
    """REFab of PC 0 in cycle 3900, of PC 1 in the next; rows may open 349 later, the second after two cycles of the first on the bus."""
    found = run((3899, READ, place(0)), (3899, READ, place(16)))
    assert found.done == [3900 + 349 + 31, 3900 + 349 + 2 + 31]
    assert found.channel.refresh_cycles == 350


def test_a_refresh_closes_rows_and_waits_for_the_request_that_opened_one() -> None:
    found = run((3850, READ, place()), (3898, READ, place(4)), (3899, READ, place(column=1)))
    assert found.done[:2] == [3882, 3899 + 31]  # its ACT was out in cycle 3899
    # PREab 35 after that ACT, REFab of PC 0 14 later, then ACT
    assert found.done[2] == 3899 + 35 + 14 + 349 + 31
    assert found.channel.misses == 3 and found.channel.hits == 0


def test_a_refresh_waits_for_a_write_that_the_bus_holds_back() -> None:
    """The write opens its row in cycle 3861, but the last read turns the bus for it in 3906 only: PREab 23 later, REFab 14, ACT 349."""
    found = run(
        (3858, READ, place(2, row=1)),
        (3860, WRITE, place(1, column=2)),
        (3883, READ, place(2, row=1)),
        (3892, READ, place(2, row=1)),
        (3899, READ, place(1)),
    )
    assert found.done == [3890, 3906, 3900, 3909, 3906 + 23 + 14 + 349 + 31]


def test_turnarounds_and_latencies_are_counted() -> None:
    found = run((0, READ, place()), (100, WRITE, place(column=1)), (200, READ, place(column=2)), (300, READ, place(16))).channel
    assert found.turnarounds == 2  # the bus of the other pseudo channel was never turned
    assert (found.reads, found.writes, found.moved_bytes, found.last_completion) == (3, 1, 128, 332)
    assert (found.read_latency, found.read_latency_p99, found.write_latency) == ((32 + 17 + 32) / 3, 32, 1)
    assert found.service == (32 + 17 + 32 + 1) / 4
