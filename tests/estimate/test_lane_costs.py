"""Lanes by arithmetic are lanes that are made: firings and resources are equal."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, ScheduleError
from fuseflow.estimate.lane_costs import LaneCosts
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions

PROGRAM = """
tensor A[19, 13] csr
tensor X[13, 11] csr
tensor b[11]
T[i, j] = sum(k) A[i, k] * X[k, j]
Y[i, j] = T[i, j] + b[j]
output Y
"""


def costs(seed: int, fused: str = "full", machine: str = "rda", writers: str = "once") -> LaneCosts:
    rng = random.Random(seed)
    dense = {"A": (19, 13), "X": (13, 11)}
    tensors = {name: [[float(rng.random() < 0.3) for _ in range(c)] for _ in range(r)] for name, (r, c) in dense.items()}
    compiled = ff.compile(parse(PROGRAM), tensors={**tensors, "b": [1.0] * 11}, schedule=ff.Schedule.fuse(fused), machine=machine)
    estimator = Estimator()
    region = compiled.regions[0]
    knowledge = estimator.knowledge(compiled.program, compiled.source.tensors)
    return LaneCosts(estimator, region.serial, region.table.loops, region.fused.order, compiled.machine, knowledge, writers)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("machine", ["rda", "ideal"])
def test_lanes_of_rows_are_those_that_are_made(seed: int, machine: str):
    region = costs(seed, machine=machine)
    for lanes in (1, 2, 5, 32):
        cost, made = region.cost({"i": lanes}), region.made({"i": lanes} if lanes > 1 else {})
        assert cost.by_arithmetic
        assert (cost.firings, cost.resources) == (made.firings, made.resources)
        assert cost.cycles == pytest.approx(made.cycles, rel=0.15)


def test_lanes_that_are_folded_are_made():
    region = costs(0)
    cost = region.cost({"k": 3})
    assert not cost.by_arithmetic and cost == region.made({"k": 3})


@pytest.mark.parametrize("lanes", [{"k": 3}, {"k": 7}, {"i": 4, "k": 2}, {"i": 3, "k": 5}, {"k": 2, "j": 4}])
@pytest.mark.parametrize("machine", ["rda", "ideal"])
def test_lanes_that_are_folded_are_expected_to_take_about_as_long(lanes: dict[str, int], machine: str):
    for seed in range(3):
        region = costs(seed, machine=machine)
        (near,), made = region.near([(lanes, None)]), region.made(lanes)
        assert near is not None and not region.cost(lanes).by_arithmetic
        assert near == pytest.approx(made.cycles, rel=0.35)


def test_lanes_that_are_exact_are_expected_to_take_what_they_cost():
    region = costs(0)
    plain, shallow, one = region.near([({"i": 5}, None), ({"i": 5}, 4), ({}, None)])
    assert plain == region.cost({"i": 5}).cycles and one == region.cost({}).cycles
    assert shallow == pytest.approx(region.cost({"i": 5}, 4).cycles)


@pytest.mark.parametrize("machine", ["rda", "ideal"])
@pytest.mark.parametrize("lanes", [{"i": 4}, {"i": 3, "j": 2}, {"k": 3}])
def test_deeper_fifos_take_the_bytes_of_those_that_are_made_and_no_more_cycles(lanes: dict[str, int], machine: str):
    region = costs(0, machine=machine)
    plain, deep = region.cost(lanes), region.cost(lanes, 4096)
    assert deep.resources == region.made(lanes, 4096).resources
    assert deep.cycles <= plain.cycles


def test_an_index_that_the_region_lacks_counts_as_in_a_schedule():
    assert costs(0).cost({"z": 8}) == costs(0).cost({})
    with pytest.raises(ScheduleError, match="not a number of lanes"):
        costs(0).made({"i": 0})


@pytest.mark.parametrize("machine", ["rda", "ideal"])
def test_a_candidate_is_expected_to_take_the_same_alone_and_among_others(machine: str):
    lanes = [{}, {"i": 2}, {"i": 7}, {"k": 3}, {"i": 4, "k": 2}, {"i": 4, "j": 3}, {"k": 2, "j": 5}]
    candidates = [(own, depth) for own in lanes for depth in (None, 4, 4096)]
    together = costs(1, machine=machine).near(candidates)
    alone = [costs(1, machine=machine).near([candidate])[0] for candidate in candidates]
    assert together == alone and None not in together
    assert costs(1, machine=machine).near(candidates[::-1]) == together[::-1]


def test_lanes_that_a_graph_cannot_have_are_not_known():
    assert costs(0).near([({"i": 2}, None), ({"i": 0}, None), ({"z": 3}, None)])[1:] == costs(0).near([({}, None)] * 2)


@pytest.mark.parametrize("machine", ["rda", "ideal"])
@pytest.mark.parametrize("fused", ["none", "full"])
def test_lanes_that_write_are_expected_to_take_what_they_are_made_to_take(fused: str, machine: str):
    """What gives a lane the coordinates that it lacks is left out of the shape, so such lanes cost what they are made to cost. Others write
    lines of their own, of which the shape knows about how many there are."""
    for seed in range(3):
        region = costs(seed, fused, machine, "lanes")
        for lanes in (2, 5, 19):
            (near,), made = region.near([({"i": lanes}, None)]), region.made({"i": lanes})
            assert near == pytest.approx(made.cycles, rel=0.15)
            cost = region.cost({"i": lanes})
            assert cost.resources == made.resources
            assert cost.firings == pytest.approx(made.firings, rel=1e-3 if cost.by_arithmetic else 0)


ROOT = Path(__file__).resolve().parents[2]
MODELS = (
    ("gcn", "random:nodes=40,features=12,classes=3", {}),
    ("graphsage", "random:nodes=30,features=9,classes=4", {}),
    ("sae", "images:side=6", {"small": True}),
    ("gpt", "bigbird:block=4,length=16,features=12", {"decoders": 1, "heads": 3}),
)


def regions_of_models() -> Iterator[LaneCosts]:
    """The regions of the paper's models in all granularities."""
    for model, data, options in MODELS:
        for granularity in ("unfused", "partial", "full"):
            schedule = ff.Schedule.load(ROOT / "schedules" / f"{model}_{granularity}.yaml")
            path = ROOT / "models" / "paper" / f"{model}.py"
            compiled = ff.compile(path, data=data, options=options, schedule=schedule, machine="rda")
            estimator = Estimator()
            knowledge = estimator.knowledge(compiled.program, compiled.source.tensors)
            for region, known in zip(compiled.regions, estimator_regions(compiled.regions), strict=True):
                estimator.add_views(known.views_before, knowledge)
                order = region.fused.order
                yield LaneCosts(estimator, region.serial, region.table.loops, order, compiled.machine, knowledge)
                estimator.region(known, compiled.machine, knowledge)


@pytest.mark.slow
def test_random_lanes_of_models_are_those_that_are_made(draws: Callable[[int], range]):
    """Lanes of one or two indices of a region, the outer ones more often. Where something is reduced over them, only cycles are known."""
    regions = list(regions_of_models())
    for seed in draws(500):
        rng = random.Random(seed)
        region = rng.choice(regions)
        outer = region.order[: rng.randint(1, max(1, len(region.order)))]
        lanes = {index: rng.choice((2, 3, 4, 5, 8, 16)) for index in rng.sample(outer, min(len(outer), rng.choice((1, 1, 2))))}
        try:
            cost = region.cost(lanes)
        except FuseFlowError:
            continue
        made = region.made(lanes)
        if cost.by_arithmetic:
            assert cost.resources == made.resources, (region.graph.name, lanes)
            assert cost.firings == pytest.approx(made.firings, rel=1e-3), (region.graph.name, lanes)
            assert 0.95 < cost.cycles / made.cycles < 1.05, (region.graph.name, lanes)
