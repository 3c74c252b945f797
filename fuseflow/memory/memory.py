"""A memory consists of ports and a model behind them.

Simulators use it in windows of at most `lookahead` cycles: they make all requests of a window, and then advance the memory to the
end of the window. Compiled code makes requests through `ports.issue` at the address of a port and calls the kernel
`MemoryModel.advance`; the class `Memory` is for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.histogram import BUCKETS, percentile
from fuseflow.memory.layout import AddressRange, ArrayName
from fuseflow.memory.mapping import Ints
from fuseflow.memory.models import MemoryModel
from fuseflow.memory.ports import FOREVER, FULL, LATE, MEMORY, PORT, PORT_SIZE, REQUEST, issue
from fuseflow.memory.reuse_buffer import BUFFER, NONE, PLACE
from fuseflow.memory.sending import SPAN
from fuseflow.memory.statistics import MemoryPort, MemoryStatistics, PortStatistics
from fuseflow.native.bitsets import BITS, SHIFT, word_count
from fuseflow.native.kernel_library import library
from fuseflow.native.records import address
from fuseflow.native.signatures import ADVANCE, integers

ISSUE = integers(5)
INITIAL_RING = 64
"""The number of requests for which each port has room at first."""


class Memory:
    """A memory with `ports` ports in front of a model.

    >>> from fuseflow.memory.models import Dram
    >>> memory = Memory(Dram(), ports=1)
    >>> request = memory.issue(0, address=0, size=32, write=False, cycle=0)
    >>> memory.advance(40)
    >>> memory.answer_cycle(0, request)  # the bank was closed
    32
    """

    def __init__(self, model: MemoryModel, ports: int) -> None:
        self.model = model
        self.rings: list[npt.NDArray[Any]] = [REQUEST.array(INITIAL_RING) for _ in range(ports)]
        self.ports = PORT.array(ports)
        self.ports["due"] = FOREVER
        # Views of one field each: reading a field from a record takes five times as long, and these are read at every request.
        self._issued, self._masks, self._timeless = self.ports["issued"], self.ports["mask"], self.ports["timeless"]
        self._visible = [ring["visible"] for ring in self.rings]
        for k in range(ports):
            self._place(k)
        self.state = MEMORY.array(1)
        self._now = self.state["now"]
        self._address, self._port_address = address(self.state), address(self.ports)
        self.state["ports"], self.state["count"] = self._port_address, ports
        self.state["numerator"], self.state["denominator"] = model.clock.numerator, model.clock.denominator
        self.state["delay"], self.state["model"] = model.delay, address(model.state)
        words = word_count(ports)
        self.unsent, self.finished = np.zeros(words, np.int64), np.zeros(words, np.int64)
        self.senders = np.zeros(SPAN * words, np.int64)
        self.state["words"], self.state["senders"] = words, address(self.senders)
        self.ports["number"] = np.arange(len(self.ports))
        for records in (self.state, self.ports):
            records["unsent"], records["finished"] = address(self.unsent), address(self.finished)
        self.buffers: list[npt.NDArray[Any]] = []  # which the ports refer to
        self.latencies: Ints = np.zeros(BUCKETS, np.int64)
        self.state["latencies"] = address(self.latencies)
        self._advance, self._issue = library().compiled(model.advance, ADVANCE), library().compiled(issue, ISSUE)

    def lists(self) -> list[list[npt.NDArray[Any]]]:
        """Return the lists of arrays in which an array is replaced when it grows."""
        return [self.rings, self._visible]

    def arrays(self) -> list[npt.NDArray[Any]]:
        """Return the arrays besides these that requests change where the model is not asked."""
        return [self.ports, self.state, self.unsent, self.finished, self.senders, self.latencies, *self.buffers]

    @property
    def cycle(self) -> int:
        """The cycle to which the memory has advanced: everything before it has happened."""
        now: int = self._now.item(0)
        return now

    @property
    def lookahead(self) -> int:
        """The cycles of the longest window."""
        return self.model.lookahead

    def add_buffer(self, port: int, lines: int) -> None:
        """Add a reuse buffer of `lines` (at least one) to a port that has made no request and makes all of one size."""
        places, buffer = PLACE.array(lines), BUFFER.array(1)
        buckets = np.full(1 << (lines - 1).bit_length(), NONE, np.int64)
        buffer["size"], buffer["mask"], buffer["newest"], buffer["oldest"] = lines, len(buckets) - 1, NONE, NONE
        buffer["places"], buffer["buckets"] = address(places), address(buckets)
        self.ports[port]["buffer"] = address(buffer)
        self.buffers += (buffer, places, buckets)

    def issue(self, port: int, address: int, size: int, write: bool, cycle: int) -> int:
        """Request `size` bytes at an address in a cycle, and return the number of the request. At a port, cycles must not
        decrease, and none may be before `self.cycle`."""
        assert (cycle >= self.cycle or self._timeless[port]) and size > 0
        while (number := self._issue(self.port(port), address, size, int(write), cycle)) == FULL:
            self.make_room(port)
        return int(number)

    def issue_all(self, port: int, addresses: Ints, sizes: Ints | int, writes: Ints | int, cycles: Ints) -> None:
        """Make many requests of a port at once, in order, with the effect of `issue` for each. The port must have no reuse buffer."""
        p, n = self.ports[port], len(cycles)
        assert p["buffer"] == 0, "lines are looked up one after the other"
        assert n and cycles[0] >= self.cycle and (np.diff(cycles) >= 0).all() and np.min(sizes) > 0
        while p["issued"] + n - p["released"] > len(self.rings[port]):
            self.make_room(port)
        records = REQUEST.array(n)
        records["address"], records["bytes"], records["write"] = addresses, sizes, writes
        records["cycle"], records["visible"] = cycles, -1
        self.rings[port][(p["issued"] + np.arange(n)) & p["mask"]] = records
        if p["sent"] == p["issued"]:
            p["due"] = cycles[0]
            self.unsent[port >> SHIFT] |= 1 << (port & BITS - 1)
        p["issued"] += n
        p["bytes"] += records["bytes"].sum()

    def forget_cycles(self) -> None:
        """Answer all requests at once, also later ones, for a run whose cycles are not used. The model is not used from then on."""
        for ring, p in zip(self.rings, self.ports, strict=True):
            open_requests = np.arange(p["answered"], p["issued"]) & p["mask"]
            ring["visible"][open_requests] = ring["cycle"][open_requests]
        self.ports["timeless"], self.ports["due"] = 1, FOREVER
        self.ports["sent"] = self.ports["answered"] = self.ports["issued"]
        self.state["open"], self.unsent[:], self.finished[:] = 0, 0, 0

    def advance(self, cycle: int) -> None:
        """Advance the memory to a cycle. Requests in that cycle and in later ones may follow."""
        while status := self._advance(self._address, cycle):
            assert status != LATE, "a request is older than the end of the last window"
            self.model.grow(int(status))

    def drain(self, step: int = 4096) -> None:
        """Advance the memory, `step` cycles at a time, until all requests are answered."""
        while (self.ports["answered"] < self.ports["issued"]).any():
            due = int(self.ports["due"].min())  # the next request to come, if any
            self.advance((self.cycle if due == FOREVER else max(self.cycle, due)) + step)

    def answer_cycle(self, port: int, request: int) -> int:
        """Return the cycle from which the answer to a request is visible at a port, or -1 if it is not known yet, or if there is
        no such request."""
        if request >= self._issued.item(port):
            return -1
        cycle: int = self._visible[port].item(request & self._masks.item(port))
        return cycle

    def issue_cycle(self, port: int, request: int) -> int:
        """Return the cycle in which a request of a port was made. It must not be released."""
        p = self.ports[port]
        return int(self.rings[port][request & int(p["mask"])]["cycle"]) - int(p["way"])

    def requests(self, port: int) -> npt.NDArray[Any]:
        """Return the records of the requests of a port that were not released, in the order of issue."""
        p = self.ports[port]
        numbers: Ints = np.arange(p["released"], p["issued"])
        records: npt.NDArray[Any] = self.rings[port][numbers & p["mask"]]
        return records

    def release(self, port: int, before: int) -> None:
        """Free the records of a port's requests before number `before`, which must be answered. Their answers cannot be read any more."""
        assert before <= self.ports[port]["answered"]
        self.ports[port]["released"] = before

    def port(self, k: int) -> int:
        """Return the address of the record of port `k`, for compiled code."""
        return self._port_address + PORT_SIZE * k

    def statistics(self) -> tuple[PortStatistics, ...]:
        """Return the statistics of each port."""
        return tuple(port_statistics(p, self.model.transaction) for p in self.ports)

    def report(self, ports: Sequence[MemoryPort], places: Mapping[ArrayName, AddressRange]) -> MemoryStatistics:
        """Return the statistics of a run. `ports` describes the ports, and `places` has the addresses of the arrays."""
        reads = [k for k, port in enumerate(ports) if port.direction == "read" and not port.on_chip]
        latency, count = (int(total) for total in (self.ports["latency"][reads].sum(), _moved(self.ports[reads]).sum()))
        return MemoryStatistics(
            model=self.model.name,
            peak=self.model.peak,
            clock=float(self.model.clock),
            places=dict(places),
            ports=tuple(zip(ports, self.statistics(), strict=True)),
            channels=self.model.channels(),
            read_latency=latency / max(count, 1),
            read_latency_p99=percentile(self.latencies, 99),
        )

    def make_room(self, port: int) -> None:
        """Double the ring of requests of a port, and move the requests to it."""
        p, old = self.ports[port], self.rings[port]
        numbers = np.arange(p["released"], p["issued"])
        self.rings[port] = REQUEST.array(2 * len(old))
        self.rings[port][numbers & (2 * len(old) - 1)] = old[numbers & (len(old) - 1)]
        self._place(port)

    def _place(self, port: int) -> None:
        ring = self.rings[port]
        self._visible[port] = ring["visible"]
        self.ports[port]["ring"], self.ports[port]["mask"] = address(ring), len(ring) - 1


def _moved(ports: Any) -> Any:
    """Return the number of requests of each port that the model answered, and not a reuse buffer."""
    return ports["answered"] - ports["hits"]


def port_statistics(p: Any, transaction: int) -> PortStatistics:
    """Return the statistics of the record of a port, whose transactions move `transaction` bytes each."""
    requests, transactions = int(p["issued"]), int(p["transactions"])
    return PortStatistics(
        requests=requests,
        transactions=transactions,
        asked_bytes=int(p["bytes"]),
        moved_bytes=transactions * transaction,
        latency=int(p["latency"]) / max(int(_moved(p)), 1),
        hits=int(p["hits"]),
    )
