"""A region restricted to all coordinates of its sampled index runs like the region, to the cycle; to some, it computes them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import program_fuzz
import pytest
from memories import random_memory
from program_levels import Checked, Difference, agree, compiled
from random_programs import Case

import fuseflow as ff
from fuseflow.einsum.blocks import guard_data, tensors_to_blocks
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.errors import GraphError
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.samml.mlir import to_mlir
from fuseflow.samml.protobuf import to_proto
from fuseflow.samml.text import show
from fuseflow.samml.verify import verify as verify_graph
from fuseflow.sampling.region import RestrictedArrays, placed
from fuseflow.sampling.restriction import coordinate_count, refusal, restrict_region, restricted_graph, sampled_index
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


EXAMPLES = 15
SEEDS = [1, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2, 4, 5))]
"""Seeds of programs. Those of the slow ones take longest."""


def restricted(run: RegionRun, coordinates: np.ndarray) -> Simulation:
    """The simulation of a region at some coordinates."""
    smaller = restrict_region(run.region.fused, len(coordinates))
    graph = restricted_graph(run.region, smaller, run.schedule)
    sources = {name: tensor.source for name, tensor in smaller.tensors.items()}
    attach = placed(run.region.graph, run.memory, run.machine, RestrictedArrays(sources))
    return simulate(graph, smaller.read(graph.inputs, run.memory, coordinates), run.machine, engine="reference", attach=attach)


def differences(run: RegionRun) -> list[str]:
    """What differs between the exact run and the restriction to all coordinates, and between the values of some coordinates."""
    exact, whole = run.simulation, restricted(run, np.arange(coordinate_count(run.region.fused)))
    told = [
        f"{field} of region `{run.region.name}`: {getattr(whole, field)}, not {getattr(exact, field)}"
        for field in ("cycles", "firings", "tokens", "operators")
        if getattr(whole, field) != getattr(exact, field)
    ]
    for a, b in zip(exact.nodes, whole.nodes, strict=True):
        if replace(a, name="") != replace(b, name=""):
            told.append(f"a node of region `{run.region.name}`: {b}, not {a}")
    some = np.arange(coordinate_count(run.region.fused))[1::2]
    part = restricted(run, some)
    for result in run.region.fused.results:
        at = result.indices.index(sampled_index(run.region.fused))
        rows = exact.outputs[result.name].to_dense().take(some, at)
        agree("restricted region", result.name, part.outputs[result.name].to_dense(), rows.astype(np.float64))
    return told


def check(case: Case, machine: ff.Machine, counts: Counter[str]) -> Checked:
    """Compare every region of a program that can be sampled."""
    for run in region_runs(case, machine):
        why = refusal(run.region)
        counts["refused" if why else "sampled"] += 1
        counts["inner"] += not why and sampled_index(run.region.fused) != run.region.fused.order[0]
        told = [] if why else differences(run)
        counts["read in two ways"] += not why and any(".restricted" in n for n in restrict_region(run.region.fused, 1).tensors)
        if told:
            raise Difference("; ".join(told))
    return Checked(case.schedule, ())


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_all_coordinates_are_the_region_itself(seed: int, wide: bool) -> None:
    counts: Counter[str] = Counter()
    machine = random_machine(seed + 100 * wide)
    tally = program_fuzz.run(seed, EXAMPLES, lambda case: check(case, machine, counts), smaller=False, wide=wide)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert counts["sampled"] >= 5, counts


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sampled_index_may_have_loops_around_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two coordinates are enough, inner indices of small programs are sampled: those below a loop that is reduced."""
    monkeypatch.setattr("fuseflow.sampling.restriction.FEWEST_COORDINATES", 2)
    counts: Counter[str] = Counter()
    machine = random_machine(seed + 200)
    tally = program_fuzz.run(seed + 50, EXAMPLES, lambda case: check(case, machine, counts), smaller=False)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert counts["inner"] >= 1, counts


@pytest.mark.parametrize("levels", ["compressed, compressed, dense", "dense, compressed, compressed", "dense, dense, dense"])
def test_a_tensor_that_is_read_in_two_ways_has_its_outer_levels_scanned_once(levels: str) -> None:
    """Queries are the keys, as in attention with one projection: both begin with the level of sequences."""
    program = parse(f"tensor P[4, 80, 6] ({levels})\nS[b, i, j] = sum(m) P[b, i, m] * P[b, j, m]\noutput S")
    rng = np.random.default_rng(1)
    tensors = {"P": rng.random((4, 80, 6)) * (rng.random((4, 80, 1)) < 0.3)}
    schedule = ff.Schedule().order("S", ("b", "i", "j", "m"))
    compiled = ff.compile(program, tensors=tensors, schedule=schedule, machine="rda")
    region = compiled.regions[-1]
    assert sampled_index(region.fused) == "i"
    smaller = restrict_region(region.fused, 20)
    assert smaller.fused.outer_levels == {"P.restricted_1": ("P", 1)}
    graph = restricted_graph(region, smaller, schedule)
    for write in (show, to_mlir, to_proto):
        with pytest.raises(GraphError, match=r"tensor `P.restricted_1` has levels of `P`, and no written form"):
            write(graph)
    other = [replace(t, outer=("P", 2)) if t.outer else t for t in graph.tensors]  # level 1 is not that of P
    with pytest.raises(GraphError, match=r"tensor `P.restricted_1` has other levels than `P`"):
        verify_graph(replace(graph, tensors=tuple(other)))
    exact, whole = compiled.run(), compiled.run(sample=ff.Sample(fraction=1))
    assert whole.cycles.estimate == exact.cycles and whole.rows_check.passed and whole.regions[-1].sample is not None
