"""Intervals of sampled cycles: exact where they must be, as wide as the scatter says, and never silent about what no replicate has."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.sampling.design import design_sample
from fuseflow.sampling.interval import Replicates, SampledCycles, sampled_sum


def measured(cost: np.ndarray, weights: np.ndarray, seed: int, constant: int = 700, confidence: float = 0.95) -> SampledCycles:
    """The interval of a loop whose coordinates take these cycles one after the other."""
    design = design_sample(weights, 40, 5, np.random.default_rng(seed))
    parts = [design.replicate(r) for r in range(5)]
    together = np.concatenate(parts)
    return Replicates(
        [constant + int(cost[p].sum()) for p in parts],
        [design.weight(p) for p in parts],
        constant + int(cost[together].sum()),
        constant + int(cost[design.certain].sum()) if len(design.certain) else None,
        design.sampled_weight,
        len(together) / design.drawn_from,
        0.0,
    ).interval(confidence)


def test_alike_coordinates_are_exact_and_the_constant_counts_once() -> None:
    cycles = measured(np.full(3000, 12), np.full(3000, 5.0), 0)
    assert cycles.estimate == pytest.approx(700 + 36_000) and cycles.half_width == pytest.approx(0)


def test_weights_in_proportion_are_exact() -> None:
    weights = np.random.default_rng(1).integers(1, 200, 4000).astype(float)
    cycles = measured((weights * 3).astype(int), weights, 0)
    assert cycles.estimate == pytest.approx(700 + 3 * weights.sum()) and cycles.error < 1e-6


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_have_the_true_number_as_often_as_they_say(confidence: float) -> None:
    rng = np.random.default_rng(2)
    weights = np.minimum(rng.pareto(1.8, 6000) + 1, 200) * 10
    cost = (weights * rng.gamma(4, 0.25, 6000) + 30).astype(int)
    true, trials = 700 + int(cost.sum()), 400
    covered = sum(
        c.low <= true <= c.high for c in (measured(cost, weights, seed, confidence=confidence) for seed in range(trials))
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


def test_a_coordinate_with_most_of_the_work_is_always_taken() -> None:
    weights = np.full(3000, 10.0)
    weights[77] = 45_000
    design = design_sample(weights, 40, 5, np.random.default_rng(0))
    assert design.certain.tolist() == [77] and not any(77 in stratum for stratum in design.strata)
    assert measured((weights * 2).astype(int), weights, 0).estimate == pytest.approx(700 + 2 * weights.sum())


def test_replicates_are_disjoint_and_follow_from_the_seed() -> None:
    weights = np.random.default_rng(3).random(1000)
    designs = [design_sample(weights, 20, 5, np.random.default_rng(seed)) for seed in (4, 4, 5)]
    drawn = [np.concatenate([d.replicate(r) for r in range(5)]) for d in designs]
    assert len(set(drawn[0].tolist())) == 100
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()


def test_sampled_cycles_are_no_number() -> None:
    cycles = SampledCycles(1000.0, 10.0, 0.95)
    with pytest.raises(TypeError):
        cycles + 5  # type: ignore[operator]
    with pytest.raises(TypeError):
        assert cycles < 2000  # type: ignore[operator]
    assert str(sampled_sum([(2, cycles)], 500, 0.95)) == "~2,500 ± 20"
