"""Regions that differ in names alone are searched for once, and what is said of each has its own names."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseflow.einsum.parse import parse
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.fusion import fusion_search
from fuseflow.fusion.order_candidates import OrderCandidate
from fuseflow.fusion.order_search import ComparedOrders
from fuseflow.lower import region_fusion
from fuseflow.lower.order_costs import OrderCosts
from fuseflow.lower.program import lower
from fuseflow.lower.region_fusion import renamed_refusals
from fuseflow.lower.state import LoweringState, RegionRequest
from fuseflow.schedule import Schedule

MODELS = Path(__file__).resolve().parents[2] / "models"
LAYERS = """
    tensor A[6, 6] csr
    tensor X[6, 4] dense
    T0[i, j] = sum(k) A[i, k] * X[k, j]
    Y0[i, j] = relu(T0[i, j])
    T1[i, j] = sum(k) A[i, k] * Y0[k, j]
    Y1[i, j] = relu(T1[i, j])
    T2[i, j] = sum(k) A[i, k] * Y1[k, j]
    Y2[i, j] = relu(T2[i, j])
    output Y2
"""


def test_the_last_of_equal_layers_is_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    fusion_problem = region_fusion.fusion_problem

    def recorded(state: LoweringState, request: RegionRequest, costs: OrderCosts) -> fusion_search.FusionProblem:
        searched.append(request.name)
        return fusion_problem(state, request, costs)

    monkeypatch.setattr(region_fusion, "fusion_problem", recorded)
    schedule = Schedule.fuse("b", "c").region("b", "T1", "Y1").region("c", "T2", "Y2").format("Y1", "dense").format("Y2", "dense")
    _, regions = lower(parse(LAYERS), schedule.format("Y0", "dense"), {})
    assert [region.name for region in regions] == ["T0", "Y0", "b", "c"]
    assert searched == ["T0", "Y0", "b"]
    assert regions[2].fused.order == regions[3].fused.order


def test_a_refusal_has_the_names_of_its_own_region() -> None:
    refusal = "order i,d,j of region `a-2` reads a.softmax.max[i, j] and a.soft[d] inside loop d, `a` lacks it"
    compared = ComparedOrders.of([OrderCandidate(("i", "d", "j"), None, refusal)])
    (renamed,) = renamed_refusals(compared, ("a-2", "a.softmax", "a.soft"), ("b", "b.softmax", "other"))
    assert renamed.refusal == "order i,d,j of region `b` reads b.softmax.max[i, j] and other[d] inside loop d, `a` lacks it"


def test_where_producers_run_once_more_merged_views_would_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    source = load(ModelSpec(MODELS / "paper" / "gpt.py", options={"small": True}))
    _, quick = lower(source.program, Schedule.fuse("layerwise"), source.tensors)
    monkeypatch.setattr(fusion_search, "FEW_REPEATS", 0.0)
    _, thorough = lower(source.program, Schedule.fuse("layerwise"), source.tensors)
    assert [(r.graph, r.estimate, *r.fused.compared) for r in quick] == [
        (r.graph, r.estimate, *r.fused.compared) for r in thorough
    ]
