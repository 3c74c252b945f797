"""Hops of nodes: what they give is later, a fold takes longer, and their port is farther away, on both simulators."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from engines import LIMITS, differences, on_engine, on_reference
from graph_fuzz import drawn
from random_graphs import random_case
from random_graphs.case import Case

from fuseflow.memory.settings import FixedMemory
from fuseflow.samml.nodes import NodeHops
from fuseflow.sim.outcome.statistics import Outcome

UNITS = ("default", "add", "mul", "div", "transcendental", "logic", "memory")


def with_hops(case: Case, rng: random.Random) -> Case:
    """The case with random hops at some of its nodes."""
    drawn_hops = {
        node.name: NodeHops(rng.randint(0, 5), rng.randint(0, 9), rng.randint(0, 12))
        for node in case.graph.nodes
        if rng.random() < 0.6
    }
    return replace(case, graph=case.graph.with_hops({}, drawn_hops))


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(50, 500, 50))])
def test_both_simulators_agree(first: int) -> None:
    for seed in range(first, first + 50):
        case = with_hops(drawn(seed, None, dram=seed % 5 == 0), random.Random(f"node hops {seed}"))
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


def test_hops_of_all_nodes_are_a_latency_and_an_interval_of_the_machine() -> None:
    for seed in range(40):
        case, inner, loop = random_case(seed), 1 + seed % 4, seed % 3
        hops = {node.name: NodeHops(inner, loop) for node in case.graph.nodes}
        machine = case.machine
        latency = {unit: machine.latency.of(unit) + inner for unit in UNITS}
        interval = machine.interval.model_copy(update={"fold": machine.interval.of("fold") + loop})
        other = machine.model_copy(update={"latency": type(machine.latency)(**latency), "interval": interval})
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
