"""Every region of the four families in public primitives: the graphs have no warning, are read back as they are, and give what PyTorch
gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sources

import fuseflow as ff
from fuseflow.autoscheduler import orders
from fuseflow.autoscheduler.autoscheduler import choose_schedule
from fuseflow.einsum.parse import parse
from fuseflow.errors import ScheduleError
from fuseflow.explain import fusion
from fuseflow.explain.public_form_cost import explain_primitives
from fuseflow.fusion.fusion_search import FusionProblem
from fuseflow.lower import region_fusion
from fuseflow.lower.order_costs import OrderCosts
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.primitive_choice import lower_for, with_primitives
from fuseflow.lower.program import lower_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.state import LoweringState, RegionRequest, initial_state
from fuseflow.run.artifact_reader import load_saved
from fuseflow.run.compiled import Compiled
from fuseflow.samml import protobuf
from fuseflow.samml.auxiliary_tensors import is_auxiliary
from fuseflow.samml.nodes import Align, Join, Range
from fuseflow.tensors import Tensor

SCHEDULES = Path(__file__).parents[2] / "schedules"
SMALL = {"small": "true"}
FAMILIES = {
    "gcn": ("gcn.py", SMALL, "random:nodes=30,degree=3,features=12,density=0.2,seed=5"),
    "graphsage": ("graphsage.py", SMALL, "random:nodes=30,degree=3,features=12,density=0.2,seed=5"),
    "sae": ("sae.py", SMALL, None),
    "gpt": ("gpt_bigbird.py", {**SMALL, "part": "decoder"}, None),
}
EXCEPTIONS = {
    ("gpt", "unfused"): {
        # What it reads is stored with the heads outermost, its result with them reduced, and the weight is a view that has them between.
        "h.0.attn.out.matmul": "other readers locate by coordinates as they are scanned, not by repeated ones",
    }
}
"""The regions that have no public form, by family and granularity, each with one of the reasons."""
POINTS = [(family, fuse) for family in FAMILIES for fuse in ("unfused", "partial", "full")]


def compiled(family: str, fuse: str, primitives: str = "public") -> Compiled:
    file, options, data = FAMILIES[family]
    schedule = ff.Schedule.load(SCHEDULES / f"{family}_{fuse}.yaml").lower(primitives=primitives)
    return sources.compiled(file, schedule, "comal", options, data)


@pytest.mark.parametrize(("family", "fuse"), POINTS)
def test_every_region_of_the_families_is_public(family: str, fuse: str) -> None:
    program = compiled(family, fuse)
    exceptions = EXCEPTIONS.get((family, fuse), {})
    assert {region.name for region in program.regions if region.private} == set(exceptions)
    for region in program.regions:
        if region.name in exceptions:
            assert any(exceptions[region.name] in reason for reason in region.private)
            assert any(f"region `{region.name}` has no form in public primitives" in notice for notice in program.notices)
            continue
        assert not protobuf.compatibility(region.graph)
        assert protobuf.from_proto(protobuf.to_proto(region.graph)) == region.graph
        assert not any(isinstance(node, Range | Align) or getattr(node, "kind", "") == "left" for node in region.graph.nodes)
    result = program.run()
    assert result.check is not None and result.check.passed and result.check.reference == "PyTorch"


@pytest.mark.parametrize("family", ["gcn", "graphsage", "sae"])
def test_both_forms_give_equal_values_and_the_cost_is_told(family: str) -> None:
    public, own = (compiled(family, "full", primitives) for primitives in ("public", "own"))
    results = [program.run().tensors for program in (public, own)]
    for name in own.program.outputs:
        assert results[0][name].to_dense() == pytest.approx(results[1][name].to_dense(), rel=1e-5, abs=1e-6)
    assert not explain_primitives(own)
    for cost in explain_primitives(public):
        assert cost.public is not None and cost.public <= 1.1 * cost.own


def test_a_machine_with_the_rules_of_comal_gets_public_primitives() -> None:
    comal, rda = ff.load_machine("comal"), ff.load_machine("rda")
    assert with_primitives(ff.Schedule(), comal).primitives == "public"
    assert with_primitives(ff.Schedule(), rda).primitives == "own"
    assert with_primitives(ff.Schedule().lower(primitives="own"), comal).primitives == "own"
    with pytest.raises(ScheduleError, match=r"`primitives: publc` is none of auto, own, public.*\n.*did you mean `public`"):
        ff.Schedule().lower(primitives="publc")


def test_an_estimate_of_public_primitives_is_exact_and_a_saved_program_has_it_too(tmp_path: Path) -> None:
    path = tmp_path / "p.ein"
    path.write_text("tensor A[4, 5] dcsr f32\ntensor c[5] dense f32\nY[i, j] = A[i, j] + c[j]\noutput Y\n")
    a = np.array([[0, 0, 0, 0, 0], [0, 2, 0, 1, 0], [0, 0, 0, 0, 0], [3, 0, 0, 0, 0]], dtype=np.float32)
    arrays = {"A": a, "c": np.arange(5, dtype=np.float32)}
    program = ff.compile(path, tensors=arrays, machine="comal")
    result, estimate = program.run(), program.estimate()
    assert result.check is not None and result.check.passed and not program.notices
    assert any(is_auxiliary(t) for region in program.regions for t in region.graph.tensors)
    assert estimate.exact and estimate.flops == result.flops
    assert estimate.stats["bytes"] == result.stats["bytes"]
    program.save(tmp_path / "saved", result)
    saved = load_saved(tmp_path / "saved", arrays)
    assert [region.graph for region in saved.regions] == [region.graph for region in program.regions]


def test_joins_are_not_left() -> None:
    graphs = [region.graph for region in compiled("graphsage", "full").regions]
    assert {node.kind for graph in graphs for node in graph.nodes if isinstance(node, Join)} <= {"union", "intersect"}


TRANSPOSED_WEIGHT = """
tensor X[6, 5]
tensor V[5, 7]
tensor W[4, 7]
F[i, g] = sum(k) X[i, k] * V[k, g]
Y[i, j] = sum(g) relu(F[i, g]) * W[j, g]
output Y
"""
ORDERED = ff.Schedule.fuse("none").order("Y", "g,i,j")
"""The loop over `g` runs outside of that over `j`, so that a public locate needs a weight that is stored as they run."""


def transposed_weight(schedule: ff.Schedule) -> Compiled:
    rng = np.random.default_rng(0)
    shapes = {"X": (6, 5), "V": (5, 7), "W": (4, 7)}
    tensors = {name: rng.random(shape, dtype=np.float32) for name, shape in shapes.items()}
    return ff.compile(parse(TRANSPOSED_WEIGHT), tensors=tensors, schedule=schedule, machine="comal")


def test_explanations_are_of_the_graphs_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight that is stored in another order for the sake of a public form is so in `explain fusion`, too."""
    explained: list[tuple[CompiledRegion, ...]] = []
    producers = fusion._producers

    def spy(partitioned: PartitionedProgram, compiled: tuple[CompiledRegion, ...], *rest: Any) -> Any:
        explained.append(compiled)
        return producers(partitioned, compiled, *rest)

    monkeypatch.setattr(fusion, "_producers", spy)
    program = transposed_weight(ORDERED)
    assert str(program.program.declared["W"].format).endswith("order (1, 0)")
    fusion.explain_fusion(program.source, ORDERED, program.machine)
    assert [region.graph for region in explained[0]] == [region.graph for region in program.regions]


