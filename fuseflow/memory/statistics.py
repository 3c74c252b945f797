"""The statistics of a memory: its ports, its channels, and the whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from fuseflow.memory.layout import AddressRange, ArrayKind, ArrayName

Direction: TypeAlias = Literal["read", "write"]


COUNTED = ("reads", "writes", "activations", "hits", "misses", "conflicts", "forwarded", "absorbed", "turnarounds")
"""The statistics of a channel that count what happened in it."""


@dataclass(frozen=True, slots=True)
class MemoryPort:
    """The use of a port: one array of a node, read or written. `buffer` is the number of lines of its reuse buffer (0: none), and
    `on_chip` says that it is a port of the scratchpad. A port without a `tensor` moves whole tensors between the scratchpad and the
    memory."""

    node: str
    tensor: str
    kind: ArrayKind
    direction: Direction
    buffer: int = 0
    on_chip: bool = False


@dataclass(frozen=True, slots=True)
class PortStatistics:
    """The statistics of one port. `asked_bytes` are the bytes of its requests, `moved_bytes` the bytes of their transactions, and
    `latency` is the mean number of cycles from issue to answer. `hits` are the requests for lines in its reuse buffer: these move
    nothing, and their cycles are not in the mean."""

    requests: int
    transactions: int
    asked_bytes: int
    moved_bytes: int
    latency: float
    hits: int = 0

    @property
    def fetches(self) -> int:
        """The number of requests that moved bytes."""
        return self.requests - self.hits


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """The statistics of one channel, in memory cycles. How far the channel was advanced after its last completion changes no
    number.

    `reads` and `writes` are the completed transactions, of `transaction` bytes each. When its first command was issued, each was a
    hit (its row was open), a miss (its bank was closed) or a conflict (another row was open); or it is forwarded or absorbed by a
    queued write. `activations` are the rows that were opened. `turnarounds` is the number of changes between reading and writing on
    the data buses. `refresh_cycles` are the cycles from the due time of all-bank refreshes until rows may open again, or in which a
    due refresh of one bank holds the others back. `service` is the mean number of cycles from acceptance to completion. `read_latency` and
    `write_latency` are the mean numbers of cycles from arrival to completion, and `read_latency_p99` is the 99th percentile, at
    most 3 % too high.
    """

    transaction: int
    reads: int
    writes: int
    activations: int
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
        """The bytes that moved on the data buses."""
        return self.transaction * (self.hits + self.misses + self.conflicts)


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """The memory statistics of a run, in cycles of the machine. Statistics of channels are in cycles of the memory.

    `peak` is the number of bytes that can be moved in a cycle, and `clock` the number of memory cycles in a cycle. `places` has
    the addresses of the arrays. `ports` are in the order of the nodes. `read_latency` is the mean number of cycles from the
    request of a line to its answer, and `read_latency_p99` the number that 99 % do not exceed (at most 3 % too high). `on_chip` has
    the places of arrays in the scratchpad, and `words_a_cycle` is how many words the scratchpad can give in a cycle (0: none).
    """

    model: str
    peak: Fraction
    clock: float
    places: Mapping[ArrayName, AddressRange]
    ports: tuple[tuple[MemoryPort, PortStatistics], ...]
    channels: tuple[ChannelStatistics, ...]
    read_latency: float
    read_latency_p99: int
    on_chip: Mapping[ArrayName, AddressRange] = field(default_factory=dict)
    words_a_cycle: int = 0

    def moved_bytes(self, direction: Direction | None = None) -> int:
        """Return the bytes of all transactions of the memory, or of those in one direction."""
        return sum(of.moved_bytes for port, of in self.ports if direction in (None, port.direction) and not port.on_chip)

    def words(self, direction: Direction | None = None) -> int:
        """Return the words that were read and written in the scratchpad, or those in one direction."""
        return sum(of.requests for port, of in self.ports if direction in (None, port.direction) and port.on_chip)

    def transferred_bytes(self, direction: Direction) -> int:
        """Return the bytes that were read from the memory for the scratchpad, or written to the memory from there."""
        return sum(of.moved_bytes for port, of in self.ports if port.direction == direction and not port.tensor)

    @property
    def is_buffered(self) -> bool:
        """Whether a port has a reuse buffer."""
        return any(port.buffer for port, _ in self.ports)

    @property
    def bound(self) -> int:
        """The least number of cycles in which the memory can move all bytes, and the scratchpad all words."""
        words = -(-self.words() // self.words_a_cycle) if self.words_a_cycle else 0
        return max(-int(-self.bus_bytes // self.peak), words)

    @property
    def bus_bytes(self) -> int:
        """The bytes that moved on the data buses. Requests that a queued write answers or absorbs do not count."""
        return sum(channel.moved_bytes for channel in self.channels) if self.channels else self.moved_bytes()

    def total(self, field: str) -> int:
        """Return the sum of a statistic over all channels."""
        return sum(getattr(channel, field) for channel in self.channels)


def joined_ports(ports: Iterable[tuple[MemoryPort, PortStatistics]]) -> tuple[tuple[MemoryPort, PortStatistics], ...]:
    """Return the statistics of ports in several runs, with equal ports as one."""
    joined: dict[MemoryPort, PortStatistics] = {}
    for port, more in ports:
        before = joined.get(port, PortStatistics(0, 0, 0, 0, 0.0))
        latency = before.latency * before.fetches + more.latency * more.fetches
        joined[port] = PortStatistics(
            before.requests + more.requests,
            before.transactions + more.transactions,
            before.asked_bytes + more.asked_bytes,
            before.moved_bytes + more.moved_bytes,
            latency / max(before.fetches + more.fetches, 1),
            before.hits + more.hits,
        )
    return tuple(joined.items())


def joined_channels(runs: Sequence[Sequence[ChannelStatistics]]) -> tuple[ChannelStatistics, ...]:
    """Return the statistics of each channel in several runs, one after the other. The 99th percentile is the largest of the runs."""
    return tuple(map(_joined_channel, zip(*runs, strict=True)))


def _joined_channel(runs: Sequence[ChannelStatistics]) -> ChannelStatistics:
    def mean(of: Callable[[ChannelStatistics], float], weight: Callable[[ChannelStatistics], int]) -> float:
        return sum(of(run) * weight(run) for run in runs) / max(sum(map(weight, runs)), 1)

    return ChannelStatistics(
        transaction=runs[0].transaction,
        **{name: sum(getattr(run, name) for run in runs) for name in (*COUNTED, "refresh_cycles")},
        service=mean(lambda c: c.service, lambda c: c.reads + c.writes),
        read_latency=mean(lambda c: c.read_latency, lambda c: c.reads),
        read_latency_p99=max(run.read_latency_p99 for run in runs),
        write_latency=mean(lambda c: c.write_latency, lambda c: c.writes),
        last_completion=runs[-1].last_completion,
    )
