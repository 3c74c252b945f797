"""The memory models: the state of each, and how each makes room for more transactions. A new model is a class like these, and a
kernel that advances the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fuseflow.memory import mapping as maps
from fuseflow.memory.channel import CHANNEL, HISTOGRAM_AT, TRANSACTION, new_channel
from fuseflow.memory.comal_fixed import CHANNELS, COMAL, INTERVAL, ROUND_TRIP, WORD, advance_comal
from fuseflow.memory.fixed_latency import FIXED, advance_fixed
from fuseflow.memory.hbm2 import HBM2, advance_hbm2
from fuseflow.memory.hbm2_threads import SHARE, receive_answers, run_channels, send_to_channels
from fuseflow.memory.histogram import percentile
from fuseflow.memory.mailboxes import COMPLETION, MESSAGE, REQUESTS, THREAD_BITS, mailboxes
from fuseflow.memory.mapping import Ints
from fuseflow.memory.ports import PORT_SIZE
from fuseflow.memory.statistics import ChannelStatistics
from fuseflow.memory.table_files import preset
from fuseflow.memory.timing import HBM2_2000, DeviceTiming, command_distances, lookahead
from fuseflow.native.records import LONGEST, address
from fuseflow.native.signatures import Function

NumpyArray = npt.NDArray[Any]
BUS_BYTES = 32
"""The most bytes that a channel moves in a memory cycle."""
POOL = 256
"""The number of transactions for which each channel has room at first."""


_COUNTED = ("reads", "writes", "hits", "misses", "conflicts", "forwarded", "absorbed", "turnarounds")
"""The statistics of a channel that its record counts under the same name."""


@dataclass(frozen=True, slots=True)
class ThreadedModel:
    """How a memory model runs in threads: the functions of the three steps of a window (`hbm2_threads.py`), None for a step that
    there is not, and the address of the share of each thread in the model's state. `leave` takes the model out of the threads."""

    send: Function
    run: Function | None
    receive: Function | None
    shares: list[int]
    leave: Callable[[], None]
    kept: tuple[object, ...] = ()
    """What must stay alive."""


class MemoryModel(Protocol):
    """A memory model answers the requests of ports.

    `advance` is its kernel, which takes the address of the memory and a cycle. It returns 0, LATE, or a number; then `grow` must
    be called with that number before the kernel is called again. An answer that is not known at a cycle is visible `lookahead`
    cycles later at the earliest. `clock` is the number of memory cycles in one cycle of the ports. `delay` is the number of
    memory cycles from the acceptance of a read, and from the completion of a write, to the earliest answer. `transaction` is the
    number of bytes of one access, and `peak` the largest number of bytes in a cycle of the ports.
    """

    name: str
    divides: bool
    """Whether it runs in threads."""
    advance: Function
    lookahead: int
    clock: Fraction
    delay: int
    transaction: int
    peak: Fraction
    state: NumpyArray

    def grow(self, short: int) -> None: ...

    def channels(self) -> tuple[ChannelStatistics, ...]: ...

    def in_threads(self, ports: NumpyArray, thread_of: Ints, most: Ints) -> ThreadedModel:
        """Return how the model runs in threads. `thread_of` has the thread of each of the ports, and `most` the largest number of
        transactions of each thread that are on the way."""
        ...


class _Pipe:
    """A model without queues, which needs no room, and without channels that are counted."""

    divides = True
    advance: Function
    state: NumpyArray

    def grow(self, short: int) -> None:
        raise AssertionError("has no queues")

    def channels(self) -> tuple[ChannelStatistics, ...]:
        return ()

    def in_threads(self, ports: NumpyArray, thread_of: Ints, most: Ints) -> ThreadedModel:
        """The requests of one port do not matter to others."""
        return ThreadedModel(self.advance, None, None, [address(self.state)] * len(most), lambda: None)


class FixedLatency(_Pipe):
    """A memory that answers every request `latency` cycles later. Each port can move a line of `line` bytes in every cycle."""

    name, advance, delay, clock = "fixed", staticmethod(advance_fixed), 0, Fraction(1)

    def __init__(self, latency: int, line: int, ports: int) -> None:
        self.lookahead, self.transaction = latency, line
        self.peak: Fraction = Fraction(line * max(ports, 1))
        self.state: NumpyArray = FIXED.array(1)
        self.state["latency"] = latency


class ComalFixed(_Pipe):
    """The memory of the released Comal simulator, a pipe of fixed latency."""

    name, advance, lookahead, delay, transaction = "comal_fixed", staticmethod(advance_comal), ROUND_TRIP, 0, WORD
    clock, divides = Fraction(1), False
    peak: Fraction = Fraction(CHANNELS * WORD, INTERVAL)

    def __init__(self) -> None:
        self.free = np.zeros(CHANNELS, np.int64)
        self.state: NumpyArray = COMAL.array(1)
        self.state["free"] = address(self.free)


