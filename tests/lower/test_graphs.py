"""Graphs that are equal up to names are estimated and verified once, with the same result as each for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuseflow.costs import estimate_graph
from fuseflow.einsum.parse import parse
from fuseflow.lower import graphs
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Graph
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.transform import mark_fiber_fifos

CHAIN = """
    tensor A[6, 6] csr
    tensor B[6, 6] csr
    tensor X[6, 6] dense
    S[i, j] = sum(k) A[i, k] * X[k, j]
    T[i, j] = sum(k) B[i, k] * X[k, j]
    U[i, j] = S[i, j] + T[i, j]
    output U
"""


def test_equal_graphs_are_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def recorded(graph: Graph) -> None:
        names.append(graph.name)
        verify(graph)

    monkeypatch.setattr(graphs, "verify", recorded)
    _, regions = lower(parse(CHAIN), Schedule.fuse("none"), {})
    assert [region.name for region in regions] == ["S", "T", "U"]
    assert names == ["S", "U"]


def test_what_is_known_of_an_equal_graph_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    estimated = graphs.estimated

    def checked(
        state: graphs.LoweringState, graph: Graph, fused: graphs.FusedRegion, priced: graphs.PricedTable | None = None
    ) -> object:
        result = estimated(state, graph, fused, priced)
        assert result == estimate_graph(graph, graphs.readable_statistics(state, fused))
        return result

    monkeypatch.setattr(graphs, "estimated", checked)
    _, regions = lower(parse(CHAIN), Schedule.fuse("none"), {})
    for region in regions:
        assert region.graph == mark_fiber_fifos(region.graph)
        verify(region.graph)


def test_the_structure_of_a_graph_has_all_but_its_names() -> None:
    _, (first, second, other) = lower(parse(CHAIN), Schedule.fuse("none"), {})
    assert first.graph.structure.key == second.graph.structure.key != other.graph.structure.key
    assert first.graph.structure.tensors != second.graph.structure.tensors
    filled = tuple(replace(t, fill=-0.0) for t in second.graph.tensors)
    assert replace(second.graph, tensors=filled).structure.key != first.graph.structure.key
    swapped = tuple(replace(node, inputs=node.inputs[::-1]) for node in second.graph.nodes)
    assert replace(second.graph, nodes=swapped).structure.key != first.graph.structure.key
