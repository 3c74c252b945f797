"""Expected streams: what is absent after a join is neither scanned nor loaded, and levels that come apart or together change the depth."""

from __future__ import annotations

import dataflow
import numpy as np
import pytest
from random_graphs import random_case

from fuseflow.costs import estimate_graph, measure_statistics, stream_shapes
from fuseflow.costs.cost import expected_traffic
from fuseflow.samml.nodes import Port
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import pack

JOIN = """
graph joined
tensor A[200, 50]  dcsr f64
tensor B[200, 50]  dcsr f64
tensor Y[200, 50]  dcsr f64
output Y

root = root()
A_i = scan(root) A.0
B_i = scan(root) B.0
both = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) {kind}
B_j = scan(both.out1) B.1
B_val = load(B_j.ref) B
write_Y_i = write(both.crd) Y.0
write_Y_j = write(B_j.crd) Y.1
write_Y_val = write(B_val) Y.vals
"""


def rows(density: float, seed: int) -> np.ndarray:
    """Return a matrix in which some rows are full and the others empty."""
    return np.repeat((np.random.default_rng(seed).random(200) < density).astype(float)[:, None], 50, axis=1)


@pytest.mark.parametrize("kind", ["left", "union", "intersect"])
def test_absent_rows_have_no_entries(kind):
    graph = parse(JOIN.format(kind=kind), "joined")
    declared = graph.declared
    tensors = {"A": pack(rows(0.6, 1), declared["A"].format), "B": pack(rows(0.3, 2), declared["B"].format)}
    statistics = {name: measure_statistics(tensor) for name, tensor in tensors.items()}
    real = simulate(graph, tensors, load_machine("ideal"))
    loads = next(node for node in real.nodes if node.name == "B_val")
    shapes = stream_shapes(graph, statistics)
    assert shapes[Port("B_val")].elements == pytest.approx(loads.firings, rel=0.3)
    assert estimate_graph(graph, statistics)[0].firings == pytest.approx(real.firings, rel=0.3)


def test_levels_that_come_apart_or_together_change_the_depth():
    """Coordinates i, j of a 4 x 6 matrix are one of 24, and these are two of 8 and 3."""
    graph = dataflow.graph("reshaped")
    tensors = dataflow.inputs(graph, np.random.default_rng(5), 0.5)
    shapes = stream_shapes(graph, {name: measure_statistics(tensor) for name, tensor in tensors.items()})
    streams = simulate(graph, tensors, load_machine("ideal"), record=True).streams
    for port, kind in graph.types().items():
        assert len(shapes[port].counts) == kind.depth, port
        values = sum(isinstance(token, int | float) for token in streams[port].tokens)
        assert shapes[port].elements == pytest.approx(values, rel=0.3), port
    assert [shapes[Port(name, k)].size for name, k in (("flat", 0), ("wide", 0), ("wide", 1))] == [24, 8, 3]


@pytest.mark.parametrize("seed", [235, 712])
def test_every_graph_has_shapes_of_the_depth_of_its_streams(seed: int):
    case = random_case(seed)
    shapes = stream_shapes(case.graph, {name: measure_statistics(tensor) for name, tensor in case.tensors.items()})
    assert {port: len(shapes[port].counts) for port in shapes} == {p: kind.depth for p, kind in case.graph.types().items()}


@pytest.mark.parametrize("format", ["coo", "csr", "dcsr", "csc"])
def test_a_singleton_level_stores_no_positions(format: str):
    graph = parse(
        f"graph g\ntensor A[6, 8] {format} f64\ntensor y[] dense f64\noutput y\nroot = root()\no = scan(root) A.0\n"
        "i = scan(o.ref) A.1\nv = load(i.ref) A\nr = reduce(v) sum\ns = reduce(r) sum\nw = write(s) y.vals\n"
    )
    tensors = {"A": pack(np.tile([1.0, 0.0], (6, 4)), graph.declared["A"].format)}
    statistics = {"A": measure_statistics(tensors["A"])}
    shapes = stream_shapes(graph, statistics)
    read = sum(row.bytes for row in simulate(graph, tensors, load_machine("ideal")).traffic if row.tensor == "A")
    repeated = 4 * (24 - 6) if format == "coo" else 0  # coordinates that are stored for each entry below are expected once
    assert expected_traffic(graph, shapes, statistics)["A"] == read - repeated