class Hbm2:
    """Channels of HBM2 behind an address mapping. Raises `MachineError` for an impossible number of channels."""

    name, divides, advance, transaction = "hbm2", True, staticmethod(advance_hbm2), 32

    def __init__(
        self,
        channels: int = 8,
        mapping: maps.MappingRule = maps.bgint_xor,
        device: DeviceTiming = HBM2_2000,
        clock: Fraction = Fraction(1),
    ) -> None:
        self.clock, self.delay = clock, lookahead(device)
        self.peak: Fraction = BUS_BYTES * channels * clock
        self.lookahead = self.delay if clock == 1 else max(int((self.delay - 1) / clock), 1)
        table = preset("hbm2").table()
        packed = maps.place_tables(mapping(table), table, channels)
        self.places = packed >> maps.PLACE_BITS << 21 | (packed >> maps.BANK_BITS & 0xFFFF) << 5 | packed & 31
        timing = command_distances(device)
        assert 2 * max(timing.values()) < LONGEST, "a channel counts cycles from one refresh to the next in short integers"
        self.timing = np.array(list(timing.values()), np.int64)
        self.blocks = [new_channel(address(self.timing), timing["refresh_period"]) for _ in range(channels)]
        self.pools: list[NumpyArray] = [TRANSACTION.array(0) for _ in range(channels)]
        self.listed = np.array([address(block) for block in self.blocks], np.int64)
        self.state: NumpyArray = HBM2.array(1)
        self.state[0] = (address(self.listed), channels, address(self.places))
        for k in range(channels):
            self.grow(k + 1)

    def grow(self, short: int) -> None:
        """Double the pool of transactions of channel number `short` - 1. Old slots keep their numbers, and the new slots are free."""
        channel, old = self.record(short - 1), self.pools[short - 1]
        pool = TRANSACTION.array(2 * len(old) or POOL)
        pool[: len(old)] = old
        pool["next"][len(old) :] = np.arange(len(old) + 1, len(pool) + 1)
        pool["next"][-1] = channel["free"]
        self.pools[short - 1] = pool
        channel["pool"], channel["free"] = address(pool), len(old)
        channel["room"] += len(pool) - len(old)

    def in_threads(self, ports: NumpyArray, thread_of: Ints, most: Ints) -> ThreadedModel:
        channels, threads = len(self.blocks), len(most)
        inboxes, messages = mailboxes(np.repeat(most, channels), MESSAGE)
        outboxes, completions = mailboxes(np.tile(most, channels), COMPLETION)
        bounds = np.arange(threads + 1) * channels // threads
        shares = SHARE.array(threads)
        shares["channels"], shares["count"], shares["places"] = address(self.listed), channels, address(self.places)
        shares["number"], shares["threads"], shares["first"], shares["last"] = range(threads), threads, bounds[:-1], bounds[1:]
        shares["inboxes"], shares["outboxes"] = address(inboxes), address(outboxes)
        for k, pool in enumerate(self.pools):
            self.record(k)["outboxes"] = address(outboxes[threads * k :])
            port = np.maximum(pool["port"] - address(ports), 0) // PORT_SIZE  # free slots may have none
            pool["request"] = pool["request"] & REQUESTS | thread_of[port] << THREAD_BITS
        kept = shares, inboxes, outboxes, messages, completions

        def leave() -> None:
            for k in range(channels):
                self.record(k)["outboxes"] = 0

        return ThreadedModel(
            send_to_channels, run_channels, receive_answers, [address(shares[k:]) for k in range(threads)], leave, kept
        )

    def record(self, k: int) -> Any:
        """Return the record of channel `k`."""
        return self.blocks[k][: CHANNEL.size // 8].view(CHANNEL.dtype)[0]

    def channels(self) -> tuple[ChannelStatistics, ...]:
        return tuple(self._statistics(k) for k in range(len(self.blocks)))

    def _statistics(self, k: int) -> ChannelStatistics:
        counts = {name: int(self.record(k)[name]) for name in CHANNEL.dtype.names or ()}
        reads, writes = counts["reads"], counts["writes"]
        return ChannelStatistics(
            **{name: counts[name] for name in _COUNTED},
            refresh_cycles=counts["refreshed"],
            service=counts["service"] / max(reads + writes, 1),
            read_latency=counts["read_latency"] / max(reads, 1),
            read_latency_p99=percentile(self.blocks[k][HISTOGRAM_AT // 8 :], 99),
            write_latency=counts["write_latency"] / max(writes, 1),
            last_completion=counts["last_done"],
        )
