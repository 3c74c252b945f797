"""Random memories for the machines of random graphs, and what must be true of every run at them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from engines import Found
from random_graphs.case import Case

from fuseflow.memory.mapping import CHANNEL_COUNTS, MAPPINGS
from fuseflow.memory.settings import ComalFixedMemory, DramMemory, FixedMemory, MemorySettings
from fuseflow.sim import Machine, load_machine
from fuseflow.sim.outcome.statistics import Outcome

CLOCKS = ((1.0, 1.0), (1.0, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 1.5), (1.5, 2.0), (1.6, 0.9), (0.1, 2.0), (1.0, 0.05))
"""Of the machine, and of its memory."""
TWO_PROCESSES = ("accumulate", "permute", "select")
"""Their cycles are those of both."""


def without_refresh(**settings: Any) -> Machine:
    """The machine `rda` at a memory that never pauses: replicates of a sample may be short there."""
    return Machine.model_validate({**load_machine("rda").model_dump(), "memory": {"model": "comal_fixed"}, **settings})


def random_memory(rng: random.Random, clock_ghz: float = 1.0) -> MemorySettings:
    """One of ten is the fixed pipe, the others are HBM2 of that clock."""
    ports = {
        "line": rng.choice((32, 64, 64, 128, 256, 4096)),
        "prefetch": rng.choice((0, 1, 3, 8)),
        "outstanding": rng.choice((1, 2, 5, 32, 1 << 20)),
    }
    if rng.random() < 0.1:
        return ComalFixedMemory(**ports)
    channels, mapping = rng.choice(CHANNEL_COUNTS), rng.choice(list(MAPPINGS))
    return DramMemory(channels=channels, mapping=mapping, clock_ghz=clock_ghz, **ports)


def random_fixed_memory(rng: random.Random) -> FixedMemory:
    """A memory that answers 1 to 200 cycles later, for ports with 1 to 64 lines on their way."""
    return FixedMemory(
        latency=rng.choice((1, 2, 3, rng.randint(1, 200), rng.randint(1, 200))),
        outstanding=rng.choice((1, 2, rng.randint(1, 64), rng.randint(1, 64))),
        line=rng.choice((32, 64, 64, 256)),
        prefetch=rng.choice((0, 1, 3, 8)),
    )


def at_memory(case: Case, seed: int) -> Case:
    """The case on a machine whose memory takes time; the same graph and tensors."""
    rng = random.Random(f"memory {seed}")
    machine_ghz, memory_ghz = rng.choice(CLOCKS)
    changed = {"clock_ghz": machine_ghz, "memory": random_memory(rng, memory_ghz)}
    return replace(case, machine=Machine.model_validate({**case.machine.model_dump(), **changed}))


def contradictions(found: Found) -> Iterator[str]:
    """What cannot be true of a run that ended: less time than its bounds, cycles of a node that do not add up."""
    if not isinstance(found, Outcome):
        return
    memory = found.memory
    bound = max(0 if memory is None else memory.bound, *(node.occupied for node in found.nodes))
    if found.cycles < bound:
        yield f"{found.cycles} cycles, at least {bound} are needed"
    for node in found.nodes:
        if min(node.starved, node.waited, node.blocked) < 0:
            yield f"negative: {node}"
        if node.op not in TWO_PROCESSES and node.busy + node.starved + node.waited + node.blocked != node.last + 1:
            yield f"does not add up: {node}"
