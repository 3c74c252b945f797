"""Nodes at a memory that takes time: the same values and elements, every window the same cycles, lines asked for as by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from memories import at_memory
from random_graphs import random_case

from fuseflow.errors import SimulationError
from fuseflow.machine.machine import Machine
from fuseflow.memory.buffer_assignment import sequential_readers
from fuseflow.memory.layout import array_label, lay_out
from fuseflow.memory.memory import Memory
from fuseflow.memory.memory_interface import Controller, ControllerFactory
from fuseflow.memory.models import Dram
from fuseflow.memory.settings import IdealMemory
from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine
from fuseflow.sim.outcome.deadlock import Deadlock
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.execute import execute
from fuseflow.tensors import Tensor, pack
from fuseflow.tensors.pack import from_coordinates

IDEAL, LINE = load_machine("ideal"), 64


def hbm2(**options: int) -> Controller:
    return Controller(lambda ports: Memory(Dram(), ports), **options)


def graph_of(text: str) -> Graph:
    graph = parse(text, "remote")
    verify(graph)
    return graph


def run(graph: Graph, tensors: dict[str, Tensor], controller: Controller) -> Outcome:
    outcome = execute(graph, tensors, IDEAL, attach=lambda: controller)
    assert isinstance(outcome, Outcome)
    return outcome


VECTOR = """
graph vector
tensor A[{n}]  dense f32
tensor Y[{n}]  dense f32
output Y

root = root()
A_i = scan(root) A.0
A_val = load(A_i.ref) A
write_Y_i = write(A_i.crd) Y.0
write_Y_val = write(A_val) Y.vals
"""

ROWS = """
graph rows
tensor A[40, 1000]  dcsr f32
tensor X[1000]  dense f32
tensor Y[40]  dense f32
output Y

