"""The memory of a fixed latency: every answer so many cycles later, in windows of any length, for every port alike."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fuseflow.errors import MachineError
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import ComalFixed, FixedLatency
from fuseflow.sim import load_machine


@pytest.mark.parametrize("latency", [1, 2, 40, 200])
def test_every_answer_is_so_many_cycles_later(latency: int) -> None:
    rng, ports = random.Random(latency), 3
    memory, cycle = Memory(FixedLatency(latency, 64, ports), ports), 0
    asked: list[list[int]] = [[] for _ in range(ports)]
    for _ in range(300):
        cycle += rng.choice((1, 1, 2, 50))
        memory.advance(cycle)
        for port in range(ports):
            if rng.random() < 0.6:
                memory.issue(port, rng.randrange(1 << 20) * 64, 64, rng.random() < 0.5, cycle)
                asked[port].append(cycle)
    memory.drain()
    for port, cycles in enumerate(asked):
        assert [memory.answer_cycle(port, k) for k in range(len(cycles))] == [cycle + latency for cycle in cycles]
    assert memory.statistics()[0].moved_bytes == 64 * len(asked[0])


@pytest.mark.parametrize("latency", ["0", "-3", "2000000", "1.5"])
def test_a_latency_that_cannot_be(latency: str) -> None:
    with pytest.raises(MachineError, match="must be a whole number of cycles, 1 to 1,048,576"):
        load_machine("rda", {"memory": "fixed", "memory.latency": latency})


def read(memory: Memory, words: int) -> int:
    """The cycles that a node waits which asks for so many words."""
    before = memory.cycle
    request = memory.issue(0, 0, 4 * words, False, before)
    memory.drain(step=1)
    memory.advance(memory.answer_cycle(0, request))
    return memory.cycle - before


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40])
def test_a_compressed_fiber(n: int) -> None:
    """Its 2 segment words, then coordinates 8 at a time, each waited for: 19 + 19 ceil(n / 8) cycles of waiting."""
    memory = Memory(ComalFixed(), ports=1)
    waited = read(memory, 2) + sum(read(memory, min(8, n - k)) for k in range(0, n, 8))
    assert waited == 19 + 19 * -(-n // 8)


def test_at_most_4_words_a_cycle() -> None:
    memory, n = Memory(ComalFixed(), ports=1), 4000
    memory.issue_all(0, np.random.default_rng(0).integers(0, 1 << 30, n), 4, 0, np.arange(n) // 16)
    memory.drain()
    word, arrival = np.arange(n), np.arange(n) // 16
    assert np.array_equal(memory.requests(0)["visible"], np.maximum(arrival, 2 * (word // 8)) + 19)
    assert memory.statistics()[0].moved_bytes == 4 * n


def test_addresses_do_not_matter() -> None:
    seen = []
    for addresses in (np.zeros(100, np.int64), np.random.default_rng(0).integers(0, 1 << 30, 100)):
        memory = Memory(ComalFixed(), ports=1)
        memory.issue_all(0, addresses, 20, 0, np.arange(100) // 3)
        memory.drain()
        seen.append(memory.requests(0)["visible"].tolist())
    assert seen[0] == seen[1]
