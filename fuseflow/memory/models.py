"""The memory models: the state of each, and how each makes room for more transactions. A new model is a class like these, and a
kernel that advances the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fuseflow.memory import mapping as maps
from fuseflow.memory.channel import CHANNEL, EPOCH, TRANSACTION, Shape, new_channel, shape_of
from fuseflow.memory.controllers import tick_lpddr5, tick_one_bus, tick_two_buses
from fuseflow.memory.dram import DRAM, advance_dram
from fuseflow.memory.dram_rows import bus_shift, distance_rows
from fuseflow.memory.dram_table import ControllerKind, DramTable
from fuseflow.memory.dram_threads import SHARE, receive_answers, run_channels, send_to_channels
from fuseflow.memory.histogram import percentile
from fuseflow.memory.mailboxes import COMPLETION, MESSAGE, REQUESTS, THREAD_BITS, mailboxes
from fuseflow.memory.mapping import Ints
from fuseflow.memory.pipes import CHANNELS, COMAL, FIXED, INTERVAL, ROUND_TRIP, WORD, advance_comal, advance_fixed
from fuseflow.memory.ports import FOREVER, PORT_SIZE
from fuseflow.memory.queues import POSITIONS
from fuseflow.memory.statistics import COUNTED, ChannelStatistics
from fuseflow.memory.table_files import preset
from fuseflow.native.kernel_library import specialize_all
from fuseflow.native.records import LANES, address
from fuseflow.native.signatures import Function

TICKS = {"generic_ddr": tick_one_bus, "hbm12": tick_two_buses, "hbm34": tick_two_buses, "lpddr5": tick_lpddr5}

GAPS = 16
"""A queue has at least this many positions more than requests in each word, so that gaps are closed seldom."""


@dataclass(frozen=True, slots=True)
class DramKernels:
    """The kernels that advance a model, and the channels of a thread, with the shape of their channels."""

    shape: Shape
    advance: Function
    run: Function


def dram_kernels(table: DramTable) -> DramKernels:
    """Return the kernels of a table."""
    bank_words = next(words for words in (1, 2, 4) if LANES * words >= table.banks)
    most = max(table.read_queue, table.write_queue)
    queue_words = next(words for words in (1, 2, 4) if POSITIONS * words >= most + GAPS * words)
    return _kernels(table.controller, bank_words, queue_words, 1 if distance_rows(table, bank_words).apart else 0)


@cache
def _kernels(controller: ControllerKind, bank_words: int, queue_words: int, apart: int) -> DramKernels:
    one_bus = 0 if TICKS[controller] is tick_two_buses else 1
    shape = shape_of(bank_words, queue_words, one_bus, edges=1 if controller == "hbm34" else 0, apart=apart)
    name = f"{controller}_{bank_words}_{queue_words}_{apart}"
    meanings = {"SHAPE": shape, "tick": TICKS[controller]}
    advance, run = (specialize_all(kernel, f"{kernel.__name__}_{name}", **meanings) for kernel in (advance_dram, run_channels))
    return DramKernels(shape, advance, run)


NumpyArray = npt.NDArray[Any]
POOL = 256
"""The number of transactions for which each channel has room at first."""


@dataclass(frozen=True, slots=True)
class ThreadedModel:
    """How a memory model runs in threads: the functions of the three steps of a window (`dram_threads.py`), None for a step that
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


class Dram:
    """Channels of a DRAM behind an address mapping. The preset `hbm2` is used for a `table` of None. Raises `MachineError` for an
    impossible number of channels."""

    divides = True

    def __init__(
        self,
        channels: int = 8,
        mapping: maps.MappingRule = maps.bgint_xor,
        table: DramTable | None = None,
        clock: Fraction = Fraction(1),
    ) -> None:
        table = table or preset("hbm2").table()
        self.name, self.table, self.clock = table.name, table, clock
        self.transaction, self.delay = table.transaction, table.read_latency + 1
        self.peak: Fraction = table.bytes_per_cycle * channels * clock
        self.lookahead = self.delay if clock == 1 else max(int((self.delay - 1) / clock), 1)
        self.kernels = dram_kernels(table)
        self.advance = self.kernels.advance
        self.distances = distance_rows(table, self.kernels.shape.bank_words)
        self.places = maps.place_tables(mapping(table), table, channels)
        self.blocks = [new_channel(self.kernels.shape) for _ in range(channels)]
        self.pools: list[NumpyArray] = [TRANSACTION.array(0) for _ in range(channels)]
        self.listed = np.array([address(block) for block in self.blocks], np.int64)
        self.state: NumpyArray = DRAM.array(1)
        self.state[0] = (address(self.listed), channels, address(self.places), table.transaction.bit_length() - 1)
        for k in range(channels):
            self._set_up(self.record(k))
            self.grow(k + 1)

    def _set_up(self, channel: Any) -> None:
        """Give a channel its table."""
        table, rows = self.table, self.distances
        for name in ("rows", "windows", "latest", "units"):
            channel[name] = 0 if getattr(rows, name) is None else address(getattr(rows, name))
        channel["window_shift"], channel["bus_shift"], channel["unit_count"] = (
            rows.window_shift,
            bus_shift(table),
            len(rows.units),
        )
        channel["read_room"], channel["write_room"] = table.read_queue, table.write_queue
        channel["high"], channel["low"] = 8 * table.write_queue // 10, -(-2 * table.write_queue // 10)
        channel["read_latency"] = table.read_latency
        channel["refresh_end"] = table.least("REFab", table.activate) or 1
        channel["next_refresh"] = table.refresh_period if table.refresh != "none" else FOREVER
        channel["deadline"] = min(channel["next_refresh"], EPOCH)
        channel["clocked"] = FOREVER
        if table.lpddr5 is not None:
            channel["activation"], clock = table.lpddr5.activation, table.lpddr5.data_clock
            if clock is not None:
                channel["clocked"], channel["after_read"], channel["after_write"] = 0, clock.after_read, clock.after_write

    def advance_refresh(self, phase: float) -> None:
        """Let the first refreshes come earlier, by a part of a period from 0 to 1. No cycle may have been simulated."""
        for channel in map(self.record, range(len(self.blocks))):
            channel["next_refresh"] -= int(phase * self.table.refresh_period)
            channel["deadline"] = min(channel["next_refresh"], EPOCH)

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
        for name in self.state.dtype.names or ():
            shares[name] = self.state[name]
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

        addresses = [address(shares[k:]) for k in range(threads)]
        return ThreadedModel(send_to_channels, self.kernels.run, receive_answers, addresses, leave, kept)

    def record(self, k: int) -> Any:
        """Return the record of channel `k`."""
        return self.blocks[k][: CHANNEL.size // 8].view(CHANNEL.dtype)[0]

    def channels(self) -> tuple[ChannelStatistics, ...]:
        return tuple(self._statistics(k) for k in range(len(self.blocks)))

    def _statistics(self, k: int) -> ChannelStatistics:
        counts = {name: int(self.record(k)[name]) for name in CHANNEL.dtype.names or ()}
        reads, writes = counts["reads"], counts["writes"]
        return ChannelStatistics(
            transaction=self.transaction,
            **{name: counts[name] for name in COUNTED},
            refresh_cycles=counts["refreshed"],
            service=counts["service"] / max(reads + writes, 1),
            read_latency=counts["read_latencies"] / max(reads, 1),
            read_latency_p99=percentile(self.blocks[k][self.kernels.shape.histogram // 8 :], 99),
            write_latency=counts["write_latencies"] / max(writes, 1),
            last_completion=counts["last_done"],
        )
