"""Expected cycles of changes are near to measured ones, and corrected by the error of the estimate of the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.cycles import explain_cycles, reschedule, scaled_cycles, schedule_candidates
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

PROGRAM = """
tensor A[60, 60] csr
tensor X[60, 8]
T[k, j] = sum(l) A[k, l] * X[l, j]
Y[i, j] = sum(k) A[i, k] * T[k, j]
output Y
"""


def twice(machine: str) -> Compiled:
    A = sparse.random_array((60, 60), density=0.1, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    X = np.ones((60, 8), np.float32)
    return ff.compile(parse(PROGRAM), tensors={"A": A, "X": X}, schedule=Schedule.fuse("none"), machine=machine)


def test_what_the_estimate_of_a_region_is_off_by_is_taken_to_stay():
    result = twice("ideal").run(check=False, dedup=False)
    now = {region.einsums: region.cycles / 2 for region in result.regions}
    (first, second) = now
    assert scaled_cycles(result, now, now) == result.cycles
    assert scaled_cycles(result, now, {**now, second: 2 * now[second]}) == result.cycles + result.regions[1].cycles
    assert scaled_cycles(result, now, {("another",): sum(now.values())}) == result.cycles
    assert scaled_cycles(result, {**now, first: now[first] / 5}, {**now, first: now[first] / 5}) == result.cycles


@pytest.mark.parametrize("machine", ["ideal", "rda"])
def test_changes_take_what_they_were_expected_to(machine: str):
    compiled = twice(machine)
    report = explain_cycles(compiled)
    assert any(not change.measured for change in report.changes)
    for change in report.changes:
        changed = replace(reschedule(compiled, change.schedule), machine=change.machine)
        assert change.cycles == pytest.approx(changed.run(check=False).cycles, rel=0.25)


def test_what_is_proposed_first_was_run():
    """The estimate of lanes may miss what one writer behind all of them takes, so that the best change is one that ran."""
    program = parse("tensor A[24, 24] csr\ntensor B[24, 8] dense\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y")
    tensors = {"A": np.eye(24, dtype="f") + np.eye(24, k=3, dtype="f"), "B": np.ones((24, 8), "f")}
    compiled = ff.compile(program, tensors=tensors, machine="ideal")
    report = explain_cycles(compiled)
    best = report.changes[0]
    assert best.cycles < report.result.cycles and best.measured
    assert reschedule(compiled, best.schedule).run(check=False).cycles == best.cycles
    lanes = reschedule(compiled, compiled.schedule.par(i=4))
    assert "--writers lanes" in [flags for flags, _ in schedule_candidates(lanes, lanes.regions[0])]
