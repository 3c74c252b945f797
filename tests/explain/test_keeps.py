"""What `explain fusion` says of results of which a part is kept: where, why, and what that costs."""

from __future__ import annotations

import numpy as np

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.fusion import explain_fusion
from fuseflow.explain.keeps import KeptResult
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.report.fusion_tables import fusion_json
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

TEXT = """
tensor A[8, 8]  dense
tensor X[8, 12] dense
tensor W[12, 2] dense
T[i, j] = sum(k) A[i, k] * X[k, j]
G[i, j] = keep(threshold 0.5) T[i, j]
H[i, j] = keep(2 of 4 over j) relu(G[i, j])
K[i, j] = keep(5 over j) H[i, j]
L[i, j] = keep(9 over i, j) relu(K[i, j])
Y[i, m] = sum(j) L[i, j] * W[j, m]
output Y
"""


def rows(text: str, schedule: Schedule) -> dict[str, KeptResult]:
    report = explain_fusion(load(ModelSpec(parse(text))), schedule, load_machine("ideal"))
    assert [row["name"] for row in fusion_json(report, "", "")["keeps"]] == [row.name for row in report.keeps]
    return {row.name: row for row in report.keeps}


def test_each_kind_has_a_place_a_reason_and_a_cost() -> None:
    kept = rows(TEXT, Schedule.fuse("full"))
    assert {name: (row.region, row.kind, row.held) for name, row in kept.items()} == {
        "G": ("full", "streaming", 0),
        "H": ("full", "blocking", 4),
        "K": ("full", "blocking", 12),
        "L": ("L", "materializing", 96),
    }
    assert {name: row.rule for name, row in kept.items()} == {
        "G": "keep(threshold 0.5)",
        "H": "keep(2 of 4 over j)",
        "K": "keep(5 over j)",
        "L": "keep(9 over i, j)",
    }
    assert "waits for no other" in kept["G"].why
    assert "the last of 4 coordinates of `j`" in kept["H"].why
    assert "a fiber along `j`" in kept["K"].why
    assert "all along `i`, `j`" in kept["L"].why
    assert all(row.read == row.written == 0 for name, row in kept.items() if name != "L")


def test_what_a_region_between_boundaries_moves_is_what_its_run_moves() -> None:
    """The operand is dense, so nothing of it is a guess; of the result, how many entries it has is known."""
    text = (
        TEXT.replace("G[i, j] = keep(threshold 0.5) T[i, j]", "G[i, j] = T[i, j]")
        .replace("keep(5 over j)", "")
        .replace("keep(2 of 4 over j)", "")
    )
    row = rows(text, Schedule.fuse("full"))["L"]
    rng = np.random.default_rng(0)
    tensors = {name: rng.random(shape) for name, shape in (("A", (8, 8)), ("X", (8, 12)), ("W", (12, 2)))}
    run = ff.compile(parse(text), tensors=tensors, schedule=Schedule.fuse("full"), machine="ideal").run()
    (simulation,) = (region.simulation for region in run.regions if region.name == row.region)
    assert row.read == sum(part.bytes for part in simulation.traffic if part.direction == "read") == 8 * 12 * 4
    values = next(part.bytes for part in simulation.traffic if part.direction == "write" and part.kind == "val")
    assert values == 9 * 4 and row.written > values


def test_zeros_that_a_schedule_drops_are_kept_results_too() -> None:
    text = "tensor A[8, 8] csr\nT[i, j] = relu(A[i, j])\nY[i] = sum(j) T[i, j]\noutput Y"
    (row,) = rows(text, Schedule.fuse("full").lower(drop_zeros=["T"])).values()
    assert (row.name, row.rule, row.kind) == ("T", "keep(nonzero)", "streaming")
    assert not rows(text, Schedule.fuse("full"))
