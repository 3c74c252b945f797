"""Deadlocks: found, explained by the edge that is full, with the smallest depth that clears them."""

from __future__ import annotations

import re
from dataclasses import replace

import dataflow
import numpy as np
import pytest

from fuseflow.errors import DeadlockError, SimulationError
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine, Simulation, load_machine, simulate
from fuseflow.tensors import Format, Tensor, pack


def run(depths: dict[tuple[str, int], int], default: int | None = None, name: str = "normalized", row: int = 6) -> Simulation:
    graph = dataflow.graph(name)
    matrix = np.zeros((3, 9))
    matrix[0, :row] = matrix[2, :2] = 1.0
    tensors = {"A": pack(matrix, graph.declared["A"].format)}
    graph = replace(graph, depths=tuple((n.Edge(*edge), depth) for edge, depth in depths.items()))
    return simulate(graph, tensors, Machine(name="m", fifo_depth=default))


def test_the_full_fifo_and_who_waits_for_whom() -> None:
    with pytest.raises(DeadlockError) as caught:
        run({("div", 0): 2})
    assert str(caught.value).splitlines() == [
        "error[deadlock]: no node can move after cycle 15",
        "  note: wait-for cycle: `A_v` waits for a slot of input 0 of `div`, full at depth 2; `div` waits for a token on its "
        "input 1 from `rep`; `rep` waits for a token on its input 0 from `total`; `total` waits for a token on its input 0 "
        "from `A_v`",
        "  hint: depth 7 of input 0 of `div` clears it (now 2), and no smaller one does; its depth is stated (`--depth`)",
    ]


@pytest.mark.parametrize("row", [2, 3, 5, 9])
def test_the_smallest_depth_is_tight(row: int) -> None:
    with pytest.raises(DeadlockError) as caught:
        run({("div", 0): 1}, row=row)
    found = re.match(r"depth (\d+) of input 0 of `div`", caught.value.hint)
    assert found is not None
    depth = int(found[1])
    assert run({("div", 0): depth}, row=row).cycles > 0
    with pytest.raises(DeadlockError):
        run({("div", 0): depth - 1}, row=row)


def test_several_fifos_may_be_needed() -> None:
    """The coordinates that drive the repeat wait as long as the values do."""
    with pytest.raises(DeadlockError, match="full at depth 1") as caught:
        run({("div", 0): 1, ("rep", 1): 1})
    assert caught.value.hint.startswith(
        "no single FIFO clears it, even with 1,048,576 slots: raise the depths that are stated (`--depth`, or `depth:` of a schedule), or"
    )
    assert run({("div", 0): 7, ("rep", 1): 7}).cycles > 0


def test_of_several_fifos_the_one_that_needs_least_is_named() -> None:
    """Three in a row on the way to the division: what one gains the others need not hold. Equal ones: the first in the graph."""
    graph = dataflow.graph("normalized")
    *before, div, write = [node for node in graph.nodes if not isinstance(node, n.WriteLevel)]
    levels = [node for node in graph.nodes if isinstance(node, n.WriteLevel)]
    assert div.name == "div"
    one = n.Alu("one", (div.inputs[0],), "copy", (n.Operand(0.0),))
    two = n.Alu("two", (n.Port("one"),), "copy", (n.Operand(0.0),))
    late = replace(div, inputs=(n.Port("two"), div.inputs[1]))
    depths = ((n.Edge("one", 0), 2), (n.Edge("two", 0), 1), (n.Edge("div", 0), 1))
    graph = replace(graph, nodes=(*before, one, two, late, write, *levels), depths=depths)
    matrix = np.zeros((3, 9))
    matrix[0, :6] = 1.0
    tensors = {"A": pack(matrix, graph.declared["A"].format)}
    with pytest.raises(DeadlockError) as caught:
        simulate(graph, tensors, Machine(name="m"))
    found = re.match(r"depth (\d+) of input 0 of `two` clears it \(now 1\)", caught.value.hint)
    assert found is not None
    cleared = (depths[0], (n.Edge("two", 0), int(found[1])), depths[2])
    assert simulate(replace(graph, depths=cleared), tensors, Machine(name="m")).cycles > 0


