"""On an array, what is chosen is the best of all that fits, was placed and routed, and has the cycles of loading in its cycles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_fuzz
import budget_spaces
import numpy as np
import pytest
from budget_spaces import AllCandidates, random_source

from fuseflow.array.capacity import placed_tiles, tile_limits, tile_use
from fuseflow.array.grid import Grid
from fuseflow.array.placed_region import PlacedRegion, place_region
from fuseflow.array.settings import ArraySettings, read_array
from fuseflow.autoscheduler.array_candidates import counted_loading
from fuseflow.autoscheduler.budget import lane_models
from fuseflow.autoscheduler.budget.costs import LoweredCosts
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.lane_models import LaneModel, amounts_by_name
from fuseflow.autoscheduler.budget.path_search import ALL_LEVERS, BudgetSearch, Variant
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.errors import ArrayError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.lower.regions import dealt_region
from fuseflow.resources.budget import Budget
from fuseflow.run import placed
from fuseflow.run.placed import with_links
from fuseflow.samml.nodes import Graph
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack

IDEAL = load_machine("ideal")
NONE = Schedule.fuse("none")
ORDERS = 2
WITHOUT_STAGES = ALL_LEVERS.without("stages").without("depths")
"""All candidates have lanes of whole regions and FIFOs of the machine."""


def small(ports: int, share: int = 1, drain: int = 16) -> ArraySettings:
    """Return an array with some columns of 8 tiles, with a port at each."""
    text = f"""
array:
  grid: {{columns: {ports}, rows: 8}}
  tiles: {{pattern: PM, kinds: {{P: PE, M: MEM}}}}
  ports: {{side: north, share: {share}}}
  footprint: onyx
  load: {{drain: {drain}}}
