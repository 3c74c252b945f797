"""Regions that do not read each other's results run at the same time, and give what they give one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import SimulationError, UsageError
from fuseflow.run import exact
from fuseflow.run.compiled import Compiled
from fuseflow.run.exact import last_needed
from fuseflow.run.result import Result
from fuseflow.sim import Simulation, simulate

PROGRAM = """
tensor A[12, 9] csr
tensor B[9, 7]
tensor C[9, 5] csr
tensor D[7, 5]
S[i, j] = sum(k) A[i, k] * B[k, j]
T[i, l] = sum(k) A[i, k] * C[k, l]
U[i, l] = sum(j) S[i, j] * D[j, l]
R[i, l] = relu(T[i, l])
Y[i, l] = U[i, l] + R[i, l]
output Y
"""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """A program of five regions, all of which are worth a thread."""
    monkeypatch.setattr(exact, "WORTH_A_THREAD", 0)
    program, rng = parse(PROGRAM), np.random.default_rng(0)
    tensors = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs}
    tensors |= {"A": tensors["A"] * (rng.random((12, 9)) < 0.4), "C": tensors["C"] * (rng.random((9, 5)) < 0.5)}
    return ff.compile(program, tensors=tensors, schedule=ff.Schedule.fuse("none"), machine="rda")


def watched(program: Compiled, jobs: int, engine: Any = "fast") -> tuple[str, list[str]]:
    """The result of a run as JSON without its seconds, and the regions in the order in which they were heard of."""
    heard: list[str] = []
    result = program.run(engine=engine, dedup=False, watch=lambda region, read, simulation: heard.append(region.name), jobs=jobs)
    return plain(result), heard


def plain(result: Result) -> str:
    values = result.to_dict()
    return json.dumps({name: value for name, value in values.items() if name != "seconds"})


def test_a_region_needs_the_last_one_that_it_reads_of(compiled: Compiled) -> None:
    assert last_needed(compiled.regions) == [-1, -1, 0, 1, 3]


@pytest.mark.parametrize("engine", ["fast", "auto"])
def test_any_number_of_jobs_gives_the_same(compiled: Compiled, engine: str) -> None:
    alone = watched(compiled, 1, engine)
    assert alone[1] == [region.name for region in compiled.regions]
    for jobs in (2, 3, 8):
        assert watched(compiled, jobs, engine) == alone


def test_two_regions_meet(compiled: Compiled) -> None:
    """The first two wait for each other, so they do run at the same time."""
    meeting, first_two = Barrier(2), {region.graph.name for region in compiled.regions[:2]}

    def execute(graph: Any, *arguments: Any, **options: Any) -> Simulation:
        if graph.name in first_two:
            meeting.wait(10)
        return simulate(graph, *arguments, **options)

    assert compiled.run(execute=execute, jobs=2, engine="fast").check


def test_small_regions_start_no_thread(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "WORTH_A_THREAD", 5_000_000)
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", None)
    assert compiled.run(jobs=8).check


def test_regions_that_run_alike_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products of one matrix with dense ones of one size: the second begins when the first has ended, and is not simulated."""
    monkeypatch.setattr(exact, "WORTH_A_THREAD", 0)
    text = PROGRAM.replace("C[9, 5] csr", "C[9, 7]").replace("D[7, 5]", "D[7, 7]")
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs}
    compiled = ff.compile(program, tensors=tensors, schedule=ff.Schedule.fuse("none"), machine="rda")
    results = [compiled.run(jobs=jobs, engine="fast") for jobs in (1, 3)]
    assert plain(results[0]) == plain(results[1])
    assert results[0].regions[0].times > 1


@pytest.mark.parametrize("failing", [{0}, {0, 1}, {1}, {1, 2}, {3}])
def test_the_first_region_that_fails_says_why(compiled: Compiled, failing: set[int]) -> None:
    number = {region.graph.name: k for k, region in enumerate(compiled.regions)}

    def execute(graph: Any, *arguments: Any, **options: Any) -> Simulation:
        if number[graph.name] in failing:
            raise SimulationError(f"region {number[graph.name]}")
        return simulate(graph, *arguments, **options)

    for jobs in (1, 2, 3):
        with pytest.raises(SimulationError, match=f"region {min(failing)}"):
            compiled.run(execute=execute, jobs=jobs, dedup=False, engine="fast")


def test_an_interrupt_stops_the_threads(compiled: Compiled) -> None:
    """A thread whose result nobody wants ends at the next report, and not with its region."""
    started, ends = Barrier(2), list[str]()

    def execute(graph: Any, tensors: Any, machine: Any, progress: Callable[[int], None], **options: Any) -> Simulation:
        started.wait(10)
        if graph.name == compiled.regions[0].graph.name:
            raise KeyboardInterrupt
        try:
            while True:
                progress(0)
        except Exception as error:
            ends.append(type(error).__name__)
            raise

    with pytest.raises(KeyboardInterrupt):
        compiled.run(execute=execute, jobs=2, engine="fast")
    assert ends == ["Stopped"]


def test_no_jobs_are_refused(compiled: Compiled) -> None:
    with pytest.raises(UsageError, match="`jobs=0` runs nothing"):
        compiled.run(jobs=0)
    with pytest.raises(UsageError, match="a sampled run runs one region at a time"):
        compiled.run(jobs=2, sample=ff.Sample(error=0.1))
