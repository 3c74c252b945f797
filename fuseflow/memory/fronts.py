"""The fronts of a memory: each thread of a simulation has one, with the ports of its own nodes.

A thread sends the requests of its own ports and makes their answers visible, so it needs no lock. What the threads tell each other
is in the model (`dram_threads.py`).
"""

from __future__ import annotations

import numpy as np

from fuseflow.memory.histogram import BUCKETS
from fuseflow.memory.mapping import Ints
from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.ports import MEMORY
from fuseflow.memory.sending import SPAN
from fuseflow.native.bitsets import bit_set
from fuseflow.native.records import address

MOST_MESSAGES = 1 << 20
"""The most transactions on the way for which there are mailboxes."""


def divides(controller: Controller) -> bool:
    """Return whether the memory can have several fronts: if its model runs in threads, and not too many transactions may be on the way."""
    return controller.memory.model.divides and len(controller.ports) * most_transactions(controller) <= MOST_MESSAGES


def most_transactions(controller: Controller) -> int:
    """Return the largest number of transactions of a port that are on the way."""
    return controller.outstanding * (controller.line // controller.memory.model.transaction + 1)


class Fronts:
    """The fronts of the memory of a controller for `threads` threads. Thread `thread_of[k]` has port k. Until `join`, the memory is
    used through the fronts only."""

    def __init__(self, controller: Controller, thread_of: Ints, threads: int) -> None:
        self.memory = memory = controller.memory
        words, most = len(memory.unsent), most_transactions(controller) * np.bincount(thread_of, minlength=threads)
        self.model = memory.model.in_threads(memory.ports, thread_of, most)
        self.records = MEMORY.array(threads)
        self.latencies = np.zeros((threads, BUCKETS), np.int64)
        self.sets = np.zeros((threads, SPAN + 2, words), np.int64)
        self.records[:] = memory.state
        self.records["open"][1:] = 0  # all that counts is the sum
        self.records["cycles"], self.records["model"] = 0, self.model.shares
        for thread, (record, sets) in enumerate(zip(self.records, self.sets, strict=True)):
            own = np.flatnonzero(thread_of == thread)
            sets[0] = memory.unsent & bit_set(own, words)
            record["unsent"], record["finished"], record["senders"] = (address(sets[k:]) for k in range(3))
            record["latencies"] = address(self.latencies[thread])
            memory.ports["unsent"][own], memory.ports["finished"][own] = record["unsent"], record["finished"]

    def front(self, thread: int) -> int:
        """Return the address of the front of a thread."""
        return address(self.records) + MEMORY.size * thread

    def join(self) -> None:
        """Make the memory one again, with all that happened at its fronts."""
        state, memory = self.memory.state, self.memory
        state["now"], state["open"] = self.records["now"][0], self.records["open"].sum()
        memory.unsent[:] = np.bitwise_or.reduce(self.sets[:, 0])
        memory.ports["unsent"], memory.ports["finished"] = state["unsent"], state["finished"]
        memory.latencies += self.latencies.sum(axis=0)
        self.model.leave()
