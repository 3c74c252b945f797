"""Simulations that are done once."""

from __future__ import annotations

import numpy as np

from fuseflow.autoscheduler.simulation_cache import SimulationCache
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

TEXT = "tensor A[3, 4] csr\ntensor b[4] dense\nY[i] = sum(k) A[i, k] * b[k]\noutput Y"
A, B = np.eye(3, 4, dtype=np.float32), np.ones(4, dtype=np.float32)


def run(cache: SimulationCache, a: np.ndarray, schedule: Schedule, machine: str = "ideal") -> tuple[int, np.ndarray]:
    program = compile_source(load(ModelSpec(parse(TEXT), tensors={"A": a, "b": B})), schedule, load_machine(machine))
    result = program.run(execute=cache)
    return result.cycles, result.outputs["Y"]


def test_other_values_take_the_same_cycles_and_are_computed_where_they_count() -> None:
    cache, plain = SimulationCache(), Schedule()
    cycles, _ = run(cache, A, plain)
    assert run(cache, 2 * A, plain)[0] == cycles
    assert cache.simulations == 1
    rerun = run(cache.exactly(), 2 * A, plain)
    assert rerun[0] == cycles and rerun[1].tolist() == [2, 2, 2]
    assert run(cache.exactly(), A, plain)[1].tolist() == [1, 1, 1]


def test_patterns_and_machines_are_told_apart() -> None:
    cache, plain = SimulationCache(), Schedule()
    run(cache, A, plain)
    run(cache, np.roll(A, 1, axis=1), plain)
    run(cache, A, plain, "rda")
    assert cache.simulations == 3


def test_a_drop_of_zeros_reads_values() -> None:
    cache, dropping = SimulationCache(), Schedule().lower(drop_zeros=["Y"])
    run(cache, A, dropping.format("Y", "csf"))
    run(cache, A * [0, 1, 1, 1], dropping.format("Y", "csf"))
    run(cache, 2 * A, dropping.format("Y", "csf"))
    assert cache.simulations == 3