def test_what_runs_at_a_depth_runs_at_every_greater_one() -> None:
    outcomes = []
    for depth in range(1, 12):
        try:
            outcomes.append(run({}, default=depth).cycles)
        except DeadlockError:
            outcomes.append(0)
    assert outcomes[0] == 0
    assert outcomes[-1] > 0
    assert outcomes == sorted(outcomes, key=bool)


def test_streams_that_end_apart_are_not_called_a_deadlock() -> None:
    graph = dataflow.graph("normalized")
    wrong = n.Alu("div", (n.Port("A_v"), n.Port("total")), "div", (n.Operand(0.0), n.Operand(0.0)))
    graph = replace(graph, nodes=tuple(wrong if node.name == "div" else node for node in graph.nodes))
    tensors = {"A": pack(np.eye(3, 9), Format.parse("csr", 2))}
    with pytest.raises(SimulationError, match=r"node `div` \(alu\): its inputs differ in structure"):
        simulate(graph, tensors, load_machine("ideal"))


def test_a_stream_that_never_comes() -> None:
    graph = dataflow.graph("normalized")
    short = n.Accumulate("acc", (n.Port("A_i"), n.Port("total"), n.Port("A_v")), "sum", 1)
    graph = replace(graph, nodes=(*graph.nodes[:6], short), outputs=(), tensors=graph.tensors[:1])
    tensors = {"A": pack(np.ones((3, 9)), graph.declared["A"].format)}
    for machine in (load_machine("ideal"), load_machine("ideal", {"fifo_depth": "auto", "fifo_depth_start": 1})):
        with pytest.raises(
            SimulationError, match="`acc` waits for a token on its input 1 from `total`, which never comes"
        ) as caught:
            simulate(graph, tensors, machine)
        assert not isinstance(caught.value, DeadlockError)


def wide(depths: dict[tuple[str, int], int]) -> n.Graph:
    graph = dataflow.graph("normalized")
    tensors = tuple(replace(t, shape=(3, 40)) for t in graph.tensors)
    return replace(graph, tensors=tensors, depths=tuple((n.Edge(*edge), depth) for edge, depth in depths.items()))


def of_row(graph: n.Graph, row: int) -> dict[str, Tensor]:
    matrix = np.zeros((3, 40))
    matrix[0, :row] = matrix[2, :2] = 1.0
    return {"A": pack(matrix, graph.declared["A"].format)}


def auto(start: int, row: int, depths: dict[tuple[str, int], int] | None = None) -> Simulation:
    graph = wide(depths or {})
    return simulate(graph, of_row(graph, row), Machine(name="m", fifo_depth="auto", fifo_depth_start=start))


def test_auto_deepens_the_fifo_that_clears_the_deadlock_to_a_power_of_two() -> None:
    with pytest.raises(DeadlockError) as caught:
        run({("div", 0): 2}, default=64)
    assert caught.value.hint.startswith("depth 7 of input 0 of `div` clears it")
    found = auto(64, 6, {("div", 0): 2})
    assert found.depths == {n.Edge("div", 0): 8}
    assert auto(64, 6).depths == {}


@pytest.mark.parametrize("start", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("row", [2, 7, 40])
def test_auto_ends_and_the_depths_found_give_the_same_run(start: int, row: int) -> None:
    """No FIFO alone clears what waits for a row on two ways: both grow, each in its turn."""
    found = auto(start, row)
    for depth in found.depths.values():
        assert depth.bit_count() == 1 and start < depth <= 2 * (row + 8)
    if row > start + 8:
        assert {edge.node for edge in found.depths} == {"rep", "div"}
    depths = {(edge.node, edge.input): depth for edge, depth in found.depths.items()}
    again = simulate(wide(depths), of_row(wide({}), row), Machine(name="m", fifo_depth=start))
    assert (again.cycles, again.nodes, again.edges, again.depths) == (found.cycles, found.nodes, found.edges, {})
    with_auto = auto(start, row, depths)
    assert (with_auto.cycles, with_auto.depths) == (found.cycles, {})


def test_depths_stand_in_graph_order() -> None:
    names = [node.name for node in dataflow.graph("normalized").nodes]
    found = [names.index(edge.node) for edge in auto(1, 40).depths]
    assert len(found) > 1
    assert found == sorted(found)
