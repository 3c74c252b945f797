"""The report of a deadlock from who waits for whom, without a simulator. (With one: reference/test_deadlock.py.)"""

from __future__ import annotations

from fuseflow.errors import DeadlockError
from fuseflow.samml.nodes import Edge
from fuseflow.samml.text import parse
from fuseflow.sim.outcome.deadlock import (
    AwaitedSlot,
    AwaitedToken,
    AwaitedWorkspace,
    Deadlock,
    Remedy,
    WaitingProcess,
    deadlock_error,
    find_remedy,
)
from fuseflow.sim.outcome.statistics import NodeStatistics

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
