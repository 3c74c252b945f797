"""Graphs of tensors that share their places: one scan, a load for each, values alone are written, and no joins among them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError, TensorError
from fuseflow.samml.nodes import Graph, Load, Reduce, Scan, WriteLevel, WriteValues
from fuseflow.samml.text import parse as parse_graph
from fuseflow.samml.text import show
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine, simulate

RNG = np.random.default_rng(0)
WEIGHT = np.where(RNG.random((6, 5)) < 0.4, 1.0, 0.0)
ADAM = """tensor W[6, 5] csr
tensor m[6, 5] like W
tensor v[6, 5] like W
tensor X[4, 6] dense order (1, 0)
tensor G[4, 5] dense order (1, 0)
tensor g[6, 5] like W
tensor next_m[6, 5] like W
tensor next_v[6, 5] like W
tensor next_W[6, 5] like W
g[i, j] = sum(k) X[k, i] * G[k, j]
next_m[i, j] = 0.9 * m[i, j] + 0.1 * g[i, j]
next_v[i, j] = 0.999 * v[i, j] + 0.001 * (g[i, j] * g[i, j])
next_W[i, j] = W[i, j] - 0.01 * next_m[i, j] / (sqrt(next_v[i, j]) + 1e-8)
output next_m, next_v, next_W
"""


def graph_of(text: str, **arrays: np.ndarray) -> Graph:
    compiled = ff.compile(parse(text), tensors=arrays, schedule=Schedule(fuse_regions=("full",), locate="always"))
    assert compiled.run().check.passed
    [region] = compiled.regions
    return region.graph


def count(graph: Graph) -> Counter[str]:
    return Counter(type(node).__name__ for node in graph.nodes)


def test_an_update_scans_once_and_computes_its_gradient_once() -> None:
    arrays = {"W": WEIGHT, "m": 0 * WEIGHT, "v": 0 * WEIGHT, "X": RNG.random((4, 6)), "G": RNG.random((4, 5))}
    graph = graph_of(ADAM, **arrays)
    nodes = count(graph)
    assert [node.tensor for node in graph.nodes if isinstance(node, Scan)].count("W") == 2
    assert nodes["Reduce"] == 1
    assert nodes["WriteLevel"] == 0
    assert nodes["WriteValues"] == 3


@pytest.mark.parametrize("format", ["csr", "csc", "dcsr", "coo"])
def test_joins_of_tensors_with_the_same_places_vanish(format: str) -> None:
    text = f"tensor W[6, 5] {format}\ntensor V[6, 5] like W\ntensor U[6, 5] like W\ntensor b[5]\ntensor Y[6, 5] like W\n"
    text += "Y[i, j] = 0.9 * V[i, j] + U[i, j] * W[i, j] + b[j]\noutput Y"
    nodes = count(graph_of(text, W=WEIGHT, V=WEIGHT, U=2 * WEIGHT, b=RNG.random(5)))
    assert nodes["Join"] == 0
    assert (nodes["Scan"], nodes["Load"], nodes["WriteLevel"], nodes["WriteValues"]) == (2, 4, 0, 1)


UPDATE = (
    "tensor W[6, 5] csr\ntensor V[6, 5] like W\ntensor s[]\ntensor Y[6, 5] like W\nY[i, j] = W[i, j] - s[] * V[i, j]\noutput Y"
)


def test_values_of_the_same_places_need_no_coordinates() -> None:
    graph = graph_of(UPDATE, W=WEIGHT, V=2 * WEIGHT, s=np.array(0.5))
    entries = np.count_nonzero(WEIGHT)
    assert {t.name: (t.shape, t.like) for t in graph.tensors} == {**dict.fromkeys("VWY", ((entries,), "W")), "s": ((), "")}
    assert [(node.tensor, node.level) for node in graph.nodes if isinstance(node, Scan)] == [("W", 0)]
    assert parse_graph(show(graph)) == graph


def test_coordinates_that_are_asked_for_are_scanned() -> None:
    """Without data nobody knows how many entries there are, and an order or lanes of a loop say that it is there."""
    tensors = {"W": WEIGHT, "V": 2 * WEIGHT, "s": np.array(0.5)}
    schedules = [Schedule(orders=(("Y", ("i", "j")),)), Schedule(parallel=(("j", 2),))]
    for compiled in (ff.compile(parse(UPDATE)), *(ff.compile(parse(UPDATE), tensors=tensors, schedule=s) for s in schedules)):
        assert compiled.regions[0].graph.declared["W"].shape == (6, 5)


def test_another_number_of_entries_is_refused() -> None:
    graph = graph_of(UPDATE, W=WEIGHT, V=2 * WEIGHT, s=np.array(0.5))
    memory = ff.compile(parse(UPDATE), tensors={"W": np.eye(6, 5), "V": np.eye(6, 5), "s": np.array(0.5)}).memory()
    with pytest.raises(TensorError, match=r"graph `full` is for \d+ entries of `V`, and it stores 5"):
        simulate(graph, memory, load_machine("ideal"))


def test_a_dense_operand_is_computed_at_the_places_alone() -> None:
    text = "tensor W[6, 5] csr\ntensor X[4, 6] dense\ntensor G[4, 5] dense\ntensor g[6, 5] like W\n"
    graph = graph_of(text + "g[i, j] = sum(k) X[k, i] * G[k, j]\noutput g", W=WEIGHT, X=RNG.random((4, 6)), G=RNG.random((4, 5)))
    assert not any(isinstance(node, WriteLevel) for node in graph.nodes)
    assert not any(isinstance(node, Load) and node.tensor == "W" for node in graph.nodes)
    assert [type(node) for node in graph.nodes if isinstance(node, Reduce | WriteValues)] == [Reduce, WriteValues]


def test_beside_another_pattern_it_is_absent_elsewhere() -> None:
    """A fused intermediate is 0 where it has no place, whatever its body is there."""
    other = np.where(RNG.random((6, 5)) < 0.5, 2.0, 0.0)
    text = "tensor W[6, 5] csr\ntensor A[6, 5] csr\ntensor b[5]\ntensor T[6, 5] like W\nT[i, j] = b[j] + 1\n"
    graph_of(text + "Y[i, j] = A[i, j] + T[i, j]\noutput Y", W=WEIGHT, A=other, b=RNG.random(5))


def test_zeros_of_a_result_with_shared_places_are_not_dropped() -> None:
    text = "tensor W[6, 5] csr\ntensor Y[6, 5] like W\nY[i, j] = W[i, j] * 2\noutput Y"
    with pytest.raises(FusionError, match="zeros of `Y` cannot be dropped: it has the places of `W`"):
        ff.compile(parse(text), tensors={"W": WEIGHT}, schedule=Schedule(drop_zeros=("Y",)))


def test_every_stage_is_shown() -> None:
    """A region shows what it computes at places as a choice: the places of a tensor are a tensor of ones."""
    text = "tensor W[6, 5] csr\ntensor A[6, 5] csr\ntensor Y[6, 5] like W\nY[i, j] = A[i, j] * 2\noutput Y"
    compiled = ff.compile(parse(text), tensors={"W": WEIGHT, "A": WEIGHT}, schedule=Schedule.fuse("full"))
    assert "Y[i, j] = where(W.places[i, j], A[i, j] * 2, 0)" in str(compiled.emit("fused"))
    for stage in ("einsum", "order", "table", "samml", "mlir", "proto", "proto-text", "dot"):
        assert compiled.emit(stage)


@pytest.mark.parametrize("fuse", ["best", "layerwise", "none", "full"])
def test_every_cut_has_the_places(fuse: str) -> None:
    arrays = {"W": WEIGHT, "m": 0 * WEIGHT, "v": 0 * WEIGHT, "X": RNG.random((4, 6)), "G": RNG.random((4, 5))}
    assert ff.compile(parse(ADAM), tensors=arrays, schedule=Schedule.fuse(fuse)).run().check.passed
