"""The report of a deadlock from who waits for whom, without a simulator. (With one: reference/test_deadlock.py.)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import programs
import pytest

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse as parse_program
from fuseflow.errors import DeadlockError
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Edge, Graph, Port
from fuseflow.samml.text import parse
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Machine, simulate
from fuseflow.sim.outcome.deadlock import (
    AwaitedSlot,
    AwaitedToken,
    AwaitedWorkspace,
    Deadlock,
    Remedy,
    WaitingProcess,
    deadlock_error,
    find_remedy,
    lane_copies,
)
from fuseflow.sim.outcome.statistics import NodeStatistics
from fuseflow.table import emit
from fuseflow.tensors import Tensor, pack
from fuseflow.transform import parallelize

GRAPH = parse("""
graph g
tensor A[2, 3]  csr
tensor y[2]  dense
output y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
sum = reduce(A_v) sum
y_i = write(A_i.crd) y.0
y_v = write(sum) y.vals
""")


def deadlock(*waiting: WaitingProcess, **depths: int) -> Deadlock:
    nodes = (NodeStatistics("root", "root", 2, 0, 0, 0, 1), NodeStatistics("A_i", "scan", 3, 2, 0, 2, 4))
    return Deadlock(waiting, nodes, lambda edges: depths.get(edges[0].node), lambda more: None)


FULL = (
    WaitingProcess("A_k", AwaitedSlot(Edge("A_v", 0), 2), 1),
    WaitingProcess("A_v", AwaitedSlot(Edge("sum", 0), 3), 2),
    WaitingProcess("sum", AwaitedToken(0, "A_k"), 0),
    WaitingProcess("y_v", AwaitedToken(0, "sum"), 2),
)


def test_the_smallest_depth_wins_then_graph_order() -> None:
    assert find_remedy(deadlock(*FULL, A_v=9, sum=8), GRAPH) == Remedy(Edge("sum", 0), 3, 8)
    assert find_remedy(deadlock(*FULL, A_v=8, sum=8), GRAPH) == Remedy(Edge("A_v", 0), 2, 8)
    turned = (WaitingProcess("sum", AwaitedSlot(Edge("sum", 0), 3), 1), WaitingProcess("A_v", AwaitedSlot(Edge("A_v", 0), 2), 0))
    assert find_remedy(deadlock(*turned, A_v=8, sum=8), GRAPH) == Remedy(Edge("A_v", 0), 2, 8)
    assert find_remedy(deadlock(*FULL), GRAPH) is None


def test_only_the_cycle_is_reported() -> None:
    error = deadlock_error(deadlock(*reversed_places(FULL), sum=8), GRAPH)
    assert isinstance(error, DeadlockError)
    assert error.message == "no node can move after cycle 4"
    assert error.notes == (
        "wait-for cycle: `sum` waits for a token on its input 0 from `A_k`; `A_k` waits for a slot of input 0 of `A_v`, full at depth "
        "2; `A_v` waits for a slot of input 0 of `sum`, full at depth 3",
    )
    assert error.hint == "depth 8 of input 0 of `sum` clears it (now 3), and no smaller one does"


def reversed_places(waiting: tuple[WaitingProcess, ...]) -> list[WaitingProcess]:
    last = len(waiting) - 1
    return [WaitingProcess(w.node, w.awaits, None if w.on is None else last - w.on) for w in reversed(waiting)]


def test_one_that_waits_for_an_ended_one_is_no_deadlock() -> None:
    stuck = deadlock(WaitingProcess("A_k", AwaitedWorkspace(), 1), WaitingProcess("sum", AwaitedToken(0, "A_v"), None))
    error = deadlock_error(stuck, GRAPH)
    assert not isinstance(error, DeadlockError)
    assert error.message == "the streams end apart: `sum` waits for a token on its input 0 from `A_v`, which never comes"
    assert find_remedy(stuck, GRAPH) is None


def test_halves_of_an_accumulator_wait_for_a_workspace() -> None:
    stuck = deadlock(WaitingProcess("sum", AwaitedWorkspace(), 1), WaitingProcess("sum", AwaitedSlot(Edge("y_v", 0), 1), 0))
    assert "`sum` waits for a workspace; `sum` waits for a slot of input 0 of `y_v`" in deadlock_error(stuck, GRAPH).notes[0]


AUTO = Machine(name="m", fifo_depth="auto", fifo_depth_start=2)


def graph(name: str, order: str, lanes: Mapping[str, int]) -> Graph:
    table = programs.table(name, order)
    return parallelize(emit(table), table.loops, lanes).graph


def tensors(graph: Graph, fill: float = 0.9) -> dict[str, Tensor]:
    draw = np.random.default_rng(1)
    shapes = {decl.name: decl for decl in graph.tensors if decl.name in graph.inputs}
    return {
        name: pack((draw.integers(1, 5, decl.shape) * (draw.random(decl.shape) < fill)).astype(float), decl.format)
        for name, decl in shapes.items()
    }


def of_one_lane(edge: Edge) -> tuple[str, int]:
    return edge.node.partition("/")[0], 0 if edge.node.startswith("merge") else edge.input


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_copies_get_the_same_depth(engine: Engine) -> None:
    """A softmax deadlocks in every lane at the same time: no FIFO of one lane clears that."""
    serial = graph("masked_softmax", "i,j", {})
    dealt = graph("masked_softmax", "i,j", {"i": 3})
    given = tensors(serial, 1.0)
    before, after = (simulate(g, given, AUTO, engine=engine) for g in (serial, dealt))
    for name, output in before.outputs.items():
        np.testing.assert_array_equal(after.outputs[name].to_dense(), output.to_dense())
    inside = {edge: depth for edge, depth in after.depths.items() if "/" in edge.node}
    assert {of_one_lane(edge) for edge in inside} and len(inside) == 3 * len({of_one_lane(edge) for edge in inside})
    assert {of_one_lane(edge): depth for edge, depth in inside.items()} == {of_one_lane(e): d for e, d in before.depths.items()}
    again = simulate(replace(dealt, depths=tuple(after.depths.items())), given, AUTO, engine=engine)
    assert (again.cycles, again.depths) == (after.cycles, {})


BATCH = "tensor A[8, 4, 8] csf\ntensor X[8, 9] dense\nY[h, i, j] = sum(k) A[h, i, k] * X[k, j]\noutput Y\n"


def test_a_lane_does_not_wait_for_its_turn() -> None:
    """Below every h lie 36 results, and a FIFO holds 4. With FIFOs of 4 everywhere the lanes take turns."""
    found = {}
    for lanes in (1, 4):
        schedule = Schedule.fuse("full").order("full", "h,i,k,j").par(h=lanes)
        (region,) = lower(infer(parse_program(BATCH)), schedule, {})[1]
        for depth in ("auto", 4, None):
            machine = Machine(name="m", fifo_depth=depth, fifo_depth_start=4)
            found[lanes, depth] = simulate(region.graph, tensors(region.graph, 1.0), machine).cycles
    assert found[4, "auto"] < 1.1 * found[4, None] and 3 * found[4, None] < found[1, None]
    assert found[4, 4] > 1.5 * found[4, "auto"]


def test_alike_goes_by_what_nodes_do_and_read() -> None:
    """By structure: a graph whose nodes have other names is sized the same way."""
    dealt = graph("spmm", "i,k,j", {"i": 2, "k": 2})
    names = {node.name: f"n{k}" for k, node in enumerate(dealt.nodes)}
    renamed = [
        replace(node, name=names[node.name], inputs=tuple(Port(names[p.node], p.output) for p in node.inputs))
        for node in dealt.nodes
    ]
    other = replace(dealt, nodes=tuple(renamed))
    groups = {frozenset(Edge(names[e.node], e.input) for e in edges) for edges in lane_copies(dealt).values()}
    assert groups == {frozenset(edges) for edges in lane_copies(other).values()}
    for edge, edges in lane_copies(dealt).items():
        assert edge in edges and len({of_one_lane(e) for e in edges}) == 1
    assert len(lane_copies(dealt)[Edge("X_val/i0/k0", 0)]) == 4
    serial = graph("spmm", "i,k,j", {})
    assert all(edges == (edge,) for edge, edges in lane_copies(serial).items())
