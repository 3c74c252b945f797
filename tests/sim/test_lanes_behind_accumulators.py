"""Dense results behind sums that are kept in a workspace, written in lanes: rows without entries get the implicit value, and all
simulators, the circuit, the written forms and the estimate agree."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from engines import LIMITS, disagreements
from hardware_cases import Tally, check, firing_differences
from hardware_tools import require
from random_graphs.case import Case

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.memory.settings import FixedMemory
from fuseflow.run.compiled import Compiled
from fuseflow.samml import mlir, protobuf
from fuseflow.samml import text as samml_text
from fuseflow.samml.nodes import Accumulate, WriteLaneValues
from fuseflow.sim import Machine, load_machine

SPMM = "tensor A[9, 7] csr\ntensor B[7, 5]\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
CUBE = "tensor A[6, 7] csr\ntensor B[7, 4, 3]\nY[i, j, l] = sum(k) A[i, k] * B[k, j, l]\noutput Y"
SPARSE = "tensor A[9, 7] csr\ntensor B[7, 5] csr\ntensor Y[9, 5] dense\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
PROGRAMS = {
    "rows": (SPMM, "i,k,j", {"i": 3}, "auto"),
    "more lanes than rows": (SPMM, "i,k,j", {"i": 16}, "auto"),
    "lanes inside lanes": (SPMM, "i,k,j", {"i": 2, "j": 2}, "auto"),
    "of three dimensions": (CUBE, "i,k,j,l", {"i": 4}, "lanes"),
    "sparse rows": (SPARSE, "i,k,j", {"i": 2}, "lanes"),
    "half precision": (SPMM.replace("csr", "csr f16", 1), "i,k,j", {"i": 2}, "auto"),
}


def compiled(name: str, machine: str | Machine = "ideal") -> Compiled:
    """A program with its tensors, of which every third row has no entries."""
    text, order, lanes, writers = PROGRAMS[name]
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {}
    for tensor in (tensor for tensor in program.tensors if tensor.name != "Y"):
        values = rng.integers(-4, 5, tensor.shape).astype(np.float32)
        if tensor.format is not None and not tensor.format.all_dense:
            values *= rng.random(tensor.shape) < 0.5
            values[::3] = 0
        tensors[tensor.name] = values
    schedule = ff.Schedule.fuse("full").order("Y", order).par(**lanes).lower(writers=writers)
    return ff.compile(program, schedule=schedule, tensors=tensors, machine=machine)


def case(name: str, machine: str | Machine = "ideal") -> Case:
    program = compiled(name, machine)
    (region,) = program.regions
    nodes = region.graph.nodes
    assert any(isinstance(node, Accumulate) for node in nodes) and any(isinstance(node, WriteLaneValues) for node in nodes)
    return Case(region.graph, dict(program.source.tensors), program.machine)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_numpy(name: str) -> None:
    program = compiled(name)
    tensors: Mapping[str, np.ndarray] = {key: tensor.to_dense() for key, tensor in program.source.tensors.items()}
    result = np.tensordot(tensors["A"], tensors["B"], axes=(-1, 0))
    np.testing.assert_array_equal(program.run().outputs["Y"], result)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_simulators_agree(name: str) -> None:
    for memory in ({"model": "ideal"}, {"model": "fixed", "latency": 7, "outstanding": 2, "line": 32}, {"model": "hbm2"}):
        for depth in (3, 64):
            settings = {**load_machine("rda").model_dump(), "fifo_depth": depth, "memory": memory}
            drawn = case(name, Machine.model_validate(settings))
            differing = [line for limits in LIMITS for line in disagreements(drawn, limits)]
            assert not differing, "\n".join(differing[:5])


@pytest.mark.parametrize("name", PROGRAMS)
def test_written_forms_keep_the_graph(name: str) -> None:
    graph = case(name).graph
    assert samml_text.parse(samml_text.show(graph)) == graph
    assert mlir.from_mlir(mlir.to_mlir(graph)) == graph
    assert protobuf.from_proto(protobuf.to_proto(graph)) == graph


@pytest.mark.parametrize("memory", ["ideal", "fixed"])
@pytest.mark.parametrize("name", ["rows", "of three dimensions", "sparse rows"])
def test_circuits(name: str, memory: str) -> None:
    """Every token, firing and request, each in its cycle."""
    settings = {"memory": FixedMemory(latency=5, outstanding=2, line=32)} if memory == "fixed" else {}
    machine = Machine(name="lanes", arithmetic="f32", fifo_depth=64).model_copy(update=settings)
    tally = Tally()
    assert not check(case(name, machine), tally, {})
    assert tally.primitives["write_lane_values"] and not tally.deadlocks


def test_icarus() -> None:
    require("pycde", "iverilog", "vvp")
    memory = FixedMemory(latency=5, outstanding=2, line=32)
    of_rows = case("rows", Machine(name="lanes", arithmetic="f32", fifo_depth=64).model_copy(update={"memory": memory}))
    run = cosimulate(of_rows.graph, of_rows.tensors, of_rows.machine, "icarus")
    assert run.difference is None and not firing_differences(of_rows, run.evaluation)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_estimate_counts_firings_and_bytes(name: str) -> None:
    program = compiled(name, "rda")
    estimate, result = program.estimate(), program.run()
    assert sum(region.firings for region in estimate.regions) == sum(region.simulation.firings for region in result.regions)


def test_64_lanes_are_faster_than_8() -> None:
    """The product of sparse rows with a dense matrix, whose lanes ended in one writer: 64 lanes took as long as 16 did."""
    rng = np.random.default_rng(0)
    for rows, columns, density in ((150, 16, 0.05), (100, 32, 0.05), (128, 24, 0.1)):
        a = (rng.random((rows, rows)) < density) * rng.standard_normal((rows, rows))
        tensors = {"A": a.astype(np.float32), "B": rng.standard_normal((rows, columns)).astype(np.float32)}
        text = SPMM.replace("9, 7", f"{rows}, {rows}").replace("7, 5", f"{rows}, {columns}")
        schedule = ff.Schedule.fuse("full").order("Y", "i,k,j")
        for machine, most in (("ideal", 0.45), ("rda", 0.6)):
            by_lanes = {}
            for lanes in (8, 64):
                dealt = ff.compile(parse(text), schedule=schedule.par(i=lanes), tensors=tensors, machine=machine)
                by_lanes[lanes] = dealt.run().cycles
            assert by_lanes[64] <= most * by_lanes[8]
