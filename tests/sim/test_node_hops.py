"""Hops of nodes: what they give is later, an accumulation waits behind a fiber, and a port is farther away, on both simulators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engines import LIMITS, differences, on_engine, on_reference
from graph_fuzz import drawn
from hop_stages import at_nodes
from random_graphs import random_case
from random_graphs.case import Case

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.memory.settings import FixedMemory
from fuseflow.samml.nodes import NodeHops
from fuseflow.sim import simulate
from fuseflow.sim.engine_names import Engine
from fuseflow.sim.outcome.statistics import Outcome

UNITS = ("default", "add", "mul", "div", "transcendental", "logic", "memory")


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(50, 500, 50))])
def test_both_simulators_agree(first: int) -> None:
    for seed in range(first, first + 50):
        case = at_nodes(drawn(seed, None, dram=seed % 5 == 0), seed)
        lines = list(differences(case, on_reference(case), on_engine(case, LIMITS[seed % len(LIMITS)])))
        assert not lines, f"seed {seed}: " + "\n".join(lines[:5])


def same(case: Case, other: Case, seed: int) -> None:
    """Two cases run in the same way, but for what a memory counts."""
    a, b = on_reference(case), on_reference(other)
    if isinstance(a, Outcome) and isinstance(b, Outcome):
        assert (a.cycles, a.nodes, a.edges) == (b.cycles, b.nodes, b.edges), seed
        assert {port: stream.visible for port, stream in a.streams.items()} == {p: s.visible for p, s in b.streams.items()}
    else:
        assert type(a) is type(b), seed


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_an_accumulation_waits_for_the_sums_of_a_fiber(engine: Engine) -> None:
    """Three fibers of two values: each of the first two has the next behind it, and the third has `D`. A loop of two hops or fewer is over
    when `D` comes, and each hop delays two fibers; a longer one delays `D`, too."""
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    program = parse("tensor A[3, 2]\nY[j] = sum(i) A[i, j]\noutput Y")
    compiled = ff.compile(program, tensors={"A": values}, machine="ideal", schedule=ff.Schedule.fuse("full"))
    graph, memory = compiled.regions[0].graph, compiled.memory()
    graphs = [graph.with_hops({}, {"acc_i": NodeHops(loop=loop)}) for loop in (0, 1, 2, 5, 9)]
    runs = [simulate(each, memory, compiled.machine, engine=engine) for each in graphs]
    assert [run.cycles for run in runs] == [18, 18 + 2, 18 + 4, 18 + 4 + 3 * 3, 18 + 4 + 3 * 7]


def test_hops_of_all_nodes_are_a_latency_of_the_machine() -> None:
    for seed in range(40):
        case, inner = random_case(seed), 1 + seed % 4
        hops = {node.name: NodeHops(inner) for node in case.graph.nodes}
        machine = case.machine
        latency = {unit: machine.latency.of(unit) + inner for unit in UNITS}
        other = machine.model_copy(update={"latency": type(machine.latency)(**latency)})
        same(replace(case, graph=case.graph.with_hops({}, hops)), replace(case, machine=other), seed)


@pytest.mark.parametrize("memory", ["ideal", "fixed"])
def test_the_way_to_a_port_and_back_is_a_latency_of_the_memory(memory: str) -> None:
    for seed in range(40):
        case, way = random_case(seed), 1 + seed % 7
        near = case.machine.model_copy(update={"memory": FixedMemory(latency=20)} if memory == "fixed" else {})
        if memory == "fixed":
            far = near.model_copy(update={"memory": FixedMemory(latency=20 + 2 * way)})
        else:
            latency = {unit: near.latency.of(unit) + 2 * way * (unit == "memory") for unit in UNITS}
            far = near.model_copy(update={"latency": type(near.latency)(**latency)})
        declared = case.graph.declared
        asking = [node.name for node in case.graph.nodes if hasattr(node, "tensor") and node.asks_memory(declared)]
        hops = {name: NodeHops(port=way) for name in asking}
        same(replace(case, graph=case.graph.with_hops({}, hops), machine=near), replace(case, machine=far), seed)
