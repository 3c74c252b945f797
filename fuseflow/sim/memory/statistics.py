"""What a memory has done."""

from __future__ import annotations

from dataclasses import dataclass


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
