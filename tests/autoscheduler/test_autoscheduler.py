"""What `auto` chooses, what it says of it, and what it refuses."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.autoscheduler import autoscheduler
from fuseflow.autoscheduler.autoscheduler import choose_schedule
from fuseflow.autoscheduler.simulation_cache import SimulationCache
from fuseflow.compiler import compile_source
from fuseflow.cut.costs import PartCosts, RegionEstimates
from fuseflow.cut.units import operator_units, partition_at, product_units
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.lower.partition import partition_program
from fuseflow.samml.nodes import Drop
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

MODELS = Path(__file__).parents[2] / "models"
PAPER = MODELS / "paper"
NONE, AUTO = Schedule.fuse("none"), Schedule.fuse("auto")
IDEAL = load_machine("ideal")


@pytest.fixture(scope="module")
def gcn() -> Source:
    return load(ModelSpec(PAPER / "gcn.py", options={"small": "true"}))


def costs(source: Source, level: str = "operators") -> PartCosts:
    partitioned = partition_program(source.program, NONE)
    found = PartCosts.of(partitioned, NONE, source.tensors, RegionEstimates(Estimator(), IDEAL))
    if level == "products":
        found.ranges.units = product_units(partitioned, found.units)
    return found


def test_it_is_near_the_best_of_all_partitions(gcn: Source) -> None:
    choice, ran = choose_schedule(gcn, AUTO, IDEAL), SimulationCache()
    units = operator_units(partition_program(gcn.program, NONE))
    cycles = []
    for cut in ((), (2,), (3,), (4,), (4, 7), *combinations((1, 3, 4), 2), tuple(range(1, 8))):
        program = compile_source(gcn, units.scheduled(NONE, partition_at(cut, len(units))), IDEAL)
        cycles.append(program.run(check=False, execute=ran).cycles)
    assert choice.run().cycles <= 1.1 * min(cycles)
    assert choice.cut == "operators" and choice.units == 8


def test_the_default_is_among_the_candidates_where_operators_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoscheduler, "MAX_EINSUMS", 1)
    source = load(ModelSpec(MODELS / "gcn.py", options={"small": "true"}))
    choice, default = choose_schedule(source, AUTO, IDEAL), compile_source(source, Schedule(), IDEAL)
    assert choice.run().cycles == default.run().cycles
    assert [trial.name for trial in choice.partitions if trial.chosen] == ["greedy"]


def test_costs_add_up_to_the_estimate_of_the_whole(gcn: Source) -> None:
    part_costs = costs(gcn)
    for cut in ((), (3,), (2, 4, 7)):
        parts = partition_at(cut, 8)
        whole = compile_source(gcn, part_costs.units.scheduled(NONE, parts), IDEAL).estimate().cycles
        assert sum(map(part_costs, parts)) == pytest.approx(whole, rel=0.01)


def test_decoders_that_are_alike_are_estimated_once() -> None:
    part_costs = costs(load(ModelSpec(PAPER / "gpt.py", options={"small": "true", "decoders": "2"})), "products")
    first, second = (6, 8), (15, 17)
    assert part_costs(first) == part_costs(second)
    assert part_costs.estimated == 1


def test_what_is_simulated_decides(gcn: Source) -> None:
    choice = choose_schedule(gcn, AUTO, IDEAL, top=2)
    simulated = [t for t in choice.partitions if t.cycles is not None]
    assert {"layerwise", "full", "none"} <= {t.name for t in simulated} and len(simulated) <= 5
    (chosen,) = (t for t in choice.partitions if t.chosen)
    assert chosen.cycles == min(t.cycles for t in simulated if t.cycles is not None)
    assert [t.estimate for t in choice.partitions] == sorted(t.estimate for t in choice.partitions if t.estimate is not None)


def test_each_candidate_is_simulated_as_its_own_schedule(gcn: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a region is too large to be estimated, one candidate has it whole, and another divided. Both were called `full`."""
    monkeypatch.setattr("fuseflow.cut.costs.LARGEST_REGION", 6)
    choice = choose_schedule(gcn, Schedule.fuse("auto"), IDEAL, top=9)
    assert {"full", "full, divided"} <= {t.name for t in choice.partitions}
    for trial in choice.partitions:
        assert trial.cycles == compile_source(gcn, trial.schedule, IDEAL).run(check=False).cycles


