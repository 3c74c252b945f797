"""Statistics: starved, blocked and peaks worked out by hand, and what peaks promise."""

from __future__ import annotations

import random
from dataclasses import replace

import dataflow
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseflow.errors import DeadlockError
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, Simulation, load_machine, simulate
from fuseflow.sim.outcome.statistics import edges, flops_by_operator
from fuseflow.tensors import Tensor, pack

ROWS = """
graph rows
tensor A[2, 3]  csr
tensor y[2]  dense
output y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
square = alu(A_v, A_v) mul N->0,N->0
sum = reduce(square) sum
y_i = write(A_i.crd) y.0
y_v = write(sum) y.vals
"""
MATRIX = np.array([[1, 2, 3], [0, 0, 4]], dtype=np.float32)


def rows(depths: dict[tuple[str, int], int] | None = None, **machine: object) -> Simulation:
    graph = replace(parse(ROWS), depths=tuple((n.Edge(*edge), depth) for edge, depth in (depths or {}).items()))
    tensors = {"A": pack(MATRIX, graph.declared["A"].format)}
    return simulate(graph, tensors, Machine.model_validate({"name": "m", **machine}), record=True)


def idle(simulation: Simulation, name: str) -> tuple[int, int, int]:
    return next((s.busy, s.starved, s.blocked) for s in simulation.nodes if s.name == name)


def peaks(simulation: Simulation) -> dict[tuple[str, int], int]:
    return {(edge.node, edge.input): edge.peak for edge in simulation.edges}


def test_without_bounds_all_waiting_is_for_tokens() -> None:
    found = rows()
    assert found.streams[n.Port("square")].visible == (5, 6, 7, 8, 9, 10, 11)  # 3 values, S0, 1 value, S1, D
    assert idle(found, "square") == (7, 4, 0)
    # y_v: the sums of the rows at 8 + 1 and 10 + 1, S0 at 11 + 1, D at 12 + 1
    assert found.streams[n.Port("sum")].visible == (9, 11, 12, 13)
    assert idle(found, "y_v") == (4, 9 + 1, 0)
    # a token a cycle needs two slots: one is free only in the cycle after the pop. A_k gets them at 1, 2, 3, 4, takes at 2, 6, 7, 8
    assert {edge: peak for edge, peak in peaks(found).items() if peak != 2} == {("A_k", 0): 3}


def test_the_initiation_interval_blocks() -> None:
    found = rows(interval={"mul": 3})
    # values at 4, 7, 10, the stop at 13; a value at 14, the stop at 17, D at 18
    assert found.streams[n.Port("square")].visible == (5, 8, 11, 14, 15, 18, 19)
    assert idle(found, "square") == (7, 4, 2 + 2 + 2 + 2)
    # by 9 the load has made 7, of which those taken at 4 and 7 are gone
    assert peaks(found)["square", 0] == peaks(found)["square", 1] == 5
    assert idle(found, "sum") == (8, 5 + 2 + 2 + 2 + 2, 0)


def test_a_full_fifo_blocks_its_writer() -> None:
    """A_v is free for a token in the cycle after square took the last one; square, which needs 3 cycles, starves in the next."""
    found = rows({("square", 0): 1, ("square", 1): 1}, interval={"mul": 3})
    assert found.streams[n.Port("A_v")].visible == tuple(t + 1 for t in (3, 5, 8, 11, 14, 16, 19))
    assert idle(found, "A_v") == (7, 3, 1 + 2 + 2 + 2 + 1 + 2)
    assert found.streams[n.Port("square")].visible == tuple(t + 1 for t in (4, 7, 10, 13, 15, 18, 20))
    assert idle(found, "square") == (7, 4 + 1 + 1 + 1 + 1 + 1 + 1, 1 + 1 + 1 + 0 + 1 + 0)
    assert peaks(found)["square", 0] == peaks(found)["square", 1] == 1


def test_flops_by_operator_and_words() -> None:
    found = rows()
    assert dict(found.operators) == {"mul": 4, "sum": 4}
    assert found.flops == 8
    assert [(t.tensor, t.kind, t.direction, t.words, t.bytes) for t in found.traffic] == [
        ("A", "pos", "read", 4, 16), ("A", "crd", "read", 4, 16), ("A", "val", "read", 4, 16), ("y", "val", "write", 2, 8),
    ]  # fmt: skip


