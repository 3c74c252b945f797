"""Runs of a memory of DRAM over a trace: at once, in random steps, and as several threads do, one step after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.dram_threads import receive_answers, send_to_channels
from fuseflow.memory.fronts import Fronts
from fuseflow.memory.memory import Memory
from fuseflow.memory.memory_interface import Controller
from fuseflow.native.kernel_library import library
from fuseflow.native.signatures import ADVANCE

Ints = npt.NDArray[np.int64]
Cycles = tuple[Ints, Ints]
"""The completion and acceptance cycle of each request."""
WINDOW = 1000
"""The cycles of a window of `run_in_threads`."""


def issue(memory: Memory, trace: dict[str, Any]) -> None:
    memory.issue_all(0, trace["addr"], memory.model.transaction, trace["rw"], trace["arr"])


def run(memory: Memory, trace: dict[str, Any]) -> Cycles:
    """The cycles of all requests of a trace. The memory has one port."""
    issue(memory, trace)
    memory.drain()
    return _cycles(memory)


def run_in_chunks(memory: Memory, trace: dict[str, Any], seed: int = 0) -> Cycles:
    """The same, in steps of random length; requests are issued when their cycle has come."""
    random, arrivals, issued = np.random.default_rng(seed), trace["arr"], 0
    while issued < len(arrivals):
        until = memory.cycle + int(2 ** random.uniform(0, 12))
        now = slice(issued, int(np.searchsorted(arrivals, until)))
        if now.stop > issued:
            memory.issue_all(0, trace["addr"][now], memory.model.transaction, trace["rw"][now], arrivals[now])
            issued = now.stop
        memory.advance(until)
    while (memory.ports["answered"] < memory.ports["issued"]).any():
        memory.advance(memory.cycle + int(2 ** random.uniform(0, 12)))
    return _cycles(memory)


def run_in_threads(memory_of: Callable[[int], Memory], trace: dict[str, Any], threads: int = 3) -> Cycles:
    """The same with a port for each thread. The requests of a cycle have one port: several would take turns in another order. `memory_of`
    makes a memory with a number of ports."""
    memory, port_of = memory_of(threads), trace["arr"] % threads
    model: Any = memory.model
    requests = [np.flatnonzero(port_of == port) for port in range(threads)]
    for port, own in enumerate(requests):
        if own.size:
            memory.issue_all(port, trace["addr"][own], model.transaction, trace["rw"][own], trace["arr"][own])
    controller = Controller(lambda _: memory, line=model.transaction, outstanding=len(port_of))
    controller.open()
    fronts = Fronts(controller, np.arange(threads), threads)
    send, work, receive = (library().compiled(step, ADVANCE) for step in (send_to_channels, model.kernels.run, receive_answers))
    until, addresses = 0, [fronts.front(thread) for thread in range(threads)]
    while (memory.ports["answered"] < memory.ports["issued"]).any():
        until += WINDOW
        assert not any(send(front, until) for front in addresses)
        for front in addresses:
            while short := work(front, until):
                model.grow(short)
        assert not any(receive(front, until) for front in addresses)
    fronts.join()
    done, accepted = np.zeros_like(port_of), np.zeros_like(port_of)
    for port, own in enumerate(requests):
        done[own], accepted[own] = memory.requests(port)["done"], memory.requests(port)["accepted"]
    return done, accepted


def _cycles(memory: Memory) -> Cycles:
    requests = memory.requests(0)
    return requests["done"], requests["accepted"]
