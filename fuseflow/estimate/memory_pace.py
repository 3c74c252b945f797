"""How fast a memory answers and what limits it, in cycles of the machine: all that the estimate and samples ask a memory.

A DRAM has channels with data buses, and each bus has bank groups with banks. Most of its numbers follow from the distances between
commands. The rest are rates that were measured once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import assert_never

from fuseflow.machine.machine import Machine
from fuseflow.memory.mapping import FIELD_WIDTHS
from fuseflow.memory.settings import ComalFixedMemory, FixedMemory, Hbm2Memory, IdealMemory, MemorySettings, clock_ratio
from fuseflow.memory.timing import HBM2_2000, command_distances

IN_ORDER_SHARE = 228 / 256
"""The share of its peak that HBM2 moves where lines are read one behind the other, chosen on runs on `rda`. The rest is lost to refresh
and to rows."""
ROW_CYCLES = 2.8
"""The cycles for which a channel of HBM2 moves nothing when a line lies in another row than the one that its bank has open, chosen on
runs on `rda`."""
FIXED_PIPE_BYTES = 16
"""The bytes that the fixed pipe of Comal moves in a cycle: four words."""


@dataclass(frozen=True, slots=True)
class RefreshPace:
    """A refresh every `period` cycles, which takes `cycles`. A port gets no answer for `gap` cycles, since rows are closed before and
    opened behind it."""

    period: float
    cycles: float
    gap: float


@dataclass(frozen=True, slots=True)
class MemoryPace:
    """The speed of a memory, in cycles of the machine. What is not said is that of a memory without banks, which only has a latency and
    a peak.

    `line` is the number of bytes of a request, and `peak` the most bytes in a cycle. `latency` is the number of cycles from a request
    to its answer in an idle memory, beyond the one cycle that a memory that answers at once takes. A port has up to `outstanding` lines
    without an answer, and fetches up to `prefetch` lines ahead.

    A channel has `buses` data buses, and together they have `groups` bank groups of `banks` banks. A bus takes `bus_cycles` for a
    block of 64 bytes, and a bank group `group_cycles`. All banks of a channel have `open_bytes` in open rows, each `row_bytes`.
    `in_order` is the share of the peak at which lines in order come. `row_cycles` is how long a channel moves nothing where a line lies
    in another row than the open one of its bank. `window` is the number of lines among which a channel chooses. `answer` is how long
    a port waits for a line, and `write` for the answer to a write, where the memory has little else to do. `reopen` is the time from a
    write until its bank can read another row. `mapping` is the name of the address mapping.
    """

    line: int
    peak: float = inf
    latency: int = 0
    outstanding: int = 1
    prefetch: int = 0
    channels: int = 1
    buses: int = 1
    groups: int = 1
    banks: int = 1
    bus_cycles: float = 0.0
    group_cycles: float = 0.0
    open_bytes: int = 1 << 62
    row_bytes: int = 0
    in_order: float = 1.0
    row_cycles: float = 0.0
    window: int = 1
    answer: float = 0.0
    write: float = 0.0
    reopen: float = 0.0
    refresh: RefreshPace | None = None
    mapping: str = ""


def memory_pace(machine: Machine) -> MemoryPace:
    """Return the speed of the memory of a machine."""
    return _pace(machine.memory, machine.clock_ghz)


@cache
def _pace(memory: MemorySettings, clock_ghz: float) -> MemoryPace:
    match memory:
        case Hbm2Memory():
            return _hbm2_pace(memory, clock_ghz)
        case FixedMemory():
            return MemoryPace(memory.line, inf, memory.latency - 1, memory.outstanding, memory.prefetch)
        case ComalFixedMemory():
            return MemoryPace(4, FIXED_PIPE_BYTES, 18, memory.outstanding, memory.prefetch)
        case IdealMemory():
            return MemoryPace(64)
        case unknown:
            assert_never(unknown)


def _hbm2_pace(memory: Hbm2Memory, clock_ghz: float) -> MemoryPace:
    device, distances = HBM2_2000, command_distances(HBM2_2000)
    ratio = float(clock_ratio(memory.clock_ghz, clock_ghz))
    group = 2 * device.nCCDL  # two transactions of 32 bytes
    latency = distances["act_to_read"] + distances["read_data"] + device.nCCDL
    answer = latency + 2
    closing = device.nRTPL + device.nRP
    return MemoryPace(
        line=memory.line,
        peak=32 * memory.channels * ratio,
        latency=round(latency / ratio),
        outstanding=memory.outstanding,
        prefetch=memory.prefetch,
        channels=memory.channels,
        buses=2,
        groups=8,
        banks=4,
        bus_cycles=2 * device.nCCDS / ratio,
        group_cycles=group / ratio,
        open_bytes=32 * 1024,
        row_bytes=1 << (FIELD_WIDTHS["byte"] + FIELD_WIDTHS["column"]),
        in_order=IN_ORDER_SHARE,
        row_cycles=ROW_CYCLES / ratio,
        window=18,
        answer=answer / ratio,
        write=40 / ratio,
        reopen=(device.nWR + device.nRP + device.nRCDRD) / ratio,
        refresh=RefreshPace(device.nREFI / ratio, device.nRFC / ratio, (closing + device.nRFC + answer) / ratio),
        mapping=memory.mapping,
    )
