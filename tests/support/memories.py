"""Random memories for the machines of random graphs."""

from __future__ import annotations

import random
from dataclasses import replace

from random_graphs.case import Case

from fuseflow.sim.machine import Machine
from fuseflow.sim.memory.mapping import CHANNELS, MAPPINGS
from fuseflow.sim.memory.settings import ComalFixedMemory, Hbm2Memory, MemorySettings

CLOCKS = ((1.0, 1.0), (1.0, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 1.5), (1.5, 2.0), (1.6, 0.9), (0.1, 2.0))
"""Of the machine, and of its memory."""


def random_memory(rng: random.Random, clock_ghz: float = 1.0) -> MemorySettings:
    """One of ten is the fixed pipe, the others are HBM2 of that clock."""
    ports = {
        "line": rng.choice((32, 64, 64, 128, 256)),
        "prefetch": rng.choice((0, 1, 3, 8)),
        "outstanding": rng.choice((1, 2, 5, 32, 500)),
    }
    if rng.random() < 0.1:
        return ComalFixedMemory(**ports)
    channels, mapping = rng.choice(CHANNELS), rng.choice(list(MAPPINGS))
    return Hbm2Memory(channels=channels, mapping=mapping, clock_ghz=clock_ghz, **ports)


def at_memory(case: Case, seed: int) -> Case:
    """The case on a machine whose memory takes time; the same graph and tensors."""
    rng = random.Random(f"memory {seed}")
    machine_ghz, memory_ghz = rng.choice(CLOCKS)
    changed = {"clock_ghz": machine_ghz, "memory": random_memory(rng, memory_ghz)}
    return replace(case, machine=Machine.model_validate({**case.machine.model_dump(), **changed}))
