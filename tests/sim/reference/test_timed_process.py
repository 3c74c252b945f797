"""A process alone: the time of its firings, and the idle cycles between them. A FIFO alone: its peak."""

from __future__ import annotations

import pytest

from fuseflow.samml import nodes as n
from fuseflow.sim.reference.timed_process import BoundedFifo, Fifo, LinkFifo, Process, make_output


def process(interval: int = 1) -> Process:
    return Process(n.Root("p", ()), (), (), interval)


def test_before_the_first_firing_it_is_starved() -> None:
    p = process()
    assert (p.last, p.starved, p.blocked) == (-1, 0, 0)
    assert p.fire(5) == 5
    assert (p.first, p.last, p.starved, p.blocked) == (5, 5, 5, 0)


@pytest.mark.parametrize(
    ("seen", "free", "interval", "cycle", "starved", "blocked"),
    [
        (0, 0, 1, 11, 0, 0),  # looks at nothing, needs nothing
        (11, 11, 1, 11, 0, 0),
        (14, 0, 1, 14, 3, 0),
        (14, 12, 1, 14, 3, 0),  # both: until the token is there it is starved
        (14, 16, 1, 16, 3, 2),
        (10, 16, 1, 16, 0, 5),
        (0, 0, 4, 14, 0, 3),
        (12, 0, 4, 14, 1, 2),  # a token that comes within the interval
        (17, 20, 4, 20, 6, 3),
    ],
)
def test_idle_cycles(seen: int, free: int, interval: int, cycle: int, starved: int, blocked: int) -> None:
    p = process(interval)
    p.fire(10)
    assert p.fire(seen, free) == cycle
    assert (p.starved - 10, p.blocked) == (starved, blocked)
    assert p.firings == p.values == 2


def test_after_a_stop_the_next_follows_at_once() -> None:
    p = process(4)
    assert [p.fire(0), p.close(0), p.fire(0), p.fire(0)] == [0, 4, 5, 9]
    assert (p.values, p.blocked) == (3, 3 + 3)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    ("made", "taken", "peak"),
    [
        ([0, 1, 2], [2, 3, 4], 3),  # the first is taken in the cycle of the third: it still has its slot
        ([0, 1, 3], [2, 3, 4], 2),
        ([0, 5, 9], [2, 7, 11], 1),
        ([0, 1, 2, 3, 20, 21], [10, 11, 12, 13, 22, 23], 4),
        ([0, 1, 8, 9, 10, 11], [2, 3, 20, 21, 22, 23], 4),
    ],
)
def test_the_peak_of_a_fifo(bounded: bool, made: list[int], taken: list[int], peak: int) -> None:
    edge = n.Edge("r", 0)
    fifo = BoundedFifo(edge, 9) if bounded else Fifo(edge)
    out = make_output(2, (fifo,))
    for k, t in enumerate(made):
        out.push(k, t)
    for t in taken:
        fifo.take(t)
    assert fifo.peak == peak


def test_a_fifo_behind_three_hops() -> None:
    """Its writer has a latency of 2: two slots of its own, two for each hop, and one for the latency. A token comes 2 + 3 cycles after
    it was given, and its slot is free 3 cycles later than in the cycle after it is taken."""
    fifo = LinkFifo(n.Edge("r", 0), 2, 3, 2 * 3 + 1, 3)
    out = make_output(2, (fifo,))
    for t in range(9):
        assert fifo.slots.unused == 9 - t
        out.push(t, t)
    assert [visible for _, visible in fifo] == list(range(5, 14))
    for t in range(5, 14):
        fifo.take(t)
    assert (fifo.slots.unused, list(fifo.slots), fifo.peak) == (0, list(range(9, 18)), 9)