def test_orders_are_chosen_for_the_formats_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    formats: list[str] = []

    def spy(partitioned: PartitionedProgram, tensors: Mapping[str, Tensor]) -> LoweringState:
        formats.append(str(partitioned.program.declared["W"].format))
        return initial_state(partitioned, tensors)

    monkeypatch.setattr(orders, "initial_state", spy)
    program = transposed_weight(ORDERED)
    choice = choose_schedule(program.source, replace(ORDERED, order_policy="auto"), program.machine, top=0)
    assert formats == [str(program.program.declared["W"].format)]
    assert choice.schedule.primitives == "auto" and not any(region.private for region in choice.compiled.regions)


def test_only_regions_whose_tensors_are_stored_anew_are_fused_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of the last region are reordered once, and queries, keys and values of the one before once more. The graphs are those
    of a program that is lowered once, with all formats as they were found."""
    searched: list[str] = []

    fusion_problem = region_fusion.fusion_problem

    def spy(state: LoweringState, request: RegionRequest, costs: OrderCosts) -> FusionProblem:
        searched.append(request.name)
        return fusion_problem(state, request, costs)

    monkeypatch.setattr(region_fusion, "fusion_problem", spy)
    program = compiled("gpt", "partial")
    times = Counter(searched)
    partitioned, regions = lower_for(program.source.program, program.schedule, program.machine, program.source.tensors)
    assert [region.graph for region in lower_regions(partitioned, program.source.tensors)] == [r.graph for r in regions]
    assert times["h.0-3"] == 2 < times["h.0-2"] == times["h.0"] == 3
