"""Ports: order, room, and windows of any length that the look-ahead allows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fuseflow.memory.mapping import MAPPINGS
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import ComalFixed, Dram, MemoryModel


def closed_loop(
    model: MemoryModel,
    window: int,
    ports: int = 8,
    depth: int = 8,
    writes: float = 0.3,
    lines: int = 1 << 20,
    requests: int = 300,
    seed: int = 1,
) -> list[list[int]]:
    """Each port asks for lines in order, one a cycle, at most `depth` without an answer. Returns when it sees each."""
    random = np.random.default_rng(seed)
    wanted = (random.integers(0, lines, (ports, requests)) * 64).tolist()
    writing = (random.random((ports, requests)) < writes).tolist()
    memory, issued = Memory(model, ports), [0] * ports
    while min(issued) < requests:
        for cycle in range(memory.cycle, memory.cycle + window):
            for p in range(ports):
                n = issued[p]
                if n < requests and (n < depth or 0 <= memory.answer_cycle(p, n - depth) <= cycle):
                    memory.issue(p, wanted[p][n], 64, writing[p][n], cycle)
                    issued[p] += 1
        memory.advance(memory.cycle + window)
    memory.drain()
    return [memory.requests(p)["visible"].tolist() for p in range(ports)]


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("lines", [1 << 20, 64])  # the few lines are forwarded and absorbed often
def test_windows_of_up_to_17_cycles_give_the_same(mapping: str, lines: int) -> None:
    runs = {w: closed_loop(Dram(2, MAPPINGS[mapping]), w, lines=lines) for w in (1, 16, 17, 32)}
    assert runs[1] == runs[16] == runs[17] != runs[32]


def test_windows_of_a_single_port_that_waits() -> None:
    runs = {w: closed_loop(Dram(1), w, ports=1, depth=1, writes=0) for w in (1, 16, 17, 32)}
    assert runs[1] == runs[16] == runs[17] != runs[32]


@pytest.mark.parametrize("clock", [Fraction(1, 2), Fraction(2), Fraction(3, 4)])
def test_a_memory_with_another_clock(clock: Fraction) -> None:
    oracle, model = closed_loop(Dram(1, clock=clock), 1), Dram(1, clock=clock)
    assert model.lookahead == {Fraction(1, 2): 32, Fraction(2): 8, Fraction(3, 4): 21}[clock]
    assert closed_loop(model, model.lookahead) == oracle
    memory = Memory(Dram(1, clock=clock), 1)
    memory.issue(0, 0, 32, False, 3)
    memory.drain()
    assert memory.answer_cycle(0, 0) == -(-(int(3 * clock) + 32) // clock)


def test_windows_of_the_fixed_pipe() -> None:
    lookahead = ComalFixed.lookahead
    runs = [closed_loop(ComalFixed(), window, ports=2, depth=1) for window in (1, lookahead, 2 * lookahead)]
    assert runs[0] == runs[1] != runs[2]


def test_within_a_cycle_the_first_port_is_the_cycle_s() -> None:
    """Of 12 words, 4 find all 8 channels taken."""
    memory = Memory(ComalFixed(), ports=12)
    for port in range(12):
        memory.issue(port, 0, 4, False, 5)
    memory.drain()
    assert [port for port in range(12) if memory.answer_cycle(port, 0) > 5 + 19] == [1, 2, 3, 4]


def test_requests_of_many_ports_are_sent_in_the_order_of_arrival() -> None:
    """The ports of a window are a set of several words. Within a cycle, the circle begins at another of them in every cycle."""
    random, ports = np.random.default_rng(2), 75
    memory = Memory(ComalFixed(), ports)
    wanted = sorted((int(cycle), port) for port in range(ports) for cycle in random.integers(0, 40, int(random.integers(0, 4))))
    for cycle, port in wanted:
        memory.issue(port, 0, 4, False, cycle)
    free, turn, expected = (
        [0] * 8,
        0,
        dict[tuple[int, int], int](),
    )  # a word goes to the next channel, which takes one in 2 cycles
    numbers = [0] * ports
    for cycle, port in sorted(wanted, key=lambda row: (row[0], (row[1] - row[0]) % ports)):
        started = max(cycle, free[turn])
        free[turn], turn = started + 2, (turn + 1) % 8
        expected[port, numbers[port]] = started + 19
        numbers[port] += 1
    while memory.cycle < 60:
        memory.advance(memory.cycle + int(random.integers(1, 20)))
    answers = {(port, k): memory.answer_cycle(port, k) for port in range(ports) for k in range(numbers[port])}
    last: dict[int, int] = {}
    for (port, k), cycle in expected.items():  # those of a port in order
        last[port] = expected[port, k] = max(cycle, last.get(port, -1))
    assert answers == expected


def test_answers_come_in_order_of_issue() -> None:
    memory = Memory(Dram(1, MAPPINGS["RoBaRaCoCh"]), ports=1)
    requests = ((0, 0), (100, 1 << 15), (101, 1 << 10))  # open a row; a conflict; another pseudo channel, which is faster
    for cycle, address in requests:
        memory.issue(0, address, 32, False, cycle)
    memory.advance(125)
    assert [memory.answer_cycle(0, k) for k in range(3)] == [32, -1, -1]
    memory.drain()
    records = memory.requests(0)
    assert records["done"][2] < records["done"][1]
    assert records["visible"].tolist() == [32, 145, 145]


def test_everything_grows() -> None:
    """One by one or all at once; more than the rings and the pools hold at first."""
    random = np.random.default_rng(3)
    n = 3000
    addresses, writes, cycles = random.integers(0, 1 << 25, n) * 32, random.integers(0, 2, n), np.arange(n) // 8
    one, all_ = (Memory(Dram(2), ports=2) for _ in range(2))
    for address, write, cycle in zip(addresses.tolist(), writes.tolist(), cycles.tolist(), strict=True):
        one.issue(1, address, 64, write, cycle)
    all_.issue_all(1, addresses, 64, writes, cycles)
    for memory in (one, all_):
        memory.drain()
    assert one.requests(1).tobytes() == all_.requests(1).tobytes()
    assert (one.requests(1)["visible"] > 0).all() and len(one.rings[1]) == 4096 and len(one.rings[0]) == 64
    assert one.statistics() == all_.statistics() and one.model.channels() == all_.model.channels()


def test_a_ring_stays_as_small_as_what_is_asked_of_it() -> None:
    memory = Memory(Dram(1), ports=1)
    for k in range(1000):
        memory.issue(0, 64 * k, 64, False, memory.cycle)
        memory.advance(memory.cycle + 60)
        memory.release(0, int(memory.ports[0]["answered"]))
    assert len(memory.rings[0]) == 64


def test_bytes_asked_for_and_moved() -> None:
    memory = Memory(Dram(4), ports=2)
    memory.issue(0, 100, 4, False, 0)  # within one transaction
    memory.issue(0, 124, 8, False, 1)  # on both sides of a border
    memory.issue(1, 4096, 256, True, 1)  # a tile: in all four channels
    memory.drain()
    first, second = memory.statistics()
    assert (first.requests, first.asked_bytes, first.transactions, first.moved_bytes) == (2, 12, 3, 96)
    assert (second.requests, second.asked_bytes, second.moved_bytes) == (1, 256, 256)
    channels = memory.model.channels()
    assert [c.writes for c in channels] == [2, 2, 2, 2] and sum(c.reads for c in channels) == 3
    assert first.latency == np.mean(memory.requests(0)["visible"] - [0, 1])


@pytest.mark.parametrize("model", [Dram, ComalFixed])
def test_a_request_of_a_window_that_is_over_is_refused(model: type[Dram] | type[ComalFixed]) -> None:
    memory = Memory(model(), ports=2)
    memory.advance(16)
    with pytest.raises(AssertionError):
        memory.issue(0, 0, 64, False, 15)
    memory._issue(memory.port(0), 0, 64, 0, 15)  # as compiled code does
    with pytest.raises(AssertionError, match="older than the end of the last window"):
        memory.advance(32)


def test_statistics_do_not_depend_on_how_far_it_went_on() -> None:
    short, long = (Memory(Dram(1), ports=1) for _ in range(2))
    for memory, cycles in ((short, 7800), (long, 100_000)):
        memory.issue_all(0, np.arange(300) * 64, 64, 0, np.arange(300) * 20)
        memory.advance(cycles)
    assert short.model.channels() == long.model.channels()
