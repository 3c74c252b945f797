"""The order in which processes run changes nothing but the memory that the interpreter needs."""

from __future__ import annotations

from dataclasses import replace

import dataflow
import numpy as np
import pytest

from fuseflow.samml.nodes import Graph
from fuseflow.sim import load_machine, simulate
from fuseflow.sim.reference import execute as schedule
from fuseflow.sim.reference import step_code
from fuseflow.sim.reference.execute import build_network
from fuseflow.tensors import Tensor, pack

IDEAL = load_machine("ideal")


def square(name: str, size: int) -> tuple[Graph, dict[str, Tensor]]:
    graph = dataflow.graph(name)
    graph = replace(graph, tensors=tuple(replace(t, shape=(size, size)) for t in graph.tensors))
    inputs = {t.name: pack(np.ones(t.shape), t.format) for t in graph.tensors if t.name in graph.inputs}
    return graph, inputs


@pytest.mark.parametrize("name", dataflow.TEXTS)
@pytest.mark.parametrize("limit", [1, 3])
def test_how_far_scans_run_ahead_changes_nothing(name: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = dataflow.graph(name)
    tensors = dataflow.inputs(graph, np.random.default_rng(4), 0.8)
    expected = simulate(graph, tensors, IDEAL, record=True)
    monkeypatch.setattr(step_code, "BACKLOG_LIMIT", limit)
    found = simulate(graph, tensors, IDEAL, record=True)
    assert found.nodes == expected.nodes
    dataflow.same_streams(found, expected)


def test_streams_are_not_held_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, tensors = square("outer_product", 30)
    monkeypatch.setattr(step_code, "BACKLOG_LIMIT", 16)
    monkeypatch.setattr(schedule, "SWEEPS_PER_REPORT", 1)
    network = build_network(graph, tensors, IDEAL)
    backlogs: list[int] = []

    def measure(firings: int) -> None:
        backlogs.append(max(len(fifo) for stream in network.streams.values() for fifo in stream.fifos))

    assert not schedule.run_network(network, measure)
    assert max(stream.count for stream in network.streams.values()) > 30**3
    assert max(backlogs) <= 2 * 16


def test_a_row_longer_than_the_limit_is_held_where_it_must_be() -> None:
    graph, tensors = square("normalized", 2 * step_code.BACKLOG_LIMIT)
    matrix = np.zeros((2 * step_code.BACKLOG_LIMIT,) * 2)
    matrix[0] = 1.0
    tensors["A"] = pack(matrix, graph.declared["A"].format)
    result = simulate(graph, tensors, IDEAL)
    np.testing.assert_array_equal(result.outputs["Y"].to_dense(), matrix / (2 * step_code.BACKLOG_LIMIT))