root = root()
A_i = scan(root) A.0 sequential
A_j = scan(A_i.ref) A.1 sequential
X_j = locate(A_j.crd) X.0
X_val = load(X_j) X
Y_val = reduce(X_val) sum
write_Y_i = write(A_i.crd) Y.0
write_Y_val = write(Y_val) Y.vals
"""


@pytest.mark.parametrize("first", range(0, 150, 15))
def test_random_graphs(first: int) -> None:
    """Outputs to the last bit, tokens and elements are those without a memory; the cycles are the same in every window."""
    for case in (at_memory(random_case(seed), seed) for seed in range(first, first + 15)):
        ideal = execute(case.graph, case.tensors, case.machine.model_copy(update={"memory": IdealMemory()}))
        found = [execute(case.graph, case.tensors, case.machine, attach=a) for a in (None, *windows(case.machine))]
        first_found = found[0]
        assert all(type(one) is type(first_found) for one in found)
        if isinstance(first_found, Deadlock):
            assert all(isinstance(one, Deadlock) and one.waiting == first_found.waiting for one in found)
            continue
        for one in found:
            assert isinstance(one, Outcome)
            assert (one.cycles, one.nodes, one.edges, one.memory) == (
                first_found.cycles, first_found.nodes, first_found.edges, first_found.memory,
            )  # fmt: skip
        if isinstance(ideal, Outcome):
            assert first_found.elements == ideal.elements and first_found.tokens == ideal.tokens
            for name, want in ideal.written.items():
                got = first_found.written[name]
                assert (got.crd, got.pos) == (want.crd, want.pos)
                assert np.asarray(got.values).tobytes() == np.asarray(want.values).tobytes()


def windows(machine: Machine) -> list[ControllerFactory]:
    """Its memory in windows of one cycle, and of some."""
    controller = machine.controller()
    assert controller is not None
    longest = controller.make(1).lookahead
    return [lambda w=w: replace(machine.controller(), window=w) for w in {1, (longest + 1) // 2}]  # type: ignore[misc]


def test_one_line_by_hand():
    """16 values are one line. It is fetched in cycle 0, from a closed bank: 32 cycles, 4 more for its second half. Then a value a cycle, a
    stop, `D`. The line to write is full with the 16th value, in cycle 52."""
    graph = graph_of(VECTOR.format(n=16))
    values = pack(np.arange(16, dtype=np.float32), graph.declared["A"].format)
    controller = hbm2()
    outcome = run(graph, {"A": values}, controller)
    nodes = {node.name: node for node in outcome.nodes}
    assert (nodes["A_val"].first, nodes["A_val"].last, nodes["A_val"].firings) == (36, 53, 18)
    assert (nodes["write_Y_val"].first, nodes["write_Y_val"].last) == (37, 54)
    asked = [tuple(controller.memory.requests(port)["cycle"]) for port in range(len(controller.ports))]
    assert asked == [(0,), (52,)]
    assert outcome.cycles == 1 + int(controller.memory.requests(1)["visible"][0])


@pytest.mark.parametrize(("ahead", "outstanding"), [(8, 32), (1, 32), (0, 32), (8, 1), (0, 1), (0, 2)])
def test_a_whole_array_is_read_once(ahead, outstanding):
    """However far ahead: each line once, in order, never more on their way than allowed."""
    graph = graph_of(VECTOR.format(n=1000))
    controller = hbm2(prefetch=ahead, outstanding=outstanding)
    outcome = run(graph, {"A": pack(np.arange(1000, dtype=np.float32), graph.declared["A"].format)}, controller)
    np.testing.assert_array_equal(outcome.written["Y"].values, np.arange(1000))
    read = controller.memory.requests(0)
    np.testing.assert_array_equal(read["address"], np.arange(63) * LINE)
    for n in range(outstanding, 63):
        assert read["cycle"][n] >= read["visible"][n - outstanding]
    assert controller.memory.statistics()[1].requests == 63


def test_fetching_ahead_is_worth_it():
    graph = graph_of(VECTOR.format(n=4000))
    tensors = {"A": pack(np.arange(4000, dtype=np.float32), graph.declared["A"].format)}
    cycles = [run(graph, tensors, hbm2(prefetch=d, outstanding=k)).cycles for d, k in ((8, 32), (2, 32), (0, 1))]
    assert cycles == sorted(cycles) and cycles[0] < 4000 * 1.15 and cycles[2] > 4000 * 1.8


def test_gathers_ask_for_the_lines_that_they_touch():
    """A by rows is read in order, pos and crd; X is gathered: consecutive coordinates in one line are one request."""
    graph = graph_of(ROWS)
    rng = np.random.default_rng(0)
    array = (rng.random((40, 1000)) < 0.02).astype(np.float32)
    array[3] = 0
    tensors = {"A": pack(array, graph.declared["A"].format), "X": pack(np.ones(1000, np.float32), graph.declared["X"].format)}
    controller = hbm2()
    run(graph, tensors, controller)
    rows, columns = np.nonzero(array)
    lines = columns * 4 // LINE
    gathered = 1 + int((np.diff(lines) != 0).sum())
    stored = [2, len(np.unique(rows)), len(np.unique(rows)) + 1, len(columns)]  # pos and crd of both levels
    requests = [port.requests for port in controller.memory.statistics()]
    assert sorted(requests) == sorted([*(-(-4 * n // LINE) for n in stored), gathered, -(-4 * 39 // LINE)])
    assert sequential_readers(graph) == {"A_i", "A_j"}


def test_the_map_of_addresses():
    graph = graph_of(ROWS)
    tensors = {"A": pack(np.eye(40, 1000, dtype=np.float32), graph.declared["A"].format)}
    tensors["X"] = pack(np.ones(1000, np.float32), graph.declared["X"].format)
    places = lay_out(graph, tensors, 1 << 30)
    assert [p.base % LINE for p in places.values()] == [0] * len(places)
    ends = [p.base + p.length for p in places.values()]
    assert all(end <= p.base for end, p in zip(ends, list(places.values())[1:], strict=False)) and ends[-1] <= 1 << 30
    listed = [(array_label(array), p.base, p.length) for array, p in places.items()]
    assert listed[:2] == [("A.0.pos", 0, 8), ("A.0.crd", 0x40, 160)]


def test_a_memory_that_is_too_small():

    graph = graph_of(VECTOR.format(n=16))
    tensors = {"A": pack(np.arange(16, dtype=np.float32), graph.declared["A"].format)}
    with pytest.raises(SimulationError, match="reads 64 bytes; the memory has 64, and its results need some of them"):
        lay_out(graph, tensors, 64)


def test_nothing_is_seen_before_it_was_asked_for():
    """A tile of two lines, fetched ahead one by one: when it is handed on, its second line is not asked for yet."""
    text = VECTOR.format(n=3).replace("[3]", "[3, 1]").replace("f32", "f32 tile 4x8").replace("load(A_i.ref)", "load(A_j.ref)")
    text = text.replace("A_val =", "A_j = scan(A_i.ref) A.1\nA_val =")
    graph = graph_of(text + "write_Y_j = write(A_j.crd) Y.1\n")
    places = np.array([[0, 1, 2], [0, 0, 0]])
    tensors = {"A": from_coordinates((3, 1), places, np.ones((3, 4, 8), np.float32), graph.declared["A"].format)}
    controller = hbm2(outstanding=1)
    nodes = {node.name: node for node in run(graph, tensors, controller).nodes}
    assert nodes["A_val"].first == controller.memory.requests(0)["visible"][1]
