"""Regions that grow by merges of two."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.cut.costs import PartCosts, RegionEstimates, prepare_costs
from fuseflow.cut.merges import merged_units, unit_links, unit_readers
from fuseflow.cut.units import UnitGroup, cheapest_partitions, greedy_partition, operator_units
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.lower.partition import partition_program

STEP = """
tensor A[24, 24] csr
tensor X[24, 20] csr
tensor Y[24, 3] dense
tensor W[20, 8] dense
tensor V[8, 3] dense
tensor rate[] dense
T[i, j]  = sum(k) X[i, k] * W[k, j]
H[i, j]  = sum(k) A[i, k] * T[k, j]
R[i, j]  = relu(H[i, j])
U[i, j]  = sum(k) R[i, k] * V[k, j]
Z[i, j]  = sum(k) A[i, k] * U[k, j]
dZ[i, j] = Z[i, j] - Y[i, j]
dU[i, j] = sum(k) A[k, i] * dZ[k, j]
dV[i, j] = sum(k) R[k, i] * dU[k, j]
dR[i, j] = sum(k) dU[i, k] * V[j, k]
dH[i, j] = where(R[i, j] <= 0, 0, dR[i, j])
dT[i, j] = sum(k) A[k, i] * dH[k, j]
dW[i, j] = sum(k) X[k, i] * dT[k, j]
sW[i, j] = rate[] * dW[i, j]
nW[i, j] = W[i, j] - sW[i, j]
sV[i, j] = rate[] * dV[i, j]
nV[i, j] = V[i, j] - sV[i, j]
output nW, nV
"""
"""A training step of two layers that multiply with an adjacency matrix."""


def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in parse(STEP).inputs}
    for name in "AX":
        arrays[name] *= rng.random(arrays[name].shape) < 0.15
    return arrays


@pytest.fixture(scope="module")
def costs() -> PartCosts:
    source = ff.compile(parse(STEP), tensors=tensors(), schedule=ff.Schedule.fuse("none")).source
    estimates = RegionEstimates(Estimator(), ff.load_machine("rda"))
    costs = prepare_costs(source, ff.Schedule(), estimates)
    assert costs is not None
    return costs


def test_regions_need_not_be_neighbours_and_take_few_cycles(costs: PartCosts) -> None:
    (_, from_ranges, _, _), (_, cycles, units, partition) = costs.grown()
    assert any({"dW", "sW", "nW"} <= set(units.einsums(part)) for part in partition)
    assert from_ranges <= greedy_partition(len(costs.units), costs)[0]
    assert cycles < 1.03 * cheapest_partitions(len(costs.units), costs, 1)[0][0]
    schedules = units.scheduled(costs.schedule, partition), ff.Schedule.fuse("none")
    merged, unfused = (ff.compile(parse(STEP), tensors=tensors(), machine="rda", schedule=schedule) for schedule in schedules)
    assert [set(region.einsums) for region in merged.regions] == [set(units.einsums(part)) for part in partition]
    result = merged.run()
    assert result.cycles < 0.6 * unfused.run().cycles
    a, x, y, w, v, rate = (tensors()[name].astype(float) for name in ("A", "X", "Y", "W", "V", "rate"))
    r = np.maximum(a @ x @ w, 0)
    du = a.T @ (a @ r @ v - y)
    np.testing.assert_allclose(result.outputs["nV"], v - rate * (r.T @ du), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(result.outputs["nW"], w - rate * (x.T @ a.T @ (du @ v.T * (r > 0))), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(30))
def test_regions_can_run_in_their_order_and_cost_no_more_than_units(seed: int) -> None:
    rng, count = random.Random(seed), 9
    readers = [frozenset(r for r in range(unit + 1, count) if rng.random() < 0.3) for unit in range(count)]
    links = [frozenset(o for o in range(count) if o in readers[u] or u in readers[o]) for u in range(count)]

    def cost(group: UnitGroup) -> float:
        own = random.Random(f"{seed} {group}")
        return math.inf if len(group) > 1 and own.random() < 0.1 else own.uniform(0.5, 1.0) * len(group)

    cycles, groups = merged_units([(unit,) for unit in range(count)], readers, links, cost)
    assert sorted(unit for group in groups for unit in group) == list(range(count))
    assert all(group == tuple(sorted(group)) for group in groups)
    assert cycles == pytest.approx(sum(map(cost, groups)))
    assert cycles <= sum(cost((unit,)) for unit in range(count))
    place = {unit: n for n, group in enumerate(groups) for unit in group}
    assert all(place[unit] <= place[reader] for unit in range(count) for reader in readers[unit])


def test_units_are_linked_by_the_tensors_that_they_share_but_not_by_numbers() -> None:
    program = parse("""
tensor A[4, 4] dense
tensor rate[] dense
B[i, j] = A[i, j] * 2
C[i, j] = B[i, j] + 1
D[i, j] = relu(A[i, j])
E[i, j] = rate[] * C[i, j]
F[i, j] = rate[] * D[i, j]
output E, F
""")
    units = operator_units(partition_program(program, ff.Schedule.fuse("none")))
    assert list(map(set, unit_readers(program, units))) == [{1}, {3}, {4}, set(), set()]
    assert list(map(set, unit_links(program, units))) == [{1, 2}, {0, 3}, {0, 4}, {1}, {2}]


def test_what_takes_far_longer_together_is_not_tried_in_larger_regions() -> None:
    asked = list[UnitGroup]()

    def cost(group: UnitGroup) -> float:
        asked.append(group)
        return 1000.0 if {0, 1} <= set(group) else 5.0 if len(group) == 1 else 6.0

    readers, links = (
        [frozenset({1}), frozenset(), frozenset({1}), frozenset()],
        [frozenset({1}), frozenset({0, 2}), frozenset({1})],
    )
    cycles, groups = merged_units([(0,), (1,), (2,)], readers[:3], links, cost)
    assert (cycles, groups) == (11.0, ((0,), (1, 2)))
    assert (0, 1) in asked and (0, 1, 2) not in asked
