"""What rules keep: against sorting in PyTorch and by hand, with ties, NaN, infinities, short groups and empty fibers."""

import math

import numpy as np
import pytest
import torch

from fuseflow.keep_rules import By, Largest, Threshold, kept, kept_entries, kind, largest, parse_rule

ORDERS: tuple[By, ...] = ("magnitude", "greatest", "least")


def rank(rule: Largest, value: float) -> tuple[bool, float]:
    """NaN is the largest magnitude, the greatest number, and so the last of the least."""
    if math.isnan(value):
        return rule.by == "least", 0.0
    return rule.by != "least", {"magnitude": -abs(value), "greatest": -value, "least": value}[rule.by]


def by_hand(rule: Largest, fiber: list[float]) -> list[bool]:
    """The rule on one fiber, in the words of the page: group by group, the largest first, the lower coordinate of equal ones."""
    mask = [False] * len(fiber)
    step = rule.every or max(1, len(fiber))
    for start in range(0, len(fiber), step):
        group = range(start, min(start + step, len(fiber)))
        order = sorted(group, key=lambda p: (*rank(rule, fiber[p]), p))
        for p in order[: rule.count]:
            mask[p] = True
    return mask


@pytest.mark.parametrize("seed", range(200))
def test_rules_agree_with_sorting_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 9, rng.integers(1, 4)))
    values = rng.choice([0.0, 1.0, -1.0, 2.0, -2.0, math.inf, -math.inf, math.nan], shape)
    axis = int(rng.integers(len(shape)))
    rule = Largest(int(rng.integers(1, 5)), int(rng.choice([0, 1, 2, 3, 4])), ORDERS[seed % 3])
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


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("by", ["greatest", "least"])
@pytest.mark.parametrize("length", [7, 40])
def test_signed_orders_are_those_of_pytorch(by: By, seed: int, length: int) -> None:
    values = torch.randn(5, length, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    values[:, 2] = math.nan
    found = values.topk(4, largest=by == "greatest").indices
    expected = torch.zeros(5, length, dtype=torch.bool).scatter_(1, found, True).numpy()
    assert np.array_equal(kept(Largest(4, by=by), values.numpy(), [1]), expected)
    entries = kept_entries(Largest(4, by=by), values.numpy().reshape(-1), np.repeat(np.arange(5), length))
    assert np.array_equal(entries.reshape(5, length), expected)


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
    texts = {
        "threshold 0.1": Threshold(0.1),
        "threshold 2": Threshold(2.0),
        "8": Largest(8),
        "2 of 4": Largest(2, 4),
        "8 greatest": Largest(8, by="greatest"),
        "mark 2 of 4 least": Largest(2, 4, "least", marks=True),
        "mark 3": Largest(3, marks=True),
    }
    assert [str(rule) for rule in texts.values()] == list(texts)
    assert [parse_rule(text) for text in texts] == list(texts.values())
    assert parse_rule("8 greater") is None
