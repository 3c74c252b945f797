"""What rules keep: against sorting in PyTorch and by hand, with ties, NaN, infinities, short groups and empty fibers."""

import math

import numpy as np
import pytest
import torch

from fuseflow.keep_rules import Largest, Threshold, kept, kind, largest


def by_hand(rule: Largest, fiber: list[float]) -> list[bool]:
    """The rule on one fiber, in the words of the page: group by group, the largest first, the lower coordinate of equal ones."""
    mask = [False] * len(fiber)
    step = rule.every or max(1, len(fiber))
    for start in range(0, len(fiber), step):
        group = range(start, min(start + step, len(fiber)))
        order = sorted(group, key=lambda p: (not math.isnan(fiber[p]), -abs(fiber[p]) if not math.isnan(fiber[p]) else 0.0, p))
        for p in order[: rule.count]:
            mask[p] = True
    return mask


@pytest.mark.parametrize("seed", range(200))
def test_rules_agree_with_sorting_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 9, rng.integers(1, 4)))
    values = rng.choice([0.0, 1.0, -1.0, 2.0, -2.0, math.inf, -math.inf, math.nan], shape)
    axis = int(rng.integers(len(shape)))
    rule = Largest(int(rng.integers(1, 5)), int(rng.choice([0, 1, 2, 3, 4])))
    expected = (
        np.apply_along_axis(lambda fiber: by_hand(rule, list(fiber)), axis, values) if values.size else np.zeros(shape, bool)
    )
    assert np.array_equal(kept(rule, values, [axis]), expected)


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_of_distinct_magnitudes_are_those_of_pytorch(seed: int) -> None:
    values = torch.randn(4, 6, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    expected = (
        torch.zeros(4, 30, dtype=torch.bool).scatter_(1, values.abs().reshape(4, 30).topk(7).indices, True).reshape(4, 6, 5)
    )
    assert np.array_equal(kept(Largest(7), values.numpy(), [1, 2]), expected.numpy())


def test_of_equal_magnitudes_the_outermost_index_counts_first() -> None:
    values = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert kept(Largest(2), values, [0, 1]).tolist() == [[True, True], [False, False]]
    assert kept(Largest(2), values, [1, 0]).tolist() == [[True, False], [True, False]]


def test_a_threshold_keeps_what_reaches_it_and_nan() -> None:
    assert kept(Threshold(0.5), [0.5, -0.5, 0.4999, 0.0, math.nan, -math.inf]).tolist() == [True, True, False, False, True, True]


def test_more_entries_than_there_are_keep_all() -> None:
    assert largest([[3.0, 1.0]], 5).all()
    assert largest(np.empty((2, 0)), 1).shape == (2, 0)


def test_a_rule_says_how_much_it_must_see() -> None:
    assert kind(Threshold(0.1), []) == "streaming"
    assert kind(Largest(8), ["j"]) == "blocking"
    assert kind(Largest(2, every=4), ["j"]) == "blocking"
    assert kind(Largest(1000), ["i", "j"]) == "materializing"


def test_rules_have_the_text_of_programs() -> None:
    assert [str(rule) for rule in (Threshold(0.1), Threshold(2.0), Largest(8), Largest(2, 4))] == [
        "threshold 0.1",
        "threshold 2",
        "8",
        "2 of 4",
    ]
