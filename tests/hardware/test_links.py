"""Circuits with links: equal to the simulator in every token."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hardware_cases import Tally, check, check_in, hardware_case
from hardware_tools import require
from hop_trees import random_trees, with_links
from random_graphs import Case

from fuseflow.errors import HardwareError
from fuseflow.hardware.circuit import build_circuit
from fuseflow.hardware.python_code import Step
from fuseflow.samml.nodes import Edge, Hops
from fuseflow.sim import load_machine


def linked(seed: int) -> Case:
    """A random graph with links where its random routes divide, one after the other, and no hops between them."""
    case = hardware_case(seed)
    graph = with_links(case.graph, random_trees(case.graph, seed))
    return replace(case, graph=graph.with_hops({}))


def test_random_graphs() -> None:
    tally, steps = Tally(), dict[str, Step]()
    for seed in range(24):
        assert not check(linked(seed), tally, steps), f"seed {seed}"
    assert tally.graphs > 12 and tally.primitives["link"] > 20


@pytest.mark.parametrize("seed", [3, 4])
def test_icarus(seed: int) -> None:
    require("pycde", "iverilog", "vvp")
    tally = Tally()
    assert not check_in("icarus", linked(seed), tally)
    assert tally.graphs == 1 and tally.primitives["link"] > 0


def test_hops_of_edges_are_refused() -> None:
    graph = hardware_case(0).graph
    edge = Edge(graph.nodes[1].name, 0)
    with pytest.raises(HardwareError, match=f"has hops at input 0 of `{edge.node}`"):
        build_circuit(graph.with_hops({edge: Hops(2)}), load_machine("rtl"))