def test_a_choice_runs_without_simulating_again_and_as_its_schedule_does(gcn: Source) -> None:
    choice = choose_schedule(gcn, AUTO.lower(order_policy="auto"), IDEAL)
    simulated = choice.cache.simulations
    result = choice.run()
    assert result.check is not None and result.check.passed
    assert choice.cache.simulations == simulated
    recompiled = compile_source(gcn, Schedule.from_yaml(choice.schedule.to_yaml()), IDEAL).run()
    assert recompiled.cycles == result.cycles


def test_orders_are_never_worse_than_those_that_rank_best(gcn: Source) -> None:
    schedule = Schedule.fuse("layerwise")
    choice = choose_schedule(gcn, schedule.lower(order_policy="auto"), IDEAL, top=2)
    assert choice.run().cycles <= compile_source(gcn, schedule, IDEAL).run(check=False).cycles
    for region in ("layer1", "layer2"):
        rows = [t for t in choice.orders if t.region == region]
        assert sum(t.cycles is not None for t in rows) == 2
        assert [t.order for t in rows if t.chosen] == [dict(choice.schedule.orders)[region]]


def test_an_order_that_the_user_gives_stays(gcn: Source) -> None:
    choice = choose_schedule(gcn, Schedule.fuse("layerwise").order("layer1", "i,f,k,h").lower(order_policy="auto"), IDEAL, top=0)
    assert dict(choice.schedule.orders)["layer1"] == ("i", "f", "k", "h")
    assert {t.region for t in choice.orders} == {"layer2"}


def test_it_chooses_by_estimate_alone(gcn: Source) -> None:
    choice = choose_schedule(gcn, AUTO.lower(order_policy="auto"), IDEAL, top=0)
    assert choice.cache.simulations == 0
    assert all(t.cycles is None for t in (*choice.partitions, *choice.orders))


def test_without_data_it_assumes_statistics() -> None:
    source = load(
        ModelSpec(
            parse(
                "tensor A[40, 40] csr\ntensor B[40, 8] dense\nT[i, j] = sum(k) A[i, k] * B[k, j]\nY[i, j] = relu(T[i, j])\noutput Y"
            )
        )
    )
    choice = choose_schedule(source, AUTO, IDEAL, top=0)
    assert choice.without_data == ("A", "B")
    with pytest.raises(FuseFlowError, match="input `A` of `program` has no data"):
        choose_schedule(source, AUTO, IDEAL)


def test_zeros_are_dropped_where_they_are_written_and_inside_a_region(gcn: Source) -> None:
    choice = choose_schedule(gcn, AUTO.format("H", "csr").lower(drop_zeros=["H"]), IDEAL)
    written = any("H" in [r.name for r in region.fused.results] for region in choice.compiled.regions)
    dropped = any(
        isinstance(node, Drop) and node.name == "drop_H" for region in choice.compiled.regions for node in region.graph.nodes
    )
    assert written or dropped
    result = choice.run()
    assert result.check is not None and result.check.passed
    assert not any("zeros of" in t.refused for t in choice.partitions)


def test_a_program_without_a_legal_partition_says_why() -> None:
    source = load(ModelSpec(parse("tensor A[4, 4] dcsr\nY[i, j] = A[i, j] + A[j, i]\noutput Y")))
    with pytest.raises(FuseFlowError, match="has no legal order"):
        choose_schedule(source, AUTO.lower(copies=False), IDEAL, top=0)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Schedule.fuse("full"), "leaves nothing to choose"),
        (AUTO.region("front", "T9"), "no module or Einsum `T9` for region `front`"),
        (AUTO.order("T9", "i,f,k"), "order of `T9`"),
        (AUTO.par(**{"T9.i": 2}), "`T9`"),
        (AUTO.split("T9.i", 2), "split of `T9.i`"),
        (AUTO.lower(intermediates="dense"), "real intermediates"),
        (AUTO.par(zz=2), "no region has this index"),
        (AUTO.format("Q", "csr"), "there is no such tensor"),
    ],
)
def test_it_refuses(gcn: Source, schedule: Schedule, message: str) -> None:
    with pytest.raises(FuseFlowError, match=message):
        choose_schedule(gcn, schedule, IDEAL)


