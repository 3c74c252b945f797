"""A scratchpad beside another memory: the ports of arrays that are placed in it are served by its banks, and all others by the memory.

The ports of both are in one list, and each memory has a front with its own sets of ports. In each window the memory comes first,
and then the scratchpad. A request for a word arrives at the bank of the word in the order of all requests at the scratchpad. A
bank starts one access a cycle at each of its ports; a request that finds all of them in use waits, and those behind it do, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.histogram import BUCKETS
from fuseflow.memory.mapping import Ints
from fuseflow.memory.memory import Memory, port_statistics
from fuseflow.memory.models import MemoryModel, ThreadedModel
from fuseflow.memory.ports import FOREVER, LATE, MEMORY, PORT_SIZE, finish, memory_at, port_at, request_at, settle
from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.memory.sending import SPAN, head_of, mark_sent, next_port, start_sending
from fuseflow.memory.statistics import ChannelStatistics, PortStatistics
from fuseflow.native import records
from fuseflow.native.bitsets import SHIFT, add, bit_set, next_in_word
from fuseflow.native.kernel_library import library
from fuseflow.native.records import Record, get_int, inline, outline, set_int
from fuseflow.native.signatures import ADVANCE, call_advance

CHIP = Record(
    "model advance "  # the state of the memory behind, and the address of the function that advances it
    "front own "  # addresses: of the front of the scratchpad, and of the set of its ports
    "latency banks ports bits "  # a word is 2**bits bytes
    "free"  # address of the cycles from which each port of each bank is free
)
chip_at = CHIP.at


def advance_chip(memory: int, until: int) -> int:
    """Advance a memory and the scratchpad beside it to cycle `until`. Returns what the function of the memory returns, or LATE if
    a request at the scratchpad is older than the last window."""
    m = memory_at(memory)
    state = m.model
    c = chip_at(state)
    _take_ports(m, c)
    m.open -= memory_at(c.front).open
    m.model = c.model
    status: int = call_advance(c.advance, memory, until)
    m.model = state
    if status == 0:
        status = _serve(c, until)
    m.open += memory_at(c.front).open
    _give_ports(m, c)
    return status


@inline
def _take_ports(m: Any, c: Any) -> None:
    """Move the ports of the scratchpad from the ports of the memory `m` with a request to send to those of its front."""
    for k in range(m.words):
        unsent, own = get_int(m.unsent, k), get_int(c.own, k)
        set_int(memory_at(c.front).unsent, k, unsent & own)
        set_int(m.unsent, k, unsent & ~own)


@inline
def _give_ports(m: Any, c: Any) -> None:
    """Undo `_take_ports`, for ports that still have a request to send."""
    for k in range(m.words):
        bit = -1
        while True:
            bit = next_in_word(get_int(memory_at(c.front).unsent, k), bit)
            if bit < 0:
                break
            if port_at(m.ports + PORT_SIZE * ((k << SHIFT) + bit)).due != FOREVER:
                add(m.unsent, (k << SHIFT) + bit)


@outline
def _serve(c: Any, until: int) -> int:
    """Answer the requests at the scratchpad that arrive before cycle `until`."""
    if start_sending(c.front, until) == LATE:
        return LATE
    port = next_port(c.front, until)
    while port != 0:
        p, r = port_at(port), request_at(head_of(port))
        r.left = 1
        p.transactions += 1
        finish(port, p.sent, r.cycle, _start(c, r.address, r.cycle) + c.latency)
        mark_sent(c.front, port)
        port = next_port(c.front, until)
    settle(c.front, until)
    return 0


@inline
def _start(c: Any, at: int, cycle: int) -> int:
    """Return the cycle in which the access to the word at address `at`, which arrives at `cycle`, starts at a port of its bank."""
    first = ((at >> c.bits) % c.banks) * c.ports
    chosen = first
    for k in range(first + 1, first + c.ports):
        if get_int(c.free, k) < get_int(c.free, chosen):
            chosen = k
    started: int = max(cycle, get_int(c.free, chosen))
    set_int(c.free, chosen, started + 1)
    return started


NumpyArray = npt.NDArray[Any]


class ModelWithScratchpad:
    """A model of a memory together with that of a scratchpad."""

    divides, advance = False, staticmethod(advance_chip)

    def __init__(self, model: MemoryModel, settings: Scratchpad) -> None:
        self.behind = model
        self.name, self.clock, self.delay = model.name, model.clock, model.delay
        self.transaction, self.peak = model.transaction, model.peak
        self.lookahead = min(model.lookahead, settings.latency)
        self.free = np.zeros(settings.words_a_cycle, np.int64)
        self.state: NumpyArray = CHIP.array(1)
        self.state["model"] = records.address(model.state)
        self.state["advance"] = library().address(model.advance, ADVANCE)
        self.state["latency"], self.state["banks"], self.state["ports"] = settings.latency, settings.banks, settings.ports
        self.state["bits"], self.state["free"] = settings.bytes_a_cycle.bit_length() - 1, records.address(self.free)

    def grow(self, short: int) -> None:
        self.behind.grow(short)

    def channels(self) -> tuple[ChannelStatistics, ...]:
        return self.behind.channels()

    def in_threads(self, ports: NumpyArray, thread_of: Ints, most: Ints) -> ThreadedModel:
        raise AssertionError("runs in one thread")


class MemoryWithScratchpad(Memory):
    """A memory with a scratchpad beside it. `on_chip` says of each port whether it is one of the scratchpad, whose requests are
    for single words."""

    def __init__(self, model: MemoryModel, settings: Scratchpad, on_chip: Sequence[bool]) -> None:
        both = ModelWithScratchpad(model, settings)
        super().__init__(both, len(on_chip))
        self.word, self.on_chip = settings.bytes_a_cycle, np.flatnonzero(on_chip)
        words = len(self.unsent)
        self.own = bit_set(self.on_chip.tolist(), words)
        self.front_sets, self.front_latencies = np.zeros((SPAN + 2, words), np.int64), np.zeros(BUCKETS, np.int64)
        self.front: NumpyArray = MEMORY.array(1)
        self.front[:] = self.state
        self.front["unsent"], self.front["finished"], self.front["senders"] = (
            records.address(self.front_sets[k:]) for k in range(3)
        )
        self.front["numerator"] = self.front["denominator"] = 1
        self.front["delay"], self.front["latencies"] = 0, records.address(self.front_latencies)
        self.ports["finished"][self.on_chip] = self.front["finished"]
        both.state["front"], both.state["own"] = records.address(self.front), records.address(self.own)

    def arrays(self) -> list[NumpyArray]:
        return [*super().arrays(), self.front, self.front_sets, self.front_latencies]

    def statistics(self) -> tuple[PortStatistics, ...]:
        chip = {*self.on_chip.tolist()}
        return tuple(port_statistics(p, self.word if k in chip else self.model.transaction) for k, p in enumerate(self.ports))
