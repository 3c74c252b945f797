"""Regions of a program that ran get other decisions, and the fastest of each are put together."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from budget_spaces import random_source

from fuseflow.autoscheduler.budget.costs import LoweredCosts, RegionRun
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import Freedom
from fuseflow.autoscheduler.budget.path_search import ALL_LEVERS, UNFUSED, BudgetSearch
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.region_tuning import fastest_regions, region_contents, saved_cycles
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trial_runs import Refinement
from fuseflow.autoscheduler.budget.trials import SimulateHere, Trial
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack

RDA, NONE = load_machine("rda"), Schedule.fuse("none")
TWICE = """
program twice
tensor A[6, 6] csr
tensor B[6, 6] csr
tensor C[6, 6] csr
S0[i, j] = sum(k) A[i, k] * B[k, j]
S1[i, l] = sum(j) S0[i, j] * C[j, l]
U0[i, j] = sum(k) A[i, k] * B[k, j]
U1[i, l] = sum(j) U0[i, j] * C[j, l]
Y[i, l] = S1[i, l] + U1[i, l]
output Y
"""


def searched(source: Source) -> BudgetSearch:
    estimator = Estimator(assume_unknown=True)
    variant = VariantFactory(source, RDA, estimator, NONE)(NONE)
    assert variant is not None
    return BudgetSearch((variant,), RangeCosts(LoweredCosts(RDA, estimator)))


@pytest.mark.parametrize("seed", [2, 7])
def test_the_fastest_decision_about_each_region_is_taken(seed: int) -> None:
    source, budget = random_source(seed), Budget.parse("mul=8")
    search, run = searched(source), SimulateHere(source, RDA)
    program = search.cheapest(budget, 1).programs[0]
    tried = [program, *Refinement(program, search.costs, budget, ALL_LEVERS).others(3)]
    assert len({other.schedule for other in tried}) == len(tried) > 1
    trials = [
        Trial(str(n), other.schedule, other.cycles, Resources()).after(simulated, budget)
        for n, (other, simulated) in enumerate(zip(tried, run([other.schedule for other in tried]), strict=True))
    ]
    best = min(trials, key=lambda trial: trial.rank)
    schedule = best.schedule
    for transfer in fastest_regions(best, trials, region_contents(compile_source(source, best.schedule, RDA)), inf):
        schedule = transfer.added(schedule)
    (together,) = run([schedule])
    fastest = {name: min(trial.taken[name] for trial in trials) for name in best.taken}
    assert together.cycles == sum(fastest.values()) <= min(trial.cycles or 0 for trial in trials)


def test_a_program_that_ran_gets_the_orders_that_are_expected_to_be_faster_than_it_was() -> None:
    """A search has other orders of the program that it expects to be the fastest alone."""
    dense = twice(3, TWICE.replace("csr", "dense"))  # sparse products have one order
    budget, search = Budget.parse("mul=2"), searched(dense)
    ranked = search.cheapest(budget, 8).programs
    program = next(p for p in ranked if "S0" in [edge.name for edge, _ in p.decisions])
    refinement = Refinement(program, search.costs, budget, ALL_LEVERS)
    edges = [edge for edge, _ in program.decisions]
    assert not any(program.variant.graph.is_widened(edge) for edge in edges)
    asked: list[OrderedRange] = []

    def trying(edge: OrderedRange) -> bool:
        asked.append(edge)
        return True

    refinement.widen({}, trying)
    assert not asked and all(program.variant.graph.is_widened(edge) for edge in edges if edge.rank == 0)
    long = {edge.name: 1 << 40 for edge in edges}
    refinement.widen(long, lambda edge: False)
    refinement.widen(long, trying)
    assert asked and all(search.costs.known(edge, budget, ALL_LEVERS.freedom) for edge in asked)
    assert {edge.name for edge in asked} <= long.keys() and all(edge.rank > 0 for edge in asked)
    refinement.widen(long, lambda edge: pytest.fail(f"{edge.name} is known"))


def twice(size: int = 6, text: str = TWICE) -> Source:
    rng = np.random.default_rng(0)
    tensors = {name: pack(np.where(rng.random((size, size)) < 0.5, 1.0, 0.0), Format.parse("csr", 2)) for name in "ABC"}
    return Source("twice", parse(text.replace("6", str(size))), tensors)


def test_regions_between_which_a_program_is_cut_are_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program whose ranges of operators are too many is cut between regions first. The unfused one still has single operators."""
    source, budget = twice(), Budget.parse("mul=8")
    for limit in range(4, 40):
        monkeypatch.setattr("fuseflow.autoscheduler.budget.program_variants.SETTINGS", replace(SETTINGS, max_einsums=limit))
        factory = VariantFactory(source, RDA, Estimator(assume_unknown=True), NONE)
        variant = factory(NONE)
        if variant is not None and variant.graph.ranges.units.granularity == "regions":
            break
    assert variant is not None and len(variant.graph.ranges.units) < 5
    assert factory.apart(variant) is variant  # there are too many parts, too
    monkeypatch.undo()
    finer = factory.apart(variant)
    assert len(finer.graph.ranges.units) == 5
    search = replace(searched(source), variants=(finer,))
    (unfused,) = search.cheapest(budget, 1, UNFUSED).programs
    assert unfused.schedule.fuse_regions == ("none",) and len(unfused.path.edges) == 5
    joined = replace(search, variants=(variant,)).cheapest(budget, 1).programs[0]
    assert search.cheapest(budget, 1).programs[0].cycles <= joined.cycles


