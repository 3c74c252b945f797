"""Regions of random programs on random machines, each with what it read and how it ran: what sampling is compared with."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from memories import random_memory
from program_levels import compiled
from random_programs import Case

from fuseflow.einsum.blocks import guard_data, tensors_to_blocks
from fuseflow.einsum.nodes import Program
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, Simulation, load_machine, simulate
from fuseflow.tensors import Tensor


@dataclass(frozen=True)
class RegionRun:
    """A region of a program with all that was in memory when it began, and its exact simulation."""

    program: Program
    schedule: Schedule
    region: CompiledRegion
    memory: dict[str, Tensor]
    machine: Machine
    simulation: Simulation


def random_machine(seed: int) -> Machine:
    """A machine with bounded FIFOs that deepen where they must, and a random memory, or one that answers at once."""
    rng = random.Random(f"sampled {seed}")
    settings = load_machine("rda").model_dump()
    settings |= {"fifo_depth_start": rng.choice((2, 4, 16, 64))}
    memory = load_machine("ideal").memory if rng.random() < 0.2 else random_memory(rng)
    return Machine.model_validate({**settings, "memory": memory.model_dump()})


def region_runs(case: Case, machine: Machine) -> Iterator[RegionRun]:
    """Run a program region after region. Raises a `FuseFlowError` if it is refused."""
    schedule, program, regions = compiled(case)
    memory = tensors_to_blocks(program.declared, case.tensors)
    memory |= {t.name: guard_data(t) for t in program.inputs if t.name not in memory}
    for region in regions:
        memory |= auxiliary_tensors(region.graph)
        for view in region.views_before:
            memory[view.name] = view.of(memory[view.source])
        simulation = simulate(region.graph, {n: memory[n] for n in region.graph.inputs}, machine, engine="reference")
        yield RegionRun(program, schedule, region, dict(memory), machine, simulation)
        memory |= simulation.outputs
        for view in region.views_after:
            memory[view.name] = view.of(memory[view.source])