"""
    return read_array(text, "small.yaml")


def searched(source: Source, array: ArraySettings) -> tuple[BudgetSearch, Variant]:
    estimator = Estimator(assume_unknown=True, array=array)
    variant = VariantFactory(source, IDEAL, estimator, NONE, orders=ORDERS)(NONE)
    assert variant is not None
    return BudgetSearch((variant,), RangeCosts(LoweredCosts(IDEAL, estimator), tried=None)), variant


FREE = small(200)
SPACES = [(8, 12, 1), (5, 16, 1), (1, 10, 2), (0, 12, 1), (5, 12, 1), (10, 16, 1), (11, 12, 1), (11, 16, 1)]
"""Programs and arrays whose ports bind: with more of them, other lanes and cuts are the best."""
SLOW = [pytest.param(*space, marks=pytest.mark.slow) for space in SPACES[3:]]


@pytest.mark.parametrize(("seed", "ports", "share"), [*SPACES[:3], *SLOW])
def test_it_is_the_best_of_all_candidates_that_fit(seed: int, ports: int, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (budget_spaces, lane_models):
        monkeypatch.setattr(module, "lane_counts", lambda size: (1, 2, 4))
    source, array, budget = random_source(seed, 16), small(ports, share), Budget({})
    (program,) = searched(source, array)[0].cheapest(budget.on_array(array.name, tile_limits(array)), 1, WITHOUT_STAGES).programs
    (free,) = searched(source, FREE)[0].cheapest(budget.on_array(FREE.name, tile_limits(FREE)), 1, WITHOUT_STAGES).programs
    assert program.cycles == pytest.approx(AllCandidates(source, IDEAL, budget, NONE, ORDERS, array).best(), rel=1e-9)
    assert free.cycles < program.cycles


PAIRS = [(12, 20), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((5, 28), (11, 20), (4, 20), (4, 28)))]
"""Programs and the ports of arrays on which two regions may lie at once, so that other lanes and cuts are the best."""


@pytest.mark.parametrize(("seed", "ports"), PAIRS)
def test_it_is_the_best_of_all_where_a_region_is_loaded_while_the_one_before_runs(
    seed: int, ports: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (budget_spaces, lane_models):
        monkeypatch.setattr(module, "lane_counts", lambda size: (1, 2, 4))
    alone = small(ports).model_copy(update={"load": small(ports).load.model_copy(update={"words_per_cycle": 1})})
    source, array, budget = random_source(seed, 16), alone.model_copy(update={"resident": 2}), Budget({})
    limits = budget.on_array(array.name, tile_limits(array))
    (program,) = searched(source, array)[0].cheapest(limits, 1, WITHOUT_STAGES).programs
    (one,) = searched(source, alone)[0].cheapest(limits, 1, WITHOUT_STAGES).programs
    assert program.cycles == pytest.approx(AllCandidates(source, IDEAL, budget, NONE, ORDERS, array).best(), rel=1e-9)
    assert program.cycles < one.cycles


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_tiles_by_arithmetic_are_those_of_graphs_that_are_made(seed: int) -> None:
    array = small(12, 2)
    _, variant = searched(random_source(seed, 8), array)
    costs, limits, checked = LoweredCosts(IDEAL, variant.graph.figures.estimator), tile_limits(array), 0
    edges = [e for s in variant.graph.states() if s.cut < variant.graph.last for e in variant.graph.edges(s) if e.pieces]
    for edge in edges:
        model = LaneModel.of(edge, costs.lane_costs(edge)).with_pairs(costs.lane_costs(edge), every=True)
        for deal in model.deals(Budget({}).on_array("any", dict.fromkeys(limits, 10_000)), None)[::7]:
            decision = RegionDecision(edge.order, deal.lanes)
            cost, region = costs(edge, decision), edge.pieces[-1]
            graph = dealt_region(edge.before.lowering, region, decision.scheduled(NONE, region.name, is_ordered=False)).graph
            made, counted = placed_tiles(graph, array, IDEAL), amounts_by_name(deal.amounts, limits)
            assert cost is not None and len(edge.pieces) == 1
            assert dict(made) == dict(cost.resources.tiles) == {name: counted[name] for name in limits}
            use, (pe, mem, streams) = tile_use(graph, array, IDEAL).needed, (count for _, count in made)
            assert (use["PE"], use["MEM"]) == (pe, mem)
            assert use["IO"] == max(-(-streams // 2), min(streams, array.available["IO"])), (
                "ports are shared where there are too few"
            )
            checked += 1
    assert checked > 10


def test_what_is_chosen_was_placed_and_its_cycles_have_those_of_loading() -> None:
    source, array = random_source(5, 16), small(12)
    choice = budget_schedule(source, Schedule(), IDEAL, BudgetRequest(Budget({}), top=1, array=array))
    compiled = compile_source(source, choice.schedule, IDEAL)
    assert choice.chosen.loading == {name: its_place.loading_cycles for name, its_place in choice.placed.items()}
    run = with_links(compiled, tuple(choice.placed.values())).run()
    assert run.cycles > compiled.run().cycles and choice.chosen.loading == run.loading
    assert choice.chosen.cycles == run.cycles + run.loading_cycles, "what is simulated has its links"
    for region in compiled.regions:
        its_place = choice.placed[region.name]
        assert tile_use(region.graph, array, IDEAL).needed == its_place.tiles
        its_place.routing.verify(Grid.of(array), array.tracks, array.ports.kind)
    assert len(choice.placed) == 2  # one region has 13 ports


@pytest.mark.parametrize("top", [0, 1])
def test_the_next_is_chosen_if_one_is_not_routed(top: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source, request = random_source(5, 16), BudgetRequest(Budget({}), top=top, array=small(16))
    first = budget_schedule(source, Schedule(), IDEAL, request).chosen

    def place(graph: Graph, *rest: Any) -> PlacedRegion:
        if graph.name == "T1":
            raise ArrayError(f"region `{graph.name}` is not routed: a link is too full")
        return place_region(graph, *rest)

    monkeypatch.setattr(placed, "place_region", place)
    choice = budget_schedule(source, Schedule(), IDEAL, request)
    refused = next(trial for trial in choice.trials if trial.schedule == first.schedule)
    assert refused.refused.startswith("it fits, but region `") and choice.chosen.estimate >= first.estimate
    assert choice.schedule != first.schedule


def test_a_region_with_the_same_graph_as_the_one_before_is_loaded_once() -> None:
    program = parse("tensor A[8, 8]\nX[i, j] = A[i, j] * 2\nY[i, j] = X[i, j] * 2\nZ[i, j] = exp(Y[i, j])\noutput Z")
    source = Source("twice", program, {"A": pack(np.ones((8, 8)), Format.dense(2))})
    compiled = compile_source(source, NONE, IDEAL)
    estimate = compiled.estimate(Estimator(array=FREE))
    own = {name: region.loading for region in estimate.regions for name in region.names}
    assert counted_loading(compiled, estimate, FREE) == {"X": own["X"], "Y": 0, "Z": own["Z"]}


def test_an_operator_that_does_not_fit_is_an_error_with_both_numbers() -> None:
    with pytest.raises(ArrayError) as caught:
        budget_schedule(random_source(5, 16), Schedule(), IDEAL, BudgetRequest(Budget({}), top=0, array=small(4)))
    assert "region `T0` needs 9 ports, and array `small` has 4 (PE 3 of 16, MEM 9 of 16); it is one operator" in str(caught.value)
    assert "a larger array" in str(caught.value.hint)


def test_what_is_chosen_for_random_programs_is_placed_and_routed() -> None:
    tally = array_fuzz.run(1, 3, simulated=0.3)
    assert not tally.faults
    assert tally.counts["fit"] >= 2


@pytest.mark.slow
def test_what_is_chosen_for_many_programs_is_placed_and_routed(draws: Callable[[int], range]) -> None:
    for number in draws(6):
        assert not array_fuzz.run(number).faults