def test_streams_that_nobody_reads_are_not_counted() -> None:
    assert rows().tokens == 2 + 4 + 4 + 7 + 7 + 7 + 4  # root, A_i twice, A_k.ref (not .crd), A_v (read twice), square, sum


def test_streams_are_kept_where_asked_for() -> None:
    graph = parse(ROWS)
    tensors = {"A": pack(MATRIX, graph.declared["A"].format)}
    assert simulate(graph, tensors, load_machine("ideal"), check=True).streams == {}


def test_an_empty_row_is_no_value_to_fold() -> None:
    graph = parse("""
        graph columns
        tensor A[3, 4]  csr
        tensor y[4]  (compressed)
        output y
        root = root()
        A_i = scan(root) A.0
        A_j = scan(A_i.ref) A.1
        A_v = load(A_j.ref) A
        sum = accumulate(A_i.crd, A_j.crd, A_v) sum order=1
        y_j = write(sum.crd) y.0
        y_v = write(sum.val) y.vals
    """)
    a = pack(np.diag([1.0, 0.0, 2.0]) @ np.eye(3, 4), graph.declared["A"].format)
    found = simulate(graph, {"A": a}, load_machine("ideal"))
    assert found.operators == {"sum": 2}


def test_operators_without_flops_are_left_out() -> None:
    graph = parse(ROWS.replace("mul N->0,N->0", "max N->0,N->0").replace(") sum", ") max"))
    assert list(flops_by_operator(graph, {"square": 4, "sum": 4})) == ["max"]
    assert flops_by_operator(graph, {"square": 0, "sum": 0}) == {}


def test_edges_are_in_graph_order() -> None:
    found = rows()
    assert [n.Edge(e.node, e.input) for e in found.edges] == list(edges(parse(ROWS)))
    assert [e.tokens for e in found.edges] == [2, 4, 7, 7, 7, 7, 4, 4]


def run(graph: n.Graph, tensors: dict[str, Tensor], machine: Machine) -> Simulation | None:
    try:
        return simulate(graph, tensors, machine, record=True)
    except DeadlockError:
        return None


@pytest.mark.parametrize("name", dataflow.TEXTS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_peaks_are_the_depths_that_are_needed(name: str, seed: int) -> None:
    """FIFOs as deep as their peaks change nothing; one slot less on any of them delays what goes through it."""
    rng = random.Random(seed)
    graph = dataflow.with_depths(dataflow.graph(name), rng)
    tensors = dataflow.inputs(graph, np.random.default_rng(seed), rng.choice([0.0, 0.5, 1.0]))
    machine = dataflow.random_machine(rng)
    found = run(graph, tensors, machine)
    if found is None:
        return
    exact = {n.Edge(edge.node, edge.input): edge.peak for edge in found.edges}
    again = run(replace(graph, depths=tuple(exact.items())), tensors, machine)
    assert again is not None
    assert (again.cycles, again.nodes, again.edges) == (found.cycles, found.nodes, found.edges)
    dataflow.same_streams(again, found)
    scarce = [edge for edge, peak in exact.items() if peak > 1]
    writers = {edge: port for port, readers in graph.readers().items() for edge in readers}
    for edge in rng.sample(scarce, min(len(scarce), 3)):
        less = run(replace(graph, depths=tuple({**exact, edge: exact[edge] - 1}.items())), tensors, machine)
        if less is not None:
            assert less.streams[writers[edge]].visible != found.streams[writers[edge]].visible
            assert less.cycles >= found.cycles


def test_peaks_of_a_softmax_hold_a_row() -> None:
    """What waits for the sum of a row is the row."""
    graph = dataflow.graph("normalized")
    matrix = np.zeros((3, 9))
    matrix[0, :6] = matrix[2, :2] = 1.0
    found = simulate(graph, {"A": pack(matrix, graph.declared["A"].format)}, load_machine("ideal"))
    assert max(edge.peak for edge in found.edges if edge.node == "div" and edge.input == 0) >= 6
