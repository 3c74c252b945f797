"""The project's HBM2 as the checker of the golden data wants it.

    PYTHONPATH=.:tests/support python ../shared/golden/hbm/check.py hbm_adapter:complete [--faw30]

`complete_in_chunks` advances the memory in random steps instead of in one go, and `complete_in_threads` as several threads do, one
step after the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.fronts import Fronts
from fuseflow.memory.hbm2_threads import receive_answers, run_channels, send_to_channels
from fuseflow.memory.mapping import MAPPINGS
from fuseflow.memory.memory import Memory
from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.models import Hbm2
from fuseflow.memory.timing import HBM2_2000
from fuseflow.native.kernel_library import library
from fuseflow.native.signatures import ADVANCE

Cycles = npt.NDArray[np.int64]
WINDOW = 1000
"""The cycles of a window of `complete_in_threads`."""


def complete(trace: dict[str, Any], mapping: str) -> tuple[Cycles, Cycles]:
    """Completion and acceptance cycle of each request of a trace."""
    memory = memory_of(trace, mapping)
    memory.issue_all(0, trace["addr"], 32, trace["rw"], trace["arr"])
    memory.drain()
    return _cycles(memory)


def complete_in_chunks(trace: dict[str, Any], mapping: str, seed: int = 0) -> tuple[Cycles, Cycles]:
    """The same, in steps of random length; requests are issued when their cycle has come."""
    memory, random = memory_of(trace, mapping), np.random.default_rng(seed)
    arrivals, issued = trace["arr"], 0
    while issued < len(arrivals):
        until = memory.cycle + int(2 ** random.uniform(0, 12))
        now = slice(issued, int(np.searchsorted(arrivals, until)))
        if now.stop > issued:
            memory.issue_all(0, trace["addr"][now], 32, trace["rw"][now], arrivals[now])
            issued = now.stop
        memory.advance(until)
    while (memory.ports["answered"] < memory.ports["issued"]).any():
        memory.advance(memory.cycle + int(2 ** random.uniform(0, 12)))
    return _cycles(memory)


def complete_in_threads(trace: dict[str, Any], mapping: str, threads: int = 3) -> tuple[Cycles, Cycles]:
    """The same with a port for each thread. The requests of a cycle have one port: several would take turns in another order."""
    memory, port_of = memory_of(trace, mapping, threads), trace["arr"] % threads
    requests = [np.flatnonzero(port_of == port) for port in range(threads)]
    for port, own in enumerate(requests):
        memory.issue_all(port, trace["addr"][own], 32, trace["rw"][own], trace["arr"][own])
    controller = Controller(lambda _: memory, line=32, outstanding=len(port_of))
    controller.open()
    fronts = Fronts(controller, np.arange(threads), threads)
    send, run, receive = (library().compiled(step, ADVANCE) for step in (send_to_channels, run_channels, receive_answers))
    until, addresses = 0, [fronts.front(thread) for thread in range(threads)]
    while (memory.ports["answered"] < memory.ports["issued"]).any():
        until += WINDOW
        assert not any(send(front, until) for front in addresses)
        for front in addresses:
            while short := run(front, until):
                memory.model.grow(short)
        assert not any(receive(front, until) for front in addresses)
    fronts.join()
    done, accepted = np.zeros_like(port_of), np.zeros_like(port_of)
    for port, own in enumerate(requests):
        done[own], accepted[own] = memory.requests(port)["done"], memory.requests(port)["accepted"]
    return done, accepted


def memory_of(trace: dict[str, Any], mapping: str, ports: int = 1) -> Memory:
    device = replace(HBM2_2000, nFAW=trace["nFAW"])
    return Memory(Hbm2(trace["nch"], MAPPINGS[mapping], device), ports)


def _cycles(memory: Memory) -> tuple[Cycles, Cycles]:
    requests = memory.requests(0)
    return requests["done"], requests["accepted"]