def test_cycles_that_regions_save_are_those_of_the_ones_that_are_faster_than_in_all_others() -> None:
    def ran(**cycles: int) -> Trial:
        regions = {name: RegionRun(number, None) for name, number in cycles.items()}
        return Trial("", NONE, 0.0, Resources(), cycles=sum(cycles.values()), regions=regions)

    assert saved_cycles(ran(a=5, b=9, c=1), [ran(a=8, b=7, c=1), ran(a=6, b=8, c=2)]) == 1
    assert saved_cycles(ran(a=9), [ran(a=8)]) == 0


def test_regions_that_repeat_one_take_the_cycles_of_it() -> None:
    (simulated,) = SimulateHere(twice(), RDA)([NONE])
    assert simulated.regions.keys() == {"S0", "S1", "U0", "U1", "Y"}
    assert simulated.regions["S0"] == simulated.regions["U0"]
    assert simulated.cycles == sum(region.cycles for region in simulated.regions.values())


def test_more_simulations_never_give_a_slower_schedule() -> None:
    source, budget = random_source(5), Budget.parse("mul=6,port=60")
    few, more = (budget_schedule(source, Schedule(), RDA, BudgetRequest(budget, top=top)) for top in (1, 4))
    assert more.chosen.cycles is not None and few.chosen.cycles is not None
    assert more.chosen.cycles <= few.chosen.cycles
    assert len(more.trials) > len(few.trials)
    assert more.expected <= more.chosen.estimate


def test_equal_ranges_have_stages_of_their_own_names_under_every_budget() -> None:
    search = searched(twice())
    (variant,) = search.variants
    pairs = [e for s in variant.graph.states() if s.cut < 4 for e in variant.graph.edges(s) if e.part in ((0, 2), (2, 4))]
    first, second = (next(edge for edge in pairs if edge.part == part and edge.rank == 0) for part in ((0, 2), (2, 4)))
    assert search.costs.decisions.kind(first) == search.costs.decisions.kind(second)
    for mul in (8, 5, 3):
        for edge, stage in ((second, "U0"), (first, "S0"))[:: 1 if mul == 5 else -1]:
            dealt = search.costs.best(edge, Budget.of({"mul": mul}), Freedom())
            assert dealt is not None
            known = [dealt.decision, *(d for d, _ in search.costs.fitting(edge, Budget.of({"mul": mul}), Freedom()))]
            names = {loop.split(".")[0][1:] for decision in known for loop, _ in decision.lanes if loop.startswith("/")}
            assert stage in names and names <= set(edge.pieces[-1].stages)


def test_products_that_the_user_ordered_leave_the_unfused_program_there() -> None:
    rng = np.random.default_rng(1)
    text = "program p\n" + "".join(f"tensor {name}[4, 4] csr\n" for name in "ABC")
    text += "T[i, j] = sum(k) A[i, k] * B[k, j]\nY[i, l] = sum(j) T[i, j] * C[j, l]\noutput Y\n"
    tensors = {name: pack(rng.normal(size=(4, 4)), Format.parse("csr", 2)) for name in "ABC"}
    schedule = Schedule().associate("Y", "A (B C)")
    choice = budget_schedule(Source("p", parse(text), tensors), schedule, RDA, BudgetRequest(Budget.parse("mul=4"), top=0))
    assert choice.unfused is not None
    assert choice.unfused.schedule.associations == schedule.associations
