"""Which tensors can be preloaded, what the graphs of a program say of them, and what a run makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from programs import CHAIN

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import HardwareError, SamplingError, ScheduleError, UsageError
from fuseflow.hardware.circuit import build_circuit
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import RegionResult

GATHER = """
tensor A[60, 50] csr
tensor X[50, 16] block 1x16
T[i, j] = sum(k) A[i, k] * X[k, j]
output T
"""


def compiled(text: str, *preloads: str, schedule: ff.Schedule | None = None, machine: str = "rda") -> Compiled:
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.6)).astype(np.float32) for t in program.inputs}
    base = schedule or ff.Schedule.fuse("none")
    return ff.compile(program, tensors=tensors, schedule=ff.Schedule.from_flags(base=base, preloads=preloads), machine=machine)


def ports(program: Compiled) -> list[dict[str, int]]:
    """The tensors of each region that are preloaded, with their ports."""
    return [{t.name: t.preload for t in region.graph.tensors if t.preload} for region in program.regions]


def moved(region: RegionResult, tensor: str) -> int:
    memory = region.simulation.memory
    assert memory is not None
    return sum(of.moved_bytes for port, of in memory.ports if port.tensor == tensor)


def test_each_region_has_those_that_it_reads() -> None:
    assert ports(compiled(CHAIN, "weight=4", "V=1", "T=2")) == [{"weight": 4}, {"V": 1, "T": 2}]
    assert ports(compiled(CHAIN, "weight=4", schedule=ff.Schedule.fuse("full"))) == [{"weight": 4}]


def test_lanes_share_what_is_read_once() -> None:
    """Four lanes look rows up: what they read is moved once, by eight ports, and each lane keeps all of it."""
    lanes = ff.Schedule.fuse("none").order("T", "i,k,j").par(i=4)
    plain, preloaded = (compiled(GATHER, *names, schedule=lanes).run() for names in ((), ("X=8",)))
    assert preloaded.check is not None and preloaded.check.passed
    ((before,), (after,)) = plain.regions, preloaded.regions
    size = 50 * 16 * 4
    assert moved(after, "X") == size < moved(before, "X") / 3
    assert after.cycles < before.cycles
    assert (before.resources.buffer, after.resources.buffer) == (0, 4 * size)
    assert after.resources.port == before.resources.port - 4 + 8
    assert after.resources == compiled(GATHER, "X=8", schedule=lanes).run().regions[0].resources
    estimate = compiled(GATHER, "X=8", schedule=lanes).estimate().regions[0].resources
    assert (estimate.port, estimate.buffer) == (after.resources.port, after.resources.buffer)


@pytest.mark.parametrize(
    ("preload", "message", "hint"),
    [
        ("Weight=1", "`Weight` cannot be preloaded: the program has no such tensor", "did you mean `weight`?"),
        ("Y=1", "`Y` cannot be preloaded: no region reads it from memory", "only what a region reads"),
        ("U=1", "`U` cannot be preloaded: no region reads it from memory", "only what a region reads"),
        ("X=1", "`X` cannot be preloaded: it is stored as csr", "store it dense"),
    ],
)
def test_what_cannot_be_preloaded(preload: str, message: str, hint: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        compiled(CHAIN, preload)
    assert caught.value.message.startswith(message) and hint in caught.value.hint


def test_what_is_passed_on_is_resident_or_has_a_buffer_is_not_preloaded() -> None:
    with pytest.raises(ScheduleError, match="`T` cannot be preloaded: no region reads it from memory"):
        compiled(CHAIN, "T=1", schedule=ff.Schedule.fuse("full"))
    with pytest.raises(ScheduleError, match="`V` cannot be preloaded: it is resident"):
        compiled(CHAIN, "V=1", schedule=ff.Schedule.lower(resident=["V"]))
    with pytest.raises(ScheduleError, match="`V` cannot be preloaded: it has a reuse buffer"):
        compiled(CHAIN, "V=1", schedule=ff.Schedule.buffer("V", "1KB"))


def test_the_place_in_a_schedule_file() -> None:
    for line, message in (("wieght: 1", "`wieght` cannot be"), ("V: 0", "0 is not a number of ports")):
        with pytest.raises(ScheduleError, match=r"s.yaml:4:3: .*" + message):
            compiled(CHAIN, schedule=ff.Schedule.from_yaml(f"fuse: full\npreload:\n  weight: 1\n  {line}\n", "s.yaml"))


@pytest.mark.parametrize("text", ["V=0", "V=-1", "V=1KB", "V=", "V=1.5"])
def test_flags_that_are_no_ports(text: str) -> None:
    with pytest.raises(UsageError):
        ff.Schedule.from_flags(preloads=[text])


def test_preloads_without_an_effect_are_named() -> None:
    (notice,) = compiled(CHAIN, "weight=2", machine="ideal").notices
    assert notice == "the memory of ideal answers at once, so it has no effect that `weight` is preloaded"
    assert not compiled(CHAIN, "weight=2").notices


def test_circuits_and_samples_refuse_them() -> None:
    program = compiled(CHAIN, "weight=2")
    with pytest.raises(HardwareError, match="reads a tensor that is preloaded"):
        build_circuit(program.regions[0].graph, ff.sim.load_machine("rda"))
    with pytest.raises(SamplingError, match="a run with preloaded tensors cannot be sampled"):
        program.run(sample=ff.Sample(fraction=0.5))


def test_all_parts_of_a_divided_operand_that_are_dense_are_preloaded() -> None:
    schedule = ff.Schedule.from_yaml("plan: {weight: [{form: 2x2}, {form: elements}]}\npreload: {weight: 2}\n")
    with pytest.raises(ScheduleError, match="`weight1` cannot be preloaded: it is stored as"):
        compiled(CHAIN, schedule=schedule)


@pytest.mark.parametrize("ports", [0, -1, 1025, 10**30])
def test_numbers_of_ports_that_no_machine_has_are_refused(ports: int) -> None:
    with pytest.raises(ScheduleError, match="preload of `W`"):
        ff.Schedule().preload("W", ports)
