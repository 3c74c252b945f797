"""A memory with a scratchpad beside it, for simulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.histogram import BUCKETS
from fuseflow.memory.mapping import Ints
from fuseflow.memory.memory import Memory, port_statistics
from fuseflow.memory.models import MemoryModel, ThreadedModel
from fuseflow.memory.ports import MEMORY
from fuseflow.memory.scratchpad_kernel import CHIP, advance_chip
from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.memory.sending import SPAN
from fuseflow.memory.statistics import ChannelStatistics, PortStatistics
from fuseflow.native.bitsets import bit_set
from fuseflow.native.kernel_library import library
from fuseflow.native.records import address
from fuseflow.native.signatures import ADVANCE

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
        self.state["model"] = address(model.state)
        self.state["advance"] = library().address(model.advance, ADVANCE)
        self.state["latency"], self.state["banks"], self.state["ports"] = settings.latency, settings.banks, settings.ports
        self.state["bits"], self.state["free"] = settings.bytes_a_cycle.bit_length() - 1, address(self.free)

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
        self.front["unsent"], self.front["finished"], self.front["senders"] = (address(self.front_sets[k:]) for k in range(3))
        self.front["numerator"] = self.front["denominator"] = 1
        self.front["delay"], self.front["latencies"] = 0, address(self.front_latencies)
        self.ports["finished"][self.on_chip] = self.front["finished"]
        both.state["front"], both.state["own"] = address(self.front), address(self.own)

    def arrays(self) -> list[NumpyArray]:
        return [*super().arrays(), self.front, self.front_sets, self.front_latencies]

    def statistics(self) -> tuple[PortStatistics, ...]:
        chip = {*self.on_chip.tolist()}
        return tuple(port_statistics(p, self.word if k in chip else self.model.transaction) for k, p in enumerate(self.ports))
