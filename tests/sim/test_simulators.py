"""Which simulator runs a graph, and which gives the advice about one that is stuck."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from row_graphs import offsets

from fuseflow.machine.machine import Machine
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.samml.text import parse, show
from fuseflow.sim import load_machine, simulate, simulators
from fuseflow.sim.outcome.deadlock import Deadlock, find_remedy
from fuseflow.sim.reference import execute
from fuseflow.tensors import pack

ROWS = 40
GRAPH = offsets(ROWS, 8)


def test_advice_that_takes_the_reference_too_long_is_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = {"x": pack(np.arange(1.0, 8.0 * ROWS + 1).reshape(ROWS, 8), GRAPH.declared["x"].format)}
    machine = Machine(name="test", fifo_depth=4)
    graph = replace(GRAPH, depths=((Edge("back", 1), 16),))
    slow, _ = simulators.run_graph(graph, tensors, machine, "reference")
    monkeypatch.setattr(simulators, "REFERENCE_FIRINGS", 700)  # stuck in the first row, of forty
    found, engine = simulators.run_graph(graph, tensors, machine)
    assert engine == "reference"
    assert isinstance(slow, Deadlock) and isinstance(found, Deadlock)
    assert find_remedy(found, graph) == find_remedy(slow, graph) is not None


def test_what_was_stuck_on_the_reference_may_run_on_on_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = {"x": pack(np.arange(1.0, 8.0 * ROWS + 1).reshape(ROWS, 8), GRAPH.declared["x"].format)}
    machine = Machine(name="test", fifo_depth="auto", fifo_depth_start=4)
    slow = simulate(GRAPH, tensors, machine, engine="reference")
    monkeypatch.setattr(simulators, "REFERENCE_FIRINGS", 700)
    found = simulate(GRAPH, tensors, machine)
    assert found.engine == "fast"
    assert (found.cycles, found.depths) == (slow.cycles, slow.depths)


@pytest.mark.parametrize(
    ("machine", "rows", "engine"),
    [("ideal", 500, "reference"), ("ideal", 4_000, "fast"), ("rda", 100, "reference"), ("rda", 1_000, "fast")],
)
def test_the_choice_is_by_firings_and_by_memory(machine: str, rows: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the graph is some 60 firings. At a memory that takes time, each costs the reference five times as much."""
    monkeypatch.setattr(simulators, "REFERENCE_FIRINGS", 100_000)  # as in a command: tests take the engine sooner
    graph = parse(show(GRAPH).replace(f"[{ROWS}, 8]", f"[{rows}, 8]"))
    tensors = {"x": pack(np.arange(1.0, 8.0 * rows + 1).reshape(rows, 8), graph.declared["x"].format)}
    run = simulate(graph, tensors, load_machine(machine, {"fifo_depth": 64}))
    limit = simulators.reference_firings(graph, load_machine(machine))
    assert (run.engine, run.firings <= limit) == (engine, engine == "reference")


@pytest.mark.parametrize(("expected", "engine"), [(0.0, "reference"), (1e6, "fast")])
def test_a_run_that_is_expected_to_be_long_is_not_begun_on_the_reference(
    monkeypatch: pytest.MonkeyPatch, expected: float, engine: str
) -> None:
    tensors = {"x": pack(np.arange(1.0, 8.0 * ROWS + 1).reshape(ROWS, 8), GRAPH.declared["x"].format)}
    begun: list[Graph] = []
    execute_reference = execute.execute

    def recorded(graph: Graph, *arguments: Any) -> Any:
        begun.append(graph)
        return execute_reference(graph, *arguments)

    monkeypatch.setattr(execute, "execute", recorded)
    run = simulate(GRAPH, tensors, Machine(name="test", fifo_depth=64), expected=expected)
    assert (run.engine, bool(begun)) == (engine, engine == "reference")
    assert run.cycles == simulate(GRAPH, tensors, Machine(name="test", fifo_depth=64), engine="fast").cycles
