"""Dense results that each lane writes by itself: what arrives, which lines are sent, and that all simulators and the estimate agree."""

from __future__ import annotations

import re
from collections.abc import Generator
from math import prod

import numpy as np
import pytest
from engines import LIMITS, disagreements
from lane_written import lane_copy, lines_sent, random_lane_case, written_once

from fuseflow.costs.statistics import measure_statistics
from fuseflow.errors import GraphError, MachineError
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.patterns import dense_pattern
from fuseflow.estimate.graph_counts import count_graph
from fuseflow.estimate.node_work import firings
from fuseflow.memory.settings import IdealMemory
from fuseflow.samml import mlir, protobuf
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.samml.writers import LanePart, WriteLaneValues, lane_part
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.execute import execute as reference
from fuseflow.sim.reference.memory_ports import RequestPort, WritePort
from fuseflow.sim.reference.timed_process import Process, Wait

SEEDS = range(120)


@pytest.mark.parametrize("first", range(0, len(SEEDS), 40))
def test_both_simulators_agree(first: int) -> None:
    for seed in SEEDS[first : first + 40]:
        case, limits = random_lane_case(seed), LIMITS[seed % len(LIMITS)]
        verify(case.graph)
        differing = list(disagreements(case, limits))
        assert not differing, f"seed {seed} with {limits}: " + "\n".join(differing[:5])


def test_what_is_written_is_what_one_writer_writes() -> None:
    for seed in SEEDS:
        case = random_lane_case(seed)
        machine = Machine.model_validate({**case.machine.model_dump(), "fifo_depth": None})  # a merge needs room
        lanes, once = (simulate(graph, case.tensors, machine).outputs["Y"] for graph in (case.graph, written_once(case.graph)))
        np.testing.assert_array_equal(lanes.values, once.values, err_msg=f"seed {seed}")
        np.testing.assert_array_equal(lanes.to_dense(), case.tensors["X"].to_dense(), err_msg=f"seed {seed}")


def test_each_lane_sends_a_line_once_it_goes_on_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of each lane, in order, against a plain list of the lines that its elements touch."""
    sent: dict[str, list[int]] = {}

    def send(port: RequestPort, p: Process, line: int, visible: int, free: int = 0) -> Generator[Wait, None, int]:
        if isinstance(port, WritePort) and port.part is not None:
            sent.setdefault(p.node.name, []).append(line - port.place.base // port.line_bytes)
        return (yield from original(port, p, line, visible, free))

    original = RequestPort.send
    monkeypatch.setattr(RequestPort, "send", send)
    partial_lines = 0
    for seed in SEEDS:
        case = random_lane_case(seed)
        if isinstance(case.machine.memory, IdealMemory):
            continue
        sent.clear()
        if not isinstance(reference(case.graph, case.tensors, case.machine), Outcome):
            continue
        decl, line_bits = case.graph.declared["Y"], 8 * case.machine.memory.line
        for node in case.graph.nodes:
            if isinstance(node, WriteLaneValues):
                part = lane_part(node, decl)
                lines = lines_sent(lane_count(prod(decl.shape), part), part, decl.value_bits, line_bits)
                assert sent.get(node.name, []) == lines, f"seed {seed}: {node.name}"
                partial_lines += len(set(lines)) * line_bits > lane_count(prod(decl.shape), part) * decl.value_bits
    assert partial_lines > 50


def lane_count(entries: int, part: LanePart) -> int:
    """The entries of so many that a lane has."""
    return sum(place // part.run % part.lanes == part.lane for place in range(entries))


def test_the_estimate_counts_the_firings() -> None:
    """Firings of every node, at every memory, and the bytes."""
    for seed in SEEDS:
        case = random_lane_case(seed)
        machine = Machine.model_validate({**case.machine.model_dump(), "fifo_depth": None})
        run = simulate(case.graph, case.tensors, machine)
        patterns = {"X": dense_pattern(case.graph.declared["X"].shape)}
        counts = count_graph(case.graph, {"X": measure_statistics(case.tensors["X"])}, patterns, CountMemo())
        for node, counted, measured in zip(case.graph.nodes, counts.nodes, run.nodes, strict=True):
            work = firings(node, case.graph.declared, counted.inputs, counted.outputs, counted.steps, machine)
            assert counted.exact
            assert sum(on_values + closing for on_values, closing in work) == measured.firings, f"seed {seed}: {node.name}"
        written = {(t.tensor, t.kind): t.bytes for t in run.traffic if t.direction == "write"}
        assert {(t.tensor, t.kind): t.bytes for t in counts.traffic if t.direction == "write"} == written, f"seed {seed}"


def test_written_forms_keep_the_lanes() -> None:
    graph = lane_copy((5, 3), (), "f32", 0, 2)
    assert "Y0/1 = write(crds.lane1) Y.0 levels=0 lane=1 lanes=2" in show(graph)
    assert "Y/1 = write(X/1) Y.vals levels=1 lane=1 lanes=2" in show(graph)
    assert parse(show(graph)) == graph
    assert mlir.from_mlir(mlir.to_mlir(graph)) == graph
    assert protobuf.from_proto(protobuf.to_proto(graph)) == graph


GRAPH = lane_copy((4, 3), (), "f32", 0, 2)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("tensor Y[4, 3]  dense", "tensor Y[4, 3]  csr", "which is (dense, compressed), not dense"),
        ("tensor Y[4, 3]  dense", "tensor Y[5, 3]  dense", "not provably at all of its coordinates"),
        ("lane=1 lanes=2", "lane=0 lanes=2", "is not lane 1 of 2"),
        ("lane=1 lanes=2", "lane=2 lanes=2", "writes lane 2 of 2"),
        ("Y.vals levels=1", "Y.vals levels=0", "not provably the lanes of one fork"),
        ("Y.vals levels=1", "Y.vals levels=2", "which has no such level"),
        ("Y/1 = write(X/1) Y.vals levels=1 lane=1 lanes=2", "", "in 1 of 2 lanes"),
        ("Y/1 = write(X/1) Y.vals levels=1 lane=1 lanes=2", "Y/1 = write(X/1) Y.vals", "is not lane 1 of 2"),
        ("Y/1 = write(X/1)", "Y/1 = write(X/0)", "not provably the lanes of one fork"),
    ],
)
def test_lanes_that_do_not_belong_together_are_refused(before: str, after: str, message: str) -> None:
    assert before in show(GRAPH)
    with pytest.raises(GraphError, match=re.escape(message)):
        verify(parse(show(GRAPH).replace(before, after)))


def test_coordinates_that_are_not_all_there_are_refused() -> None:
    """Rows that are stored compressed, and three rows, do not write all of four."""
    for rows in ("tensor X[4, 3]  dcsr", "tensor X[3, 3]  dense"):
        with pytest.raises(GraphError, match="not provably at all of its coordinates"):
            verify(parse(show(GRAPH).replace("tensor X[4, 3]  dense", rows)))


def test_the_public_simulator_has_no_times_for_them() -> None:
    case = random_lane_case(0)
    with pytest.raises(MachineError, match="writes what one lane has of a tensor; machine `comal` has no times for that"):
        simulate(GRAPH, {"X": case.tensors["X"]}, load_machine("comal"))
