"""How long the ports of a graph wait for answers, since lines that are requested at the same time meet in the bank groups of the
memory."""

from __future__ import annotations

from functools import cache
from math import exp, gcd

import numpy as np

from fuseflow.estimate.buffer_reuse import OwnLoop
from fuseflow.estimate.memory_load import ArrayLoad, MemoryLoad
from fuseflow.estimate.memory_pace import MemoryPace
from fuseflow.estimate.port_lines import AT_ONCE
from fuseflow.estimate.stream_flow import Number
from fuseflow.memory.mapping import decode_addresses

LONGEST_STRIDE = 1024
"""How many lines of a loop are inspected to tell how lines that lie evenly apart spread over the memory."""
MEET_ANOTHER = 1.6
"""How many ports wait when one waits for a row that a write closed: 1.6 in runs of the memory alone on 2, 4 and 8 ports."""
MISS_CYCLES = 4.5
"""The cycles for which a port waits at each piece of an array that is not in its reuse buffer: at the first the whole answer, and while it
waits it asks for some that are next."""


def answer_cycles(load: MemoryLoad, written: Number, pace: MemoryPace) -> float:
    """Return the most cycles for which a port waits for answers, since few of its lines may be without one. It asks for one line
    a cycle at most, also in its reuse buffer, and waits where one is missing. `written` is as in `port_cycles`."""
    return max((port_cycles(read, written, pace) for read in load.reads), default=0)


def port_cycles(read: ArrayLoad, written: Number, pace: MemoryPace) -> float:
    """Return the cycles for which a port waits for its answers.

    The lines that it waits for at once lie in any of the bank groups, some of them in one, and lines of the other ports beside
    them. Answers come in order, so the port goes on as fast as the group that has most to do. Lines that lie evenly apart may all
    be in one. After the mean number of lines of all ports, fewer and fewer go on beside the busiest one. Each of the lines
    `written` one by one closes the row of a line that is read in the same bank.
    """
    if not pace.answer:
        return 0.0
    asked = read.asked + read.jumps / read.ports * MISS_CYCLES if read.asked > read.most else 0.0
    apart = read.alike * read.port.in_list * _evenly_apart_cycles(read, pace)  # beside the lines of other lists it is less
    mean, wait = read.lines / read.ports, max(pace.answer / pace.outstanding, apart)
    together = max(wait, _group_cycles(read, read.ports - 1, pace))
    fewer = max(wait, _group_cycles(read, (read.ports - 1) / 2, pace))
    reopened = written / pace.banks * pace.reopen * min(1.0, MEET_ANOTHER / read.ports)
    return max(asked, mean * together + (read.most - mean) * fewer + (reopened if read.most > written else 0.0))


def _group_cycles(read: ArrayLoad, others: float, pace: MemoryPace) -> float:
    """Return the cycles for a line of `read` in the busiest bank group, beside `others` ports that ask for as much."""
    groups = pace.groups * pace.channels
    stride = read.port.along.stride if read.port.along is not None and read.port.along.is_apart else 1.0
    own = (read.port.at_once - read.port.in_turn) / 2 * (gcd(groups, int(stride)) if stride >= 1 and stride == int(stride) else 1)
    largest = expected_largest((own + others * read.port.at_once) / groups, read.port.at_once)
    return pace.group_cycles * (1 + largest) / read.port.at_once


def queue_cycles(read: ArrayLoad, busy: Number, pace: MemoryPace, depth: int | None) -> float:
    """Return the cycles for which a line waits behind the others of its port, if these meet in few bank groups and keep them
    occupied for most of the `busy` cycles of the graph; else 0. FIFOs of `depth` slots have room for as many lines."""
    each = _evenly_apart_cycles(read, pace)
    before = pace.outstanding if depth is None else min(depth, pace.outstanding)
    return max(0.0, before * each - pace.answer) if read.most * each > busy / 2 else 0.0


def _evenly_apart_cycles(read: ArrayLoad, pace: MemoryPace) -> float:
    """Return the cycles for a line where all lie evenly apart, 0 where they do not."""
    if read.port.along is None or not read.port.along.is_apart or read.port.in_order:
        return 0.0
    return strided_line_cycles(pace, read.port.along)


@cache
def strided_line_cycles(pace: MemoryPace, loop: OwnLoop) -> float:
    """Return the cycles for each line along a loop, if `AT_ONCE` lines are under way at once: the cycles of the bank group, or of
    the data bus, in which most of them lie. 0 in a memory without banks.

    Example: in eight channels of HBM2, lines 4,096 bytes apart lie in one bank group, which takes 8 cycles for each.
    """
    if pace.places is None:
        return 0.0
    run = max(1, round(loop.run))
    starts = np.arange(max(1, min(loop.size, LONGEST_STRIDE // run))) * loop.stride
    addresses = (pace.line * np.add.outer(starts, np.arange(run)).ravel()).astype(np.int64)
    channel, bank, _ = decode_addresses(pace.places.mapping, pace.places.table, pace.channels, addresses)
    bus = channel * pace.buses + bank // (pace.groups // pace.buses * pace.banks)
    ways = (channel * pace.groups + bank // pace.banks, pace.group_cycles), (bus, pace.bus_cycles)
    windows = range(0, len(addresses), AT_ONCE)
    return sum(max(float(np.bincount(way[at : at + AT_ONCE]).max()) * cycles for way, cycles in ways) for at in windows) / len(
        addresses
    )


def expected_largest(mean: float, draws: float) -> float:
    """Return the expected largest of `draws` draws of a Poisson distribution."""
    term, below, largest = exp(-mean), exp(-mean), 0.0
    count = 0
    while (missing := 1 - min(1.0, below) ** draws) > 1e-3:
        largest += missing
        count += 1
        term *= mean / count
        below += term
    return largest
