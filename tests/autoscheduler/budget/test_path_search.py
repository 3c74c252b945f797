"""The cheapest programs under a budget are those of all candidates, and what is said of them holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from budget_spaces import AllCandidates, random_source

from fuseflow.autoscheduler.budget.costs import LoweredCosts
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.lane_models import LaneModel
from fuseflow.autoscheduler.budget.path_search import ALL_LEVERS, BudgetSearch, Variant
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.resources import COMPONENTS
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine
from fuseflow.tensors import Format, pack

RDA, IDEAL = load_machine("rda"), load_machine("ideal")
NONE = Schedule.fuse("none")
ORDERS = 2
WITHOUT_STAGES = ALL_LEVERS.without("stages").without("depths")
"""All candidates have lanes of whole regions and FIFOs of the machine: those of stages are chosen by their work, not compared."""


def searched(source: Source, machine: Machine, base: Schedule = NONE) -> tuple[BudgetSearch, Variant]:
    estimator = Estimator(assume_unknown=True)
    variant = VariantFactory(source, machine, estimator, base, orders=ORDERS)(base)
    assert variant is not None
    return BudgetSearch((variant,), RangeCosts(LoweredCosts(machine, estimator), tried=None)), variant


def random_budget(seed: int) -> Budget:
    rng = np.random.default_rng(seed)
    limits = {"mul": int(rng.integers(1, 9)), "port": int(rng.integers(8, 60))}
    return Budget.of(limits if seed % 3 else {**limits, "fifo": int(rng.integers(8, 64)) * 1024})


def seeds(*fast: int, slow: tuple[int, ...]) -> list[object]:
    """Seeds of programs. Those of the slow ones have most lanes to choose from, and take longest."""
    return [*fast, *(pytest.param(seed, marks=pytest.mark.slow) for seed in slow)]


@pytest.mark.parametrize("seed", seeds(0, 1, 5, 7, slow=(2, 3, 4, 6)))
def test_it_is_the_best_of_all_candidates(seed: int) -> None:
    source, budget = random_source(seed), random_budget(seed)
    search, _ = searched(source, RDA)
    outcome = search.cheapest(budget, 1, WITHOUT_STAGES)
    best = AllCandidates(source, RDA, budget, NONE, ORDERS).best()
    found = outcome.programs[0].cycles if outcome.programs else float("inf")
    assert found == pytest.approx(best, rel=1e-9)
    assert outcome.is_complete
    assert outcome.relaxed <= outcome.bound * (1 + 1e-9)
    assert outcome.bound == pytest.approx(found)


@pytest.mark.slow
def test_it_is_the_best_of_all_candidates_of_many_programs(draws: Callable[[int], range]) -> None:
    for number in draws(200):
        test_it_is_the_best_of_all_candidates(number)


def test_lanes_of_stages_are_looked_at_in_promising_ranges_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """They took more than half of the time of a search, and most ranges stand in none of its best programs."""
    staged, dealt = set[OrderedRange](), set[OrderedRange]()
    with_stages, best = RangeCosts._with_stages, RangeCosts._best
    monkeypatch.setattr(RangeCosts, "_with_stages", lambda self, edge, *a: (staged.add(edge), with_stages(self, edge, *a))[1])
    monkeypatch.setattr(RangeCosts, "_best", lambda self, edge, *a: (dealt.add(edge), best(self, edge, *a))[1])
    search, variant = searched(random_source(1), RDA)
    search.costs.tried = SETTINGS.max_tried
    outcome = search.cheapest(random_budget(1), 1)
    edges = [e for s in variant.graph.states() if s.cut < variant.graph.last for e in variant.graph.edges(s) if e.pieces]
    assert {search.costs.decisions.first(edge) for edge in outcome.programs[0].path.edges if edge.pieces} <= staged <= dealt
    assert len(dealt) < len(edges)


@pytest.mark.parametrize("seed", seeds(0, 1, slow=(2,)))
def test_lanes_by_arithmetic_occupy_what_lanes_that_are_lowered_do(seed: int) -> None:
    search, variant = searched(random_source(100 + seed), RDA)
    costs, checked = LoweredCosts(RDA, variant.graph.figures.estimator), 0
    edges = [e for s in variant.graph.states() if s.cut < variant.graph.last for e in variant.graph.edges(s) if e.pieces]
    for edge in edges[:: max(1, len(edges) // 6)]:
        model = LaneModel.of(edge, costs.lane_costs(edge)).with_pairs(costs.lane_costs(edge), every=True)
        for deal in model.deals(Budget.of({}), 64)[::5]:
            cost = costs(edge, RegionDecision(edge.order, deal.lanes))
            assert cost is not None
            amounts = dict(zip(COMPONENTS, deal.amounts, strict=True))
            held = {"workspace", "buffer"} | (
                {"area"} if amounts["workspace"] else set()
            )  # the area has that of what is held back
            for name, amount in amounts.items():
                if name not in held:
                    assert getattr(cost.resources, name) == amount * (64 if name == "fifo" else 1)
            assert deal.least <= cost.cycles * (1 + 1e-9)
            assert search.costs.relaxed(edge, Budget.of({"mul": max(1, cost.resources.mul)})) <= cost.cycles * (1 + 1e-9)
            checked += 1
    assert checked > 10


@pytest.mark.parametrize(
    ("seed", "buffers"),
    [
        *((seed, False) for seed in (0, 1, 3, 17, 36)),
        *((seed, True) for seed in (0, 1, 3)),
        pytest.param(2, False, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_schedule_takes_what_was_expected_and_fits(seed: int, buffers: bool) -> None:
    source, budget, machine = random_source(200 + seed), random_budget(seed), RDA if buffers else IDEAL
    inputs = [tensor.name for tensor in source.program.inputs] if buffers else []
    base = NONE
    for name in inputs:
        base = base.buffer(name, 64)
    search, variant = searched(source, machine, base)
    for program in search.cheapest(budget, 3).programs:
        estimate = compile_source(source, program.schedule, machine).estimate(variant.graph.figures.estimator)
        assert estimate.cycles == pytest.approx(program.cycles)
        assert not any(budget.exceeded(region.resources) for region in estimate.regions)
        assert Schedule.from_yaml(program.schedule.to_yaml()) == program.schedule


def test_more_of_a_resource_never_costs_cycles() -> None:
    search, _ = searched(random_source(7), RDA)
    cycles = [search.cheapest(Budget.of({"mul": mul}), 1, WITHOUT_STAGES).programs[0].cycles for mul in (8, 4, 2)]
    assert cycles == sorted(cycles)


def test_formats_are_searched_if_they_are_allowed() -> None:
    source, budget = random_source(14), Budget.parse("mul=4")
    plain = budget_schedule(source, Schedule(), RDA, BudgetRequest(budget, top=0))
    choice = budget_schedule(source, Schedule(), RDA, BudgetRequest(budget, allow=frozenset(("formats",)), top=0))
    assert choice.chosen.estimate <= plain.chosen.estimate
    assert not plain.schedule.formats
    assert {lever.name for lever in choice.levers} - {lever.name for lever in plain.levers} == {"formats"}


@pytest.mark.parametrize(
    "request_",
    [
        BudgetRequest(Budget.of({"mul": 2, "port": 40}), pareto=("mul",), allow=frozenset({"formats", "reassociate"}), top=2),
        BudgetRequest(Budget.of({"mul": 4, "fifo": 64 * 1024}), top=1),
        BudgetRequest(Budget.of({"mul": 4}), pareto=("fifo",), top=0),
    ],
    ids=["all", "fifo", "estimates"],
)
def test_what_is_left_is_never_more_than_was_said(request_: BudgetRequest) -> None:
    left: list[int] = []
    budget_schedule(random_source(1), Schedule(), RDA, request_, progress=lambda text, most: left.append(most))
    assert len(left) > 3
    assert all(most >= behind for most, behind in zip(left, reversed(range(len(left))), strict=True))
    assert left == sorted(left, reverse=True)


@pytest.mark.parametrize("seed", seeds(0, 1, slow=(2,)))
def test_cycles_by_arithmetic_are_near_to_those_of_graphs_that_are_made(seed: int) -> None:
    """Random programs of a few hundred elements have lanes of a few, which is where arithmetic is furthest off."""
    _, variant = searched(random_source(200 + seed), RDA)
    costs, ratios = LoweredCosts(RDA, variant.graph.figures.estimator), list[float]()
    for edge in variant.graph.edges(variant.graph.start):
        for deal in LaneModel.of(edge, costs.lane_costs(edge)).deals(Budget.of({}), 64)[::3] if edge.pieces else ():
            decision = RegionDecision(edge.order, deal.lanes)
            (near,), cost = costs.near(edge, [decision]), costs(edge, decision)
            assert cost is not None
            ratios += [near / cost.cycles] if near is not None else []
    assert len(ratios) > 5
    assert 0.9 < np.median(ratios) < 1.1
    assert min(ratios) > 0.5 and max(ratios) < 2


def test_candidates_are_written_in_lanes_if_the_schedule_says_so() -> None:
    rng = np.random.default_rng(0)
    declared = parse("tensor A[8, 8]\ntensor B[8, 8]\nY[i, j] = A[i, j] + B[i, j]\noutput Y")
    source = Source("sum", declared, {name: pack(rng.normal(size=(8, 8)), Format.dense(2)) for name in "AB"})
    ports = list[int]()
    for base in (replace(NONE, writers="once"), replace(NONE, writers="lanes")):
        _, variant = searched(source, RDA, base)
        edge = variant.graph.edges(variant.graph.start)[0]
        decision = RegionDecision(edge.order, (("i", 4),))
        cost = LoweredCosts(RDA, variant.graph.figures.estimator)(edge, decision)
        compiled = compile_source(source, decision.scheduled(base, edge.name, is_ordered=len(edge.order) > 1), RDA)
        (region,) = compiled.estimate(Estimator()).regions
        assert cost is not None and cost.resources.port == region.resources.port
        ports.append(cost.resources.port)
    assert ports[0] < ports[1]
