"""The best program of a space, found with bounds, is that of all programs of the space, each of which is simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from math import inf, prod

import pytest
from budget_spaces import random_source, schedule_of
from lane_spaces import DEPTHS, LaneSpace

from fuseflow.autoscheduler.budget.lane_models import lane_counts
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trials import SimulateHere
from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.lower.regions import CompiledRegion
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

MACHINE = load_machine("ideal")
BASE = Schedule.fuse("none")


def all_lanes(region: CompiledRegion) -> Iterator[Mapping[str, int]]:
    for number in range(SETTINGS.max_dealt + 1):
        for indices in combinations(region.fused.order, number):
            counts = [[c for c in lane_counts(region.fused.sizes[index]) if c > 1] for index in indices]
            yield from (dict(zip(indices, lanes, strict=True)) for lanes in product(*counts))


def fewest(source: Source, schedule: Schedule, name: str, region: CompiledRegion, budget: Budget) -> float:
    """Return the fewest cycles of a region that has any lanes and depths, while the others have one lane."""
    best = inf
    for lanes, depth in product(all_lanes(region), DEPTHS):
        if prod(lanes.values()) > 64:
            continue
        dealt = schedule.par(**{f"{name}.{index}": count for index, count in lanes.items()}).depth(name, depth)
        try:
            compiled = compile_source(source, dealt, MACHINE)
            estimate = compiled.estimate(Estimator(assume_unknown=True))
            result = compiled.run(check=False)
        except FuseFlowError:
            continue
        expected, ran = (next(r for r in regions if r.name == name) for regions in (estimate.regions, result.regions))
        if not budget.exceeded(expected.resources) and not budget.exceeded(ran.resources):
            best = min(best, ran.cycles)
    return best


def all_programs(source: Source, budget: Budget) -> float:
    """Return the fewest cycles of all partitions in all lanes."""
    names, best = [e.name for e in source.program.einsums], inf
    for number in range(len(names)):
        for cut in combinations(range(1, len(names)), number):
            schedule = schedule_of(BASE, names, cut)
            try:
                regions = compile_source(source, schedule, MACHINE).regions
            except FuseFlowError:
                continue
            if all(region.einsums for region in regions):  # a copy is that of several regions
                best = min(best, sum(fewest(source, schedule, r.name, r, budget) for r in regions))
    return best


def space_of(source: Source, budget: Budget) -> LaneSpace:
    estimator = Estimator(assume_unknown=True)
    variant = VariantFactory(source, MACHINE, estimator, BASE, orders=1)(BASE)
    assert variant is not None
    return LaneSpace(variant, MACHINE, budget, estimator, SimulateHere(source, MACHINE))


@pytest.mark.parametrize("seed", [1, 9, pytest.param(4, marks=pytest.mark.slow)])
def test_the_best_of_a_space_is_that_of_all_its_programs(seed: int) -> None:
    source, budget = random_source(seed, size=3), Budget.of({"mul": 3, "port": 30, "fifo": "12KB"})
    best = space_of(source, budget).best(60)
    assert best.is_proved
    assert best.cycles == all_programs(source, budget)