@pytest.mark.parametrize(
    ("schedule", "name", "einsums"),
    [
        (AUTO.region("front", "T0", "T1"), "front", {"T0", "T1"}),
        (AUTO.order("T0", "i,f,k"), "T0", {"T0"}),
        (AUTO.par(**{"T1.i": 2}), "T1", {"T1"}),
        (AUTO.depth("T2", 64), "T2", {"T2"}),
    ],
)
def test_regions_that_a_schedule_names_stay(gcn: Source, schedule: Schedule, name: str, einsums: set[str]) -> None:
    choice = choose_schedule(gcn, schedule, IDEAL, top=1)
    (region,) = (region for region in choice.compiled.regions if region.name == name)
    assert set(region.einsums) == einsums
    assert len(choice.compiled.regions) < len(compile_source(gcn, NONE, IDEAL).regions)
    result = choice.run()
    assert result.check is not None and result.check.passed


def test_a_schedule_that_is_open_cannot_be_compiled() -> None:
    for schedule in (AUTO, Schedule().lower(order_policy="auto")):
        with pytest.raises(FuseFlowError, match="auto` is still to be chosen") as caught:
            ff.compile(PAPER / "gcn.py", schedule=schedule)
        assert "autoschedule" in caught.value.hint


def test_it_is_the_same_every_time(gcn: Source) -> None:
    schedule = AUTO.lower(order_policy="auto")
    assert choose_schedule(gcn, schedule, IDEAL, top=1).to_json() == choose_schedule(gcn, schedule, IDEAL, top=1).to_json()


SCALARS = {
    "beside a sparse tensor": "T = sum(i, j) W[i, j]\nY[i, j] = B[i, j] + T\noutput Y\n",
    "as a factor": "T = sum(i, j) W[i, j]\nY[i, j] = B[i, j] * T\noutput Y\n",
    "of a scalar": "S = max(i, j) B[i, j]\nT = sqrt(S)\nY[i, j] = W[i, j] / T\noutput Y\n",
    "read twice": "T = sum(i, j) W[i, j]\nY[i, j] = B[i, j] + T\nZ[i] = sum(j) W[i, j] * T\noutput Y, Z\n",
    "as an output too": "T = sum(i, j) W[i, j]\nY[i, j] = B[i, j] + T\noutput T, Y\n",
    "as the last result": "Y[i, j] = B[i, j] * W[i, j]\nT = sum(i, j) Y[i, j]\noutput T\n",
}


@pytest.mark.parametrize("statements", SCALARS.values(), ids=SCALARS)
@pytest.mark.parametrize("format", ["csr", "dense"])
def test_scalar_intermediates(statements: str, format: str) -> None:
    """A scalar has no levels, and is in memory like any other intermediate."""
    program = parse(f"tensor W[4, 5] csr\ntensor B[4, 5] {format}\n{statements}")
    rng = np.random.default_rng(0)
    tensors = {name: (rng.integers(1, 5, (4, 5)) * (rng.random((4, 5)) < 0.5)).astype(np.float32) for name in "WB"}
    choice = ff.autoschedule(program, tensors=tensors)
    outcome = choice.run().check
    assert outcome is not None and outcome.passed


def test_an_output_that_only_names_a_result_again_is_computed_where_that_is() -> None:
    text = """
    tensor A[3, 2]
    tensor Y[6] dense
    T[i, j] = exp(A[i, j])
    U[j, i] = T[i, j] + 1
    Y[i*2 + j] = U[j, i]
    output Y
    """
    program = parse(text)
    source = Source("example", program, load(ModelSpec(program, tensors={"A": np.ones((3, 2))})).tensors)
    choice = choose_schedule(source, AUTO, IDEAL)
    check = choice.run().check
    assert check is not None and check.passed
    assert choice.compiled.regions[-1].graph.outputs == ("Y.split",)
