"""What a memory has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from fuseflow.sim.memory.layout import AddressRange, ArrayKind, ArrayName

Direction: TypeAlias = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class MemoryPort:
    """What a port is for: one array of a node."""

    node: str
    tensor: str
    kind: ArrayKind
    direction: Direction


@dataclass(frozen=True, slots=True)
class PortStatistics:
    """Of one port. `asked_bytes`: of the requests; `moved_bytes`: of their transactions; `latency`: mean cycles from issue to answer."""

    requests: int
    transactions: int
    asked_bytes: int
    moved_bytes: int
    latency: float


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """Of one channel, memory cycles. No number depends on how far the channel was advanced after its last completion.

    `reads`, `writes`: transactions completed, each a hit (its row was open), a miss (its bank was closed), a conflict (another row was
    open), forwarded or absorbed (by a queued write). `turnarounds`: changes between reading and writing on the buses of the pseudo
    channels. `refresh_cycles`: from when a refresh is due until rows may open again. `service`: mean cycles from acceptance to
    completion; `read_latency`, `write_latency`: mean from arrival; `read_latency_p99`: at most 3 % too high.
    """

    reads: int
    writes: int
    hits: int
    misses: int
    conflicts: int
    forwarded: int
    absorbed: int
    turnarounds: int
    refresh_cycles: int
    service: float
    read_latency: float
    read_latency_p99: int
    write_latency: float
    last_completion: int

    @property
    def moved_bytes(self) -> int:
        """Bytes on the data buses."""
        return 32 * (self.hits + self.misses + self.conflicts)


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """Of a run, in cycles of the machine; of the channels, in those of the memory.

    `peak`: bytes that can be moved in a cycle. `clock`: memory cycles in one. `places`: where the arrays lie. `ports`: in the order of the
    nodes. `read_latency`, `read_latency_p99`: cycles from the request of a line to its answer, the mean, and within which 99 % lie (at
    most 3 % too high).
    """

    model: str
    peak: Fraction
    clock: float
    places: Mapping[ArrayName, AddressRange]
    ports: tuple[tuple[MemoryPort, PortStatistics], ...]
    channels: tuple[ChannelStatistics, ...]
    read_latency: float
    read_latency_p99: int

    def moved_bytes(self, direction: Direction | None = None) -> int:
        """Bytes of all transactions, or of those that read or write."""
        return sum(statistics.moved_bytes for port, statistics in self.ports if direction in (None, port.direction))

    @property
    def bound(self) -> int:
        """Cycles that moving so many bytes takes at least."""
        return -int(-self.moved_bytes() // self.peak)

    def total(self, field: str) -> int:
        """Of a number of the channels, the sum."""
        return sum(getattr(channel, field) for channel in self.channels)
