"""Intervals of sampled cycles: exact where they must be, as wide as the scatter says, and never silent about what no replicate has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fuseflow.sampling.interval import (
    SYSTEMATIC,
    ClassReplicates,
    EndUncertainty,
    MeasuredReplicate,
    Replicates,
    SampledCycles,
    sampled_sum,
)
from fuseflow.sampling.replicates import ReplicateRows, SampleDesign, UnitClass, design_sample

NO_ENDS = EndUncertainty(0.0, 0.0)


def measured_replicate(
    design: SampleDesign, replicate: ReplicateRows, cost: np.ndarray, constant: int, factor: float = 1.0
) -> MeasuredReplicate:
    """A replicate of a loop whose coordinates take these cycles one after the other. All of its own are faster or slower by a factor."""
    cycles, warmup = (constant + round(factor * int(cost[rows].sum())) for rows in (replicate.rows, replicate.warmup))
    before = design.weight(replicate.warmup)
    return MeasuredReplicate(cycles, warmup, design.weight(replicate.rows) - before, before, replicate.units)


def class_replicates(
    design: SampleDesign, drawn: UnitClass, cost: np.ndarray, constant: int, factors: Sequence[float]
) -> ClassReplicates:
    """The replicates of a class of such a loop, one for each factor."""
    replicates = [
        measured_replicate(design, design.replicate(drawn, number), cost, constant, factor)
        for number, factor in enumerate(factors)
    ]
    return ClassReplicates(replicates, design.weight(design.coordinates(drawn.units)), len(drawn.units))


def measured(
    cost: np.ndarray,
    weights: np.ndarray,
    seed: int,
    constant: int = 700,
    confidence: float = 0.95,
    spread: float = 0.0,
    unit: int = 1,
    ends: EndUncertainty = NO_ENDS,
) -> SampledCycles:
    """The interval of such a loop, each of whose replicates lies in a part of the memory that is slower or faster by so much."""
    rng = np.random.default_rng(seed)
    design = design_sample(weights, 40, unit, unit, 5, rng)
    factors = 1 + spread * (2 * rng.random((len(design.classes), 5)) - 1)
    return Replicates(
        [class_replicates(design, c, cost, constant, f) for c, f in zip(design.classes, factors, strict=True)],
        constant + int(cost[design.first].sum()),
        measured_replicate(design, design.certain, cost, constant) if len(design.certain_units) else None,
        ends,
    ).interval(confidence)


def test_alike_coordinates_are_exact_and_the_constant_counts_once() -> None:
    cycles = measured(np.full(3000, 12), np.full(3000, 5.0), 0)
    assert cycles.estimate == pytest.approx(700 + 36_000) and cycles.half_width == pytest.approx(SYSTEMATIC * (36_000 - 12))


def test_weights_in_proportion_are_exact() -> None:
    weights = np.random.default_rng(1).integers(1, 200, 4000).astype(float)
    cycles = measured((weights * 3).astype(int), weights, 0)
    assert cycles.estimate == pytest.approx(700 + 3 * weights.sum()) and cycles.error < SYSTEMATIC


@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_have_the_true_number_as_often_as_they_say(confidence: float, unit: int) -> None:
    rng = np.random.default_rng(2)
    weights = np.minimum(rng.pareto(1.8, 6000) + 1, 200) * 10
    cost = (weights * rng.gamma(4, 0.25, 6000) + 30).astype(int)
    true, trials = 700 + int(cost.sum()), 400
    covered = sum(
        c.low <= true <= c.high
        for c in (measured(cost, weights, seed, confidence=confidence, unit=unit) for seed in range(trials))
    )
    assert confidence - 0.04 <= covered / trials <= min(1, confidence + 0.1)


def test_weights_that_say_nothing_do_not_mislead() -> None:
    """Ten coordinates that the weights call heavy, and that are not: they once made the number too large by a fifth."""
    weights = np.full(4000, 10.0)
    weights[::400] = 900
    cost = np.where(weights > 10, 200, 100)
    true = 700 + int(cost.sum())
    covered = sum(c.low <= true <= c.high for c in (measured(cost, weights, seed) for seed in range(100)))
    assert covered >= 93


def test_replicates_alike_count_by_their_weight() -> None:
    """Four rows of five are empty. All replicates measured 10 rows of weight 231, where the average row weighs 222: 4.9 % too much."""
    same = [MeasuredReplicate(3283, 936, 2313.0, 775.0, 10) for _ in range(5)]
    cycles = Replicates([ClassReplicates(same, 332_681.0, 1500)], 150, None, NO_ENDS).interval(0.95)
    assert cycles.estimate == pytest.approx(150 + 332_681 * 2347 / 2313, abs=1)


def test_a_line_that_hangs_on_one_replicate_is_not_certain() -> None:
    """Four replicates are alike, and one has a row of another kind: no residual says what it would be without that one."""
    alike = [MeasuredReplicate(3830, 950, 5890.0, 1767.0, 10) for _ in range(4)]
    other = MeasuredReplicate(9782, 950, 11842.0, 1767.0, 10)
    cycles = Replicates([ClassReplicates([*alike, other], 960_287.0, 1499)], 150, None, NO_ENDS).interval(0.95)
    assert cycles.low <= 493_991 <= cycles.high and cycles.error > 0.1


def test_a_unit_is_measured_behind_the_rows_before_it() -> None:
    """Units 2, 5 and 6 of three rows, behind four: rows of a unit that is taken are no warmup, and the rest is never before row 0."""
    design = SampleDesign(np.ones(22), 3, 4, np.array([2, 5, 6]), ())
    assert design.certain.warmup.tolist() == [2, 3, 4, 5, 11, 12, 13, 14]
    assert design.certain.rows.tolist() == [*range(2, 9), *range(11, 21)] and design.certain.units == 3
    assert design.first.tolist() == [0, 1, 2]
    assert SampleDesign(np.ones(22), 3, 4, np.array([1, 7]), ()).certain.warmup.tolist() == [0, 1, 2, 17, 18, 19, 20]


def test_what_the_place_in_the_memory_does_is_in_the_interval() -> None:
    """Replicates that all lay at the beginning of their arrays once agreed with each other, and were 3 % off."""
    cost, weights = np.full(3000, 60), np.full(3000, 5.0)
    covered = [measured(cost, weights, seed, spread=0.04) for seed in range(200)]
    assert sum(c.low <= 180_700 <= c.high for c in covered) >= 180


def test_certain_coordinates_are_as_uncertain_as_replicates() -> None:
    weights, cost = np.full(3000, 10.0), np.full(3000, 20)
    design = design_sample(weights, 40, 1, 1, 5, np.random.default_rng(0))
    classes = [class_replicates(design, design.classes[0], cost, 700, (0.98, 1.01, 1.0, 1.03, 0.97))]
    taken = (None, *(MeasuredReplicate(cycles + 800, 800, 100.0, 10.0, 1) for cycles in (1_200, 400_000)))
    alone, short, long = (Replicates(classes, 720, certain, NO_ENDS).interval(0.95).half_width for certain in taken)
    assert alone < short < 1.1 * alone < long


def test_what_no_replicate_may_see_is_added() -> None:
    def width(each: float, common: float) -> float:
        half_width = measured(np.full(3000, 60), np.full(3000, 5.0), 0, ends=EndUncertainty(each, common)).half_width
        return float(np.sqrt(half_width**2 - (SYSTEMATIC * (180_000 - 60)) ** 2))

    assert width(0, 0) == pytest.approx(0, abs=1)
    assert width(300, 0) == pytest.approx(width(0, 300) / np.sqrt(5))


def test_heavy_units_have_replicates_of_their_own() -> None:
    """Heavy rows take fewer cycles by their weight than light ones. Replicates of all once missed it in four of five cases."""
    rng = np.random.default_rng(6)
    weights = np.minimum(rng.pareto(1.3, 20_000) + 1, 2000) * 10
    cost = (weights * np.where(weights > 300, 0.9, 1.05)).astype(int)
    design = design_sample(weights, 40, 1, 1, 5, rng)
    spans = [np.ptp(np.log(weights[c.units])) for c in design.classes[:-1]]
    assert len(design.classes) > 1 and max(spans) <= np.log(64) and len(design.certain_units)
    covered = [measured(cost, weights, seed) for seed in range(100)]
    assert sum(c.low <= 700 + cost.sum() <= c.high for c in covered) >= 90


def test_a_coordinate_with_most_of_the_work_is_always_taken() -> None:
    weights = np.full(3000, 10.0)
    weights[77] = 45_000
    design = design_sample(weights, 40, 1, 1, 5, np.random.default_rng(0))
    assert design.certain_units.tolist() == [77] and not any(77 in c.units for c in design.classes)
    assert design.certain.rows.tolist() == [76, 77] and design.certain.position.place == 77 / 3000
    assert measured((weights * 2).astype(int), weights, 0).estimate == pytest.approx(700 + 2 * weights.sum())


@pytest.mark.parametrize("unit", [1, 3])
def test_replicates_are_disjoint_and_follow_from_the_seed(unit: int) -> None:
    weights = np.random.default_rng(3).random(1000)
    designs = [design_sample(weights, 20, unit, 2, 5, np.random.default_rng(seed)) for seed in (4, 4, 5)]
    drawn = [[d.replicate(c, r) for c in d.classes for r in range(5)] for d in designs]
    rows = [np.concatenate([np.setdiff1d(r.rows, r.warmup) for r in replicates]) for replicates in drawn]
    assert len(set(rows[0].tolist())) == len(rows[0]) and not set(rows[0].tolist()) & set(designs[0].first.tolist())
    assert rows[0].tolist() == rows[1].tolist() != rows[2].tolist()
    assert [r.position for r in drawn[0]] == [r.position for r in drawn[1]]
    for r in drawn[0]:
        assert set(r.warmup) < set(r.rows) and r.units == len(set(np.setdiff1d(r.rows, r.warmup) // unit))


def test_a_unit_has_coordinates_in_a_row() -> None:
    design = design_sample(np.ones(11), 2, 4, 1, 1, np.random.default_rng(0))
    assert design.coordinates(np.array([2, 0])).tolist() == [0, 1, 2, 3, 8, 9, 10]


def test_all_units_are_equally_likely_to_be_measured() -> None:
    """All but the first one, which is always run."""
    counts, weights = np.zeros(240), np.linspace(1, 2, 240)
    for seed in range(2000):
        design = design_sample(weights, 12, 1, 2, 5, np.random.default_rng(seed))
        drawn = design.replicate(design.classes[0], 0)
        counts[np.setdiff1d(drawn.rows, drawn.warmup)] += 1
    assert counts[0] == 0 and np.abs(counts[1:] / counts[1:].mean() - 1).max() < 5 / np.sqrt(counts[1:].mean())


def test_sampled_cycles_are_no_number() -> None:
    cycles = SampledCycles(1000.0, 10.0, 0.95)
    with pytest.raises(TypeError):
        cycles + 5  # type: ignore[operator]
    with pytest.raises(TypeError):
        assert cycles < 2000  # type: ignore[operator]
    assert str(sampled_sum([(2, cycles)], 500, 0.95)) == "~2,500 ± 20"


MANY, CONSTANT = 20_000, 700
LAWS = ("lognormal", "pareto 1.8", "pareto 1.3", "three kinds")
RELATIONS = ("a step of 14 %", "noise", "one in twenty twice as long")


def spread(law: str, rng: np.random.Generator) -> np.ndarray:
    match law:
        case "lognormal":
            drawn = rng.lognormal(0, 0.5, MANY)
        case "pareto 1.8":
            drawn = np.minimum(rng.pareto(1.8, MANY) + 1, 200)
        case "pareto 1.3":
            drawn = np.minimum(rng.pareto(1.3, MANY) + 1, 2000)
        case _:
            drawn = rng.choice((0.1, 1.0, 6.0), MANY, p=(0.6, 0.3, 0.1))
    return np.asarray(np.ceil(10 * drawn))


def cycles(relation: str, of: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    match relation:
        case "a step of 14 %":
            factor = np.where(of > 3 * of.mean(), 0.92, 1.06)
        case "noise":
            factor = rng.gamma(4, 0.25, MANY)
        case _:
            factor = np.where(rng.random(MANY) < 0.05, 2.0, 1.0)
    return np.asarray(3 * of * factor + 1).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_loops_with_known_cycles(law: str, relation: str, draws: Callable[[int], range]) -> None:
    """Laws spread the weights of 20,000 coordinates, and cycles follow from weights in three ways."""
    rng = np.random.default_rng(3)
    weights = spread(law, rng)
    cost = cycles(relation, weights, rng)
    true, drawn = CONSTANT + int(cost.sum()), [measured(cost, weights, seed, CONSTANT, 0.975) for seed in draws(250)]
    assert sum(c.low <= true <= c.high for c in drawn) >= 0.9 * len(drawn)
