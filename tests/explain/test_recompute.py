"""How often producers are computed, as the fusion table says and as a run shows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.fusion import FusionReport, explain_fusion
from fuseflow.run.compiled import Compiled
from fuseflow.samml.nodes import Port
from fuseflow.schedule import Schedule
from fuseflow.sim import simulate

TWO_LAYERS = """
tensor A[6, 6] {A}
tensor X[6, 5] dense
tensor W[5, 4] dense
tensor V[4, 3] dense
T[i, j] = sum(k) X[i, k] * W[k, j]
H[i, j] = relu(sum(k) A[i, k] * T[k, j])
U[i, j] = sum(k) H[i, k] * V[k, j]
Y[i, j] = sum(k) A[i, k] * U[k, j]
output Y
"""


def values(compiled: Compiled) -> Mapping[tuple[str, str], int]:
    """Return how many values the first output of each node had in a run, by region and node."""
    memory, counts = compiled.inputs(), {}
    for region in compiled.regions:
        run = simulate(region.graph, {n: memory[n] for n in region.graph.inputs}, compiled.machine, record=True)
        memory |= run.outputs
        for port, recording in run.streams.items():
            if port == Port(port.node, 0):
                counts[region.name, port.node] = sum(isinstance(token, int | float) for token in recording.tokens)
    return counts


def compiled(text: str, schedule: Schedule, **arrays: np.ndarray) -> tuple[Compiled, FusionReport]:
    program = ff.compile(parse(text), tensors=arrays, schedule=schedule)
    return program, explain_fusion(program.source, schedule, program.machine)


def ring(size: int, reach: int) -> np.ndarray:
    """Return a graph whose nodes all have 2 * reach neighbours."""
    steps = (np.arange(size)[:, None] - np.arange(size)) % size
    return np.where((steps > 0) & ((steps <= reach) | (steps >= size - reach)), 1.0, 0.0)


@pytest.mark.parametrize(("format", "degree"), [("dense", 6), ("csr", 6), ("csr", 2), ("csr", 4)])
@pytest.mark.parametrize("fuse", ["full", "none"])
def test_uniform_structures_are_exact(format: str, degree: int, fuse: str):
    """Whether dense, or with as many entries in every row, the table's numbers are those of the run, place by place."""
    rng = np.random.default_rng(0)
    a = ring(6, degree // 2) if degree < 6 else np.ones((6, 6))
    schedule = Schedule.fuse(fuse)
    arrays = {"X": rng.random((6, 5)), "W": rng.random((5, 4)), "V": rng.random((4, 3))}
    program, report = compiled(TWO_LAYERS.format(A=format), schedule, A=a, **arrays)
    ran = values(program)
    for row in report.producers:
        for place in row.instances:
            assert place.evaluations == pytest.approx(ran[row.region, place.node]), (row.name, place)


def test_a_layer_is_computed_once_for_every_edge_that_reads_it():
    """H[k] for every (i, k) of A, and T[m] for every (i, k, m): the degree, and its square."""
    arrays = {"X": np.ones((6, 5)), "W": np.ones((5, 4)), "V": np.ones((4, 3))}
    program, report = compiled(TWO_LAYERS.format(A="csr"), Schedule.fuse("full"), A=ring(6, 1), **arrays)
    (region,) = program.regions
    rows = {row.name: row for row in report.producers}
    assert {name: row.times for name, row in rows.items()} == pytest.approx({"T": 4.0, "H": 2.0, "U": 2.0})
    outer = region.fused.order[0]
    assert rows["U"].instances[0].inside == (outer,)
    assert len(rows["T"].instances[0].inside) == 2


@pytest.mark.parametrize(("fuse", "tolerance"), [("layerwise", 0.0), ("full", 0.5)])
def test_gcn_on_the_karate_club(fuse: str, tolerance: float):
    """Times the values of the producer run alone, as simulated, are the values in the fused graph. Two levels of recomputation cost the
    sum of squared degrees, of which the estimate knows the mean alone."""
    schedule, unfused = Schedule.fuse(fuse), Schedule.fuse("none")
    path = "models/gcn.py"
    fused, single = ff.compile(path, schedule=schedule), ff.compile(path, schedule=unfused)
    ran, once = values(fused), values(single)
    alone = {row.name: row for row in explain_fusion(single.source, unfused, single.machine).producers}
    checked = 0
    for row in explain_fusion(fused.source, schedule, fused.machine).producers:
        if row.name not in {r.name for r in single.regions} or row.times is None:
            continue  # a softmax keeps its operators together
        real = sum(ran[row.region, place.node] for place in row.instances)
        expected = row.times * sum(once[row.name, place.node] for place in alone[row.name].instances)
        assert expected == pytest.approx(real, rel=tolerance, abs=1e-6), row.name
        checked += 1
    assert checked >= 6


def test_a_mask_prunes_what_it_samples():
    text = """
        tensor M[4, 4] csr
        tensor Q[4, 3] dense
        tensor K[4, 3] dense
        D[i, j] = sum(k) Q[i, k] * K[j, k]
        Y[i, j] = M[i, j] * D[i, j]
        output Y
    """
    program, report = compiled(text, Schedule.fuse("full"), M=np.eye(4), Q=np.ones((4, 3)), K=np.ones((4, 3)))
    (row,) = report.producers
    assert row.times == pytest.approx(0.25)
    assert values(program)["full", row.instances[0].node] == 4 * 3
    assert row.extra_flops == 0


def test_every_view_is_a_place():
    text = """
        tensor A[4, 3] dense
        T[i, j] = sum(k) A[i, k] * A[j, k]
        Y[i, j] = T[i, j] + exp(T[j, i])
        output Y
    """
    program, report = compiled(text, Schedule.fuse("full"), A=np.ones((4, 3)))
    (row,) = report.producers
    assert {place.view for place in row.instances} == {"T[i, j]", "T[j, i]"} and row.times == pytest.approx(2.0)
    ran = values(program)
    assert [ran["full", place.node] for place in row.instances] == [4 * 4 * 3] * 2
