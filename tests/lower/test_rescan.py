"""Whether outermost levels are scanned again in every loop: what a schedule says, what a machine needs, and what both cost."""

from __future__ import annotations

import numpy as np
import pytest
from estimate_exact import check_estimate

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import ScheduleError
from fuseflow.run.compiled import Compiled
from fuseflow.samml.nodes import Locate, Scan
from fuseflow.samml.text import show

TEXT = """
program two
tensor A[40, 40] csf
tensor X[40, 6] dense
tensor W[6, 4] csf
T[i, f] = sum(k) A[i, k] * X[k, f]
H[i, h] = sum(f) T[i, f] * W[f, h]
R[i, h] = max(H[i, h] + 1, 0)
Y[n, h] = sum(i) A[n, i] * R[i, h]
output Y
"""
"""Row i of R is looked up for every edge (n, i): in the order n, i, k the rows of A inside of n."""
FULL = ff.Schedule.fuse("full").lower(order_policy="first")


def compiled(schedule: ff.Schedule, machine: str) -> Compiled:
    rng = np.random.default_rng(3)
    adjacency = np.where(rng.random((40, 40)) < 0.06, 1.0, 0.0)
    adjacency[::5] = 0
    weights = np.where(rng.random((6, 4)) < 0.5, 2.0, 0.0)
    tensors = {"A": adjacency, "X": rng.integers(1, 5, (40, 6)) * 1.0, "W": weights}
    return ff.compile(parse(TEXT), tensors=tensors, schedule=schedule, machine=machine)


def rescanned(compiled: Compiled) -> set[str]:
    """The tensors whose outermost level is compressed and scanned inside of a loop."""
    (region,) = compiled.regions
    types, declared = region.graph.types(), region.graph.declared
    scans = (node for node in region.graph.nodes if isinstance(node, Scan) and node.level == 0)
    return {node.tensor for node in scans if types[node.inputs[0]].depth and declared[node.tensor].format.levels[0].kept}


@pytest.mark.parametrize("machine", ["ideal", "rda"])
@pytest.mark.parametrize("rescan", ["auto", "never", "every"])
def test_a_level_that_is_kept_is_read_once(rescan: str, machine: str) -> None:
    model = compiled(FULL.lower(rescan=rescan), machine)
    (region,) = model.regions
    assert rescanned(model) == ({"A", "W"} if rescan == "every" else set())
    kept = {node.tensor for node in region.graph.nodes if isinstance(node, Locate) and node.keeps(region.graph.declared)}
    assert kept == (set() if rescan == "every" else {"A", "W"})
    result = model.run()
    assert result.check.passed
    check_estimate(model, result)


def test_what_is_kept_is_not_read_for_every_row() -> None:
    kept, every = (compiled(FULL.lower(rescan=r), "ideal").run() for r in ("never", "every"))
    assert kept.flops == every.flops
    assert abs(kept.outputs["Y"] - every.outputs["Y"]).max() == 0
    words = [sum(t.words for region in result.regions for t in region.simulation.traffic) for result in (kept, every)]
    assert words[0] < 0.9 * words[1]
    assert kept.cycles < every.cycles


def test_what_is_expected_to_be_computed_does_not_depend_on_what_is_kept() -> None:
    kept, every = (compiled(FULL.lower(rescan=r), "rda").regions[0].estimate for r in ("never", "every"))
    assert kept.flops == pytest.approx(every.flops, rel=1e-6)
    assert kept.bytes < every.bytes


def test_public_primitives_scan_again() -> None:
    assert rescanned(compiled(FULL, "comal")) == {"A", "W"}
    assert rescanned(compiled(FULL.lower(primitives="public"), "rda")) == {"A", "W"}
    assert rescanned(compiled(FULL.lower(primitives="own"), "comal")) == {"A", "W"}
    assert not rescanned(compiled(FULL.lower(primitives="own", rescan="never"), "comal"))
    for schedule, machine in ((FULL.lower(rescan="never"), "comal"), (FULL.lower(rescan="never", primitives="public"), "rda")):
        with pytest.raises(ScheduleError, match="rescan: never"):
            compiled(schedule, machine)


def test_lanes_keep_a_level_each() -> None:
    model = compiled(FULL.lower(rescan="never").par(i=3), "rda")
    (region,) = model.regions
    assert len([node for node in region.graph.nodes if isinstance(node, Locate) and node.keeps(region.graph.declared)]) > 3
    result = model.run()
    assert result.check.passed
    check_estimate(model, result)


def test_every_is_the_graph_of_public_primitives_before_they_are_made() -> None:
    """One convention: what is scanned in every loop does not depend on who asked for it."""
    (every,), (own,) = compiled(FULL.lower(rescan="every"), "rda").regions, compiled(FULL, "comal").regions
    assert show(every.graph) == show(own.own)
