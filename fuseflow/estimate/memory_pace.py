"""How fast a memory answers and what limits it, in cycles of the machine: all that the estimate and samples ask a memory.

A DRAM has channels with data buses, and each bus has bank groups with banks. Most of its numbers follow from the distances between
commands. The rest are rates that were measured once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import expm1, inf
from typing import NamedTuple, assert_never

from fuseflow.machine.machine import Machine
from fuseflow.memory.dram_table import CHANNEL, DramTable
from fuseflow.memory.mapping import AddressMapping
from fuseflow.memory.settings import ComalFixedMemory, DramMemory, FixedMemory, IdealMemory, MemorySettings

FIXED_PIPE_BYTES = 16
"""The bytes that the fixed pipe of Comal moves in a cycle: four words."""


@dataclass(frozen=True, slots=True)
class RefreshPace:
    """A refresh every `period` cycles, which keeps the share `lines` of all lines waiting for `cycles`. A port that wants one of them gets
    no answer for `gap` cycles."""

    period: float
    cycles: float
    gap: float
    lines: float = 1.0

    def pause(self, hidden: float, rate: float) -> float:
        """Return the mean cycles for which a port that asks for `rate` lines a cycle holds up its stage, which can go on for `hidden`
        cycles without answers. The port goes on until it wants a line that has to wait."""
        pause, wanted = max(0.0, self.gap - hidden), self.lines * rate
        if self.lines == 1:
            return pause
        return pause + expm1(-wanted * pause) / wanted if wanted else 0.0


class Places(NamedTuple):
    """Where the bytes of an address lie: the mapping of the addresses of a table."""

    table: DramTable
    mapping: AddressMapping


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPace:
    """The speed of a memory, in cycles of the machine. What is not said is that of a memory without banks, which only has a latency and
    a peak.

    `line` is the number of bytes of a request, and `peak` the most bytes in a cycle. `latency` is the number of cycles from a request
    to its answer in an idle memory, beyond the one cycle that a memory that answers at once takes; it is `row_open` cycles less where the
    bank has the row open, and `row_other` more where it has another one open. A port has up to `outstanding` lines
    without an answer, and fetches up to `prefetch` lines ahead.

    A channel has `buses` data buses, and together they have `groups` bank groups of `banks` banks. A bus takes `bus_cycles` for a
    block of 64 bytes, and a bank group `group_cycles`. All banks of a channel have `open_bytes` in open rows, each `row_bytes`.
    `in_order` is the share of the peak at which lines in order come. `row_cycles` is how long a channel moves nothing where a line lies
    in another row than the open one of its bank. `window` is the number of lines among which a channel chooses. `answer` is how long
    a port waits for a line, and `write` for the answer to a write, where the memory has little else to do. `reopen` is the time from a
    write until its bank can read another row. `places` says in which bank an address
    lies.
    """

    line: int
    peak: float = inf
    latency: int = 0
    row_open: float = 0.0
    row_other: float = 0.0
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
    places: Places | None = None


def memory_pace(machine: Machine) -> MemoryPace:
    """Return the speed of the memory of a machine."""
    return _pace(machine.memory, machine.clock_ghz)


@cache
def _pace(memory: MemorySettings, clock_ghz: float) -> MemoryPace:
    match memory:
        case DramMemory():
            return _dram_pace(memory, clock_ghz)
        case FixedMemory():
            return MemoryPace(memory.line, latency=memory.latency - 1, outstanding=memory.outstanding, prefetch=memory.prefetch)
        case ComalFixedMemory():
            return MemoryPace(4, FIXED_PIPE_BYTES, 18, outstanding=memory.outstanding, prefetch=memory.prefetch)
        case IdealMemory():
            return MemoryPace(64)
        case unknown:
            assert_never(unknown)


def _dram_pace(memory: DramMemory, clock_ghz: float) -> MemoryPace:
    table, ratio = memory.dram, float(memory.cycles_in(clock_ghz))
    levels = dict(table.levels)
    transactions = max(1, 64 // table.transaction)
    buses, opening = levels.get("pseudo_channel", 1), table.least(table.activate, "RD")
    group = table.least("RD", "RD")
    opened, closed, other = table.idle_reads()
    latency = closed + (transactions - 1) * group - 1
    reopen = table.least("WR", "PREpb") + table.least("PREpb", table.activate) + opening - _written(table)
    return MemoryPace(
        line=memory.line,
        peak=table.bytes_per_cycle * memory.channels * ratio,
        latency=round(latency / ratio),
        row_open=(closed - opened) / ratio,
        row_other=(other - closed) / ratio,
        outstanding=memory.outstanding,
        prefetch=memory.prefetch,
        channels=memory.channels,
        buses=buses,
        groups=table.banks // levels["bank"],
        banks=levels["bank"],
        bus_cycles=transactions * table.least("RD", "RD", CHANNEL, table.bus_scope) / ratio,
        group_cycles=transactions * group / ratio,
        open_bytes=table.banks * table.row_bytes,
        row_bytes=table.row_bytes,
        in_order=memory.measured.sequential / 100,
        row_cycles=memory.row_cycles / ratio,
        window=table.read_queue * table.transaction // 64 + 2,
        answer=(latency + 2) / ratio,
        write=(latency + 5) / ratio,
        reopen=reopen / ratio,
        refresh=_refresh_pace(table, latency + 2, ratio),
        places=Places(table, memory.address_mapping),
    )


def _written(table: DramTable) -> float:
    """Return the cycles from a WR to the end of its data. Data of reads and writes are two cycles apart on the bus."""
    data = table.transaction * dict(table.levels).get("pseudo_channel", 1) / table.bytes_per_cycle
    return table.read_latency + 2 - table.least("RD", "WR") + data


def _refresh_pace(table: DramTable, answer: int, ratio: float) -> RefreshPace | None:
    """Return the pace of refreshes. Before one, rows are closed; and behind it, a row is opened for the next answer. A refresh of a single
    bank keeps the lines in this bank waiting. What is read lies in one bank of each bank group: most refreshes are of other banks."""
    sizes, opening = dict(table.levels), dict(table.command_cycles).get(table.activate, 1) - 1
    period, lines = float(table.refresh_period), 1.0
    match table.refresh:
        case "none":
            return None
        case "per-bank":
            cycles = table.least("REFpb", table.activate) + opening
            gap = table.least("RD", "PREpb") + table.least("PREpb", "REFpb") + cycles + table.least(table.activate, "RD")
            period *= sizes["bank"] * sizes.get("sid", 1)
            at_once = sizes.get("pseudo_channel", 1) if table.controller == "hbm34" else 1  # one bank of each pseudo channel
            lines = at_once / (sizes.get("pseudo_channel", 1) * sizes.get("bank_group", 1))
        case "all-bank":
            cycles = table.least("REFab", table.activate) + opening
            gap = table.least("RD", "PREab") + table.least("PREab", "REFab") + cycles + answer
        case unknown:
            assert_never(unknown)
    return RefreshPace(period / ratio, cycles / ratio, gap / ratio, lines)
