"""Lanes are made until no others promise less. Where arithmetic was right about those that were made, others are to promise a gain."""

from __future__ import annotations

from math import inf

from fuseflow.autoscheduler.budget.costs import RegionCost
from fuseflow.autoscheduler.budget.decision import Lanes
from fuseflow.autoscheduler.budget.lane_models import Deal
from fuseflow.autoscheduler.budget.lane_trials import LaneTrials
from fuseflow.resources import Resources


def made(expected: dict[Lanes, float], takes: dict[Lanes, float], tried: int | None, compared: int | None = None) -> list[Lanes]:
    """Return the lanes that are made, given what is expected of them, and what they take; infinite ones stand still."""
    candidates = [(cycles, Deal(lanes, (), cycles / 2)) for lanes, cycles in expected.items()]
    trials, order = LaneTrials(candidates, len(candidates) if compared is None else compared, tried), list[Lanes]()
    for deal in trials:
        order.append(deal.lanes)
        cycles = takes[deal.lanes]
        trials.keep(deal, None if cycles == inf else RegionCost(cycles, Resources()), cycles == inf)
    return order


I16, I8, I4, K8 = ((("i", 16),), (("i", 8),), (("i", 4),), (("k", 8),))


def test_where_arithmetic_was_right_others_have_to_promise_a_gain() -> None:
    expected = {I16: 1000.0, I8: 1000.5, I4: 1000.6}
    takes = {I16: 1001.0, I8: 990.0, I4: 980.0}
    assert made(expected, takes, tried=6) == [I16]
    assert made(expected, takes, tried=None) == [I16, I8]  # all that promise less than what the best took


def test_where_arithmetic_was_wrong_all_are_made_that_promise_less() -> None:
    expected = {I16: 1000.0, I8: 1005.0, I4: 1100.0}
    assert made(expected, {I16: 1100.0, I8: 1090.0, I4: 1095.0}, tried=6) == [I16, I8]
    assert made(expected, {I16: 1001.0, I8: 1090.0, I4: 1095.0}, tried=6) == [I16]
    assert made({I16: 900.0, K8: 1000.0}, {I16: 1200.0, K8: 1100.0}, tried=6) == [I16, K8]


def test_more_are_made_where_arithmetic_says_nothing_of_them() -> None:
    expected = {I16: 1000.0, I8: 1000.5}
    assert made(expected, {I16: 1001.0, I8: 990.0}, tried=6, compared=1) == [I16, I8]


def test_lanes_of_indices_that_stand_still_twice_are_left() -> None:
    expected = {I16: 1000.0, I8: 1100.0, I4: 1200.0, K8: 1300.0}
    takes = {I16: inf, I8: inf, I4: 10.0, K8: 1300.0}
    assert made(expected, takes, tried=6) == [I16, I8, K8]
    assert made(expected, takes, tried=None) == [I16, I8, I4]


def test_no_more_are_made_than_are_tried() -> None:
    expected = {(("i", n),): 100.0 + n for n in range(2, 12)}
    takes = {lanes: 1000.0 - n for n, lanes in enumerate(expected)}
    assert len(made(expected, takes, tried=3, compared=0)) == 3
