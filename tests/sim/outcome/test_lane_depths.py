"""FIFOs of lanes on a machine of `fifo_depth: auto`: copies are equally deep, and a lane does not wait for the turn of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import programs
import pytest

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse as parse_program
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Edge, Graph, Port
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Machine, simulate
from fuseflow.sim.outcome.lane_depths import lane_copies
from fuseflow.table import emit
from fuseflow.tensors import Tensor, pack
from fuseflow.transform import parallelize

AUTO = Machine(name="m", fifo_depth="auto", fifo_depth_start=2)


def graph(name: str, order: str, lanes: Mapping[str, int]) -> Graph:
    table = programs.table(name, order)
    return parallelize(emit(table), table.loops, lanes).graph


def tensors(graph: Graph, fill: float = 0.9) -> dict[str, Tensor]:
    draw = np.random.default_rng(1)
    shapes = {decl.name: decl for decl in graph.tensors if decl.name in graph.inputs}
    return {
        name: pack((draw.integers(1, 5, decl.shape) * (draw.random(decl.shape) < fill)).astype(float), decl.format)
        for name, decl in shapes.items()
    }


def of_one_lane(edge: Edge) -> tuple[str, int]:
    return edge.node.partition("/")[0], 0 if edge.node.startswith("merge") else edge.input


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_copies_get_the_same_depth(engine: Engine) -> None:
    """A softmax deadlocks in every lane at the same time: no FIFO of one lane clears that."""
    serial = graph("masked_softmax", "i,j", {})
    dealt = graph("masked_softmax", "i,j", {"i": 3})
    given = tensors(serial, 1.0)
    before, after = (simulate(g, given, AUTO, engine=engine) for g in (serial, dealt))
    for name, output in before.outputs.items():
        np.testing.assert_array_equal(after.outputs[name].to_dense(), output.to_dense())
    inside = {edge: depth for edge, depth in after.depths.items() if "/" in edge.node}
    assert {of_one_lane(edge) for edge in inside} and len(inside) == 3 * len({of_one_lane(edge) for edge in inside})
    assert {of_one_lane(edge): depth for edge, depth in inside.items()} == {of_one_lane(e): d for e, d in before.depths.items()}
    again = simulate(replace(dealt, depths=tuple(after.depths.items())), given, AUTO, engine=engine)
    assert (again.cycles, again.depths) == (after.cycles, {})


BATCH = "tensor A[8, 4, 8] csf\ntensor X[8, 9] dense\nY[h, i, j] = sum(k) A[h, i, k] * X[k, j]\noutput Y\n"


def test_a_lane_does_not_wait_for_its_turn() -> None:
    """Below every h lie 36 results, and a FIFO holds 4. With FIFOs of 4 everywhere the lanes take turns."""
    found = {}
    for lanes in (1, 4):
        schedule = Schedule.fuse("full").order("full", "h,i,k,j").par(h=lanes)
        (region,) = lower(infer(parse_program(BATCH)), schedule, {})[1]
        for depth in ("auto", 4, None):
            machine = Machine(name="m", fifo_depth=depth, fifo_depth_start=4)
            found[lanes, depth] = simulate(region.graph, tensors(region.graph, 1.0), machine).cycles
    assert found[4, "auto"] < 1.1 * found[4, None] and 3 * found[4, None] < found[1, None]
    assert found[4, 4] > 1.5 * found[4, "auto"]


def test_alike_goes_by_what_nodes_do_and_read() -> None:
    """By structure: a graph whose nodes have other names is sized the same way."""
    dealt = graph("spmm", "i,k,j", {"i": 2, "k": 2})
    names = {node.name: f"n{k}" for k, node in enumerate(dealt.nodes)}
    renamed = [
        replace(node, name=names[node.name], inputs=tuple(Port(names[p.node], p.output) for p in node.inputs))
        for node in dealt.nodes
    ]
    other = replace(dealt, nodes=tuple(renamed))
    groups = {frozenset(Edge(names[e.node], e.input) for e in edges) for edges in lane_copies(dealt).values()}
    assert groups == {frozenset(edges) for edges in lane_copies(other).values()}
    for edge, edges in lane_copies(dealt).items():
        assert edge in edges and len({of_one_lane(e) for e in edges}) == 1
    assert len(lane_copies(dealt)[Edge("X_val/i0/k0", 0)]) == 4
    serial = graph("spmm", "i,k,j", {})
    assert all(edges == (edge,) for edge, edges in lane_copies(serial).items())
