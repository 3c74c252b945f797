"""Turns at ports that nodes share: by hand, and the requests that come of them."""

from __future__ import annotations

import pytest
from graph_fuzz import drawn

from fuseflow.errors import MachineError
from fuseflow.samml.nodes import Graph, Turn
from fuseflow.samml.text import parse
from fuseflow.sim import Simulation, load_machine, simulate
from fuseflow.sim.reference.execute import build_network, run_network
from fuseflow.sim.signature import signature
from fuseflow.tensors import Format, pack

GRAPH = parse("""\
tensor x[3] dense f64
tensor y[3] dense f64
output y

root = root()
x_i = scan(root) x.0
x_v = load(x_i.ref) x
y_i = write(x_i.crd) y.0
y_v = write(x_v) y.vals
""")
TENSORS = {"x": pack([1.0, 2.0, 3.0], Format.parse("dense", 1))}


def run(graph: Graph, engine: str) -> Simulation:
    return simulate(graph, TENSORS, load_machine("ideal"), engine=engine, check=True, record=True)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_port_of_two_nodes(engine: str) -> None:
    """The scan gives references that are visible in cycles 2, 3 and 4, the stop in 5 and `D` in 6. The load fires in 2, 4 and 6; then the
    stop in 7 and `D` in 8, in which it needs no turn. The write sees values in 3, 5 and 7, in its turn, and ends with `D` in 9."""
    assert run(GRAPH, engine).cycles == 8
    result = run(GRAPH.with_turns({"x_v": Turn(0, 2), "y_v": Turn(1, 2)}), engine)
    by_name = {node.name: node for node in result.nodes}
    assert [(by_name[name].first, by_name[name].last, by_name[name].firings) for name in ("x_v", "y_v")] == [(2, 8, 5), (3, 9, 5)]
    assert [(by_name[name].starved, by_name[name].blocked) for name in ("x_v", "y_v")] == [(2, 2), (5, 0)]
    (visible,) = (stream.visible for port, stream in result.streams.items() if port.node == "x_v")
    assert (visible, result.cycles) == ((3, 5, 7, 8, 9), 10)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_the_other_order_waits_once_more(engine: str) -> None:
    """The load fires in 3, 5 and 7, and the write in 4, 6 and 8: a cycle later each."""
    assert run(GRAPH.with_turns({"x_v": Turn(1, 2), "y_v": Turn(0, 2)}), engine).cycles == 11


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_turns_that_are_no_multiple_of_an_interval(engine: str) -> None:
    """A load that may fire every two cycles, and has one turn of three, fires every three: in 4, 7 and 10. Then come the
    stop in 12 and `D` in 13."""
    machine = load_machine("ideal").model_copy(
        update={"interval": load_machine("ideal").interval.model_copy(update={"memory": 2})}
    )
    turned = GRAPH.with_turns({"x_v": Turn(1, 3)})
    result = simulate(turned, TENSORS, machine, engine=engine)
    (load,) = (node for node in result.nodes if node.name == "x_v")
    assert (load.first, load.last, load.firings) == (4, 13, 5)


def test_graphs_with_other_turns_have_another_structure() -> None:
    given = ({}, {"x_v": Turn(0, 2)}, {"x_v": Turn(1, 2)}, {"x_v": Turn(0, 3)}, {"y_v": Turn(0, 2)})
    graphs = [GRAPH.with_turns(turns) for turns in given]
    assert len({graph.structure.key for graph in graphs}) == len({repr(signature(graph, TENSORS)) for graph in graphs}) == 5
    assert GRAPH.with_turns({"x_v": Turn(0, 1)}) == GRAPH


def test_a_machine_without_ports_has_no_turns() -> None:
    with pytest.raises(MachineError, match="`x_v` shares a port with 1 other nodes; machine `comal` knows no ports"):
        simulate(GRAPH.with_turns({"x_v": Turn(0, 2)}), TENSORS, load_machine("comal"))


@pytest.mark.parametrize("seed", range(50000, 50030))
def test_requests_to_a_memory_come_in_turn(seed: int) -> None:
    """Those of all ports of a node, at any memory."""
    case = drawn(seed, None, dram=True, turns=True)
    controller, turns = case.machine.controller(), dict(case.graph.turns)
    assert controller is not None
    run_network(build_network(case.graph, case.tensors, case.machine, controller=controller))
    for number, port in enumerate(controller.ports):
        if turn := turns.get(port.node):
            assert {cycle % turn.of for cycle in controller.memory.requests(number)["cycle"].tolist()} <= {turn.number}
