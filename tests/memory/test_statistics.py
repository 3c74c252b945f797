"""What a memory says of itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fuseflow.memory.memory import Memory
from fuseflow.memory.models import ComalFixed, Dram, MemoryModel
from fuseflow.memory.statistics import MemoryPort, MemoryStatistics

READ, WRITE = MemoryPort("load", "A", "val", "read"), MemoryPort("write", "Y", "val", "write")


def after(model: MemoryModel, reads: int, writes: int) -> MemoryStatistics:
    """So many lines, one after the other."""
    memory = Memory(model, ports=2)
    for port, count in enumerate((reads, writes)):
        if count:
            memory.issue_all(port, (1 << 20) * port + np.arange(count) * 64, 64, port, np.arange(count))
    memory.drain()
    return memory.report((READ, WRITE), {})


@pytest.mark.parametrize("clock", [Fraction(1), Fraction(3, 4), Fraction(2), Fraction(1, 3), Fraction(199, 59)])
@pytest.mark.parametrize("more", [0, 1])
def test_the_bound_is_exact(clock: Fraction, more: int) -> None:
    """What fits into so many cycles takes so many, and one line more takes one more, whatever the ratio of the clocks."""
    channels, cycles = 4, 2 * clock.denominator
    lines = channels * clock.numerator
    found = after(Dram(channels, clock=clock), reads=lines + more, writes=0)
    assert found.moved_bytes() == 64 * (lines + more)
    assert found.bound == (cycles if not more else -(-64 * (lines + 1) // (32 * channels * clock)))


def test_reads_and_writes_are_told_apart() -> None:
    for model in (Dram(), ComalFixed()):
        found = after(model, reads=40, writes=9)
        assert (found.moved_bytes("read"), found.moved_bytes("write"), found.moved_bytes()) == (40 * 64, 9 * 64, 49 * 64)
        assert [port for port, _ in found.ports] == [READ, WRITE]
        assert found.read_latency == pytest.approx(found.ports[0][1].latency)
        assert found.read_latency_p99 >= found.read_latency
        assert found.bound == -(-49 * 64 // found.peak)


def test_channels_add_up() -> None:
    found = after(Dram(8), reads=1000, writes=300)
    assert (found.total("reads"), found.total("writes")) == (2000, 600)
    assert found.total("hits") + found.total("misses") + found.total("conflicts") == 2600
    assert sum(channel.moved_bytes for channel in found.channels) == found.moved_bytes()
