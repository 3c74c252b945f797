"""The memory of a fixed latency: every answer so many cycles later, in windows of any length, for every port alike."""

from __future__ import annotations

import random

import pytest

from fuseflow.errors import MachineError
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import FixedLatency
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
