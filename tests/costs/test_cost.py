"""The estimated cost against executed graphs: it is exact where patterns are regular, and near elsewhere."""

from __future__ import annotations

import numpy as np
import programs
import pytest

from fuseflow.costs import TensorStatistics, assume_statistics, estimate_graph, measure_statistics
from fuseflow.einsum.parse import parse
from fuseflow.lower.program import lower
from fuseflow.samml.text import parse as graph_of
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import Format, pack


@pytest.mark.parametrize("format", ["csr", "coo", "csc", "dcsr", "dense"])
def test_measured_fanouts_multiply_to_the_stored_entries(format):
    array = np.array([[1, 0, 2], [0, 0, 0], [3, 4, 5]])
    stats = measure_statistics(pack(array, Format.parse(format, 2)))
    assert stats.stored == pytest.approx(9 if format == "dense" else 5)
    assert stats.sizes == (3, 3)


def test_nothing_stored():
    assert measure_statistics(pack(np.zeros((0, 3)), Format.parse("csf", 2))).fanouts == (0.0, 0.0)


def test_assumed_statistics_fill_dense_levels():
    declared = programs.program("layer").declared
    assert assume_statistics(declared["W"]) == TensorStatistics((3, 5), (3.0, 5.0))
    assert assume_statistics(declared["A"]).fanouts == (4.0, pytest.approx(0.4))


def run(text: str, order: str, arrays: dict[str, np.ndarray]):
    """Return the estimate and the simulation of a program of one region."""
    program = parse(text)
    tensors = {t.name: pack(arrays[t.name], t.format or Format.dense(len(t.shape))) for t in program.inputs}
    _, (region,) = lower(program, Schedule.order("Y", order), tensors)
    return region.estimate, simulate(region.graph, tensors, load_machine("ideal"))


SPMM = "tensor A[{n}, {n}] csr f64\ntensor X[{n}, {m}] f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y"


@pytest.mark.parametrize("order", ["i,k,j", "i,j,k", "j,i,k"])
def test_exact_work_on_a_regular_pattern(order):
    n, m = 8, 4
    band = sum(np.eye(n, k=k) + np.eye(n, k=k - n) for k in range(3))
    cost, simulation = run(SPMM.format(n=n, m=m), order, {"A": band, "X": np.ones((n, m))})
    assert cost.flops == simulation.flops == 2 * 3 * n * m
    assert cost.bytes == sum(t.bytes for t in simulation.traffic)
    assert cost.cycles <= simulation.cycles <= 1.25 * cost.cycles
    assert cost.firings == pytest.approx(simulation.firings, rel=0.1)


def test_near_on_a_random_pattern():
    rng = np.random.default_rng(0)
    a = (rng.random((60, 60)) < 0.1).astype(float)
    cost, simulation = run(SPMM.format(n=60, m=8), "i,k,j", {"A": a, "X": np.ones((60, 8))})
    assert cost.cycles == pytest.approx(simulation.cycles, rel=0.1)


def test_an_accumulator_merges_overlapping_rows():
    """100 nonzeros in each of 10 merged fibers of a dimension of 100: no more than 100 coordinates come out."""
    graph = programs.graph("axw", "i,k,f,h")
    dense = {"A": TensorStatistics((4, 4), (4, 4)), "X": TensorStatistics((4, 3), (4, 3)), "W": TensorStatistics((3, 5), (3, 5))}
    _, written = estimate_graph(graph, dense)
    assert written["Y"].fanouts == (4, 5)


def test_a_left_join_keeps_the_coordinates_of_its_first_side():
    p = parse("tensor A[4, 6] csf fill -inf\ntensor B[4, 6] csf\nY[i, j] = A[i, j] - B[i, j]\noutput Y")
    _, (region,) = lower(p, Schedule.fuse("full"), {})
    _, written = estimate_graph(region.graph, {"A": TensorStatistics((4, 6), (2, 3)), "B": TensorStatistics((4, 6), (3, 5))})
    assert written["Y"].fanouts == (2, 3)


def test_rank_prefers_less_work_between_equal_bounds():
    few = estimate_graph(programs.graph("layer", "i,k,l,j"), stats())[0]
    many = estimate_graph(programs.graph("layer", "j,i,k,l"), stats())[0]
    assert few.rank < many.rank


def stats() -> dict[str, TensorStatistics]:
    return {name: assume_statistics(t) for name, t in programs.program("layer").declared.items()}


PERMUTE = """
graph copy
tensor A[{i}, {j}, {k}]  csf f64
tensor P[{k}, {i}, {j}]  csf f64
output P
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_k = scan(A_j.ref) A.2
A_v = load(A_k.ref) A
turned = permute(A_i.crd, A_j.crd, A_k.crd, A_v) order=2,0,1
P_k = write(turned.crd0) P.0
P_i = write(turned.crd1) P.1
P_j = write(turned.crd2) P.2
P_v = write(turned.val) P.vals
"""


@pytest.mark.parametrize("density", [0.0, 0.05, 0.2, 1.0])
def test_levels_of_a_permuted_copy(density):
    shape = (12, 20, 15)
    graph = graph_of(PERMUTE.format(i=12, j=20, k=15))
    array = (np.random.default_rng(1).random(shape) < density).astype(float)
    tensors = {"A": pack(array, graph.declared["A"].format)}
    cost, results = estimate_graph(graph, {"A": measure_statistics(tensors["A"])})
    simulation = simulate(graph, tensors, load_machine("ideal"))
    measured = measure_statistics(simulation.outputs["P"])
    assert results["P"].sizes == measured.sizes == (15, 12, 20)
    assert results["P"].stored == pytest.approx(measured.stored)
    assert results["P"].fanouts == pytest.approx(measured.fanouts, rel=0.1)
    assert cost.firings == pytest.approx(simulation.firings, rel=0.25, abs=10)
