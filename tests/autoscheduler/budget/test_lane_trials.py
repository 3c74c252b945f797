"""Lanes are made until no others promise less: what those that were made took says how wrong arithmetic is."""

from __future__ import annotations

from math import inf

from fuseflow.autoscheduler.budget.costs import RegionCost
from fuseflow.autoscheduler.budget.deals import Deal
from fuseflow.autoscheduler.budget.decision import Lanes
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


def test_arithmetic_is_wrong_about_others_as_about_the_first() -> None:
    expected = {I16: 1000.0, I8: 1005.0, I4: 1100.0}
    takes = {I16: 1100.0, I8: 1090.0, I4: 1095.0}
    assert made(expected, takes, tried=6) == [I16]
    assert made(expected, takes, tried=None) == [I16, I8]  # all that promise less than what the best took


def test_more_are_made_where_arithmetic_says_nothing_of_them() -> None:
    expected = {I16: 1000.0, I8: 1005.0}
    assert made(expected, {I16: 1100.0, I8: 1090.0}, tried=6, compared=1) == [I16, I8]


def test_one_that_takes_less_than_expected_lets_hope_for_more() -> None:
    assert made({I16: 1000.0, K8: 1010.0}, {I16: 1000.0, K8: 900.0}, tried=6) == [I16]
    assert made({I16: 900.0, K8: 1000.0}, {I16: 1200.0, K8: 1100.0}, tried=6) == [I16]
    assert made({I16: 1000.0, K8: 1010.0}, {I16: 950.0, K8: 940.0}, tried=None) == [I16]


def test_lanes_of_indices_that_stand_still_twice_are_left() -> None:
    expected = {I16: 1000.0, I8: 1100.0, I4: 1200.0, K8: 1300.0}
    takes = {I16: inf, I8: inf, I4: 10.0, K8: 1300.0}
    assert made(expected, takes, tried=6) == [I16, I8, K8]
    assert made(expected, takes, tried=None) == [I16, I8, I4]


def test_no_more_are_made_than_are_tried() -> None:
    expected = {(("i", n),): 100.0 + n for n in range(2, 12)}
    takes = {lanes: 1000.0 - n for n, lanes in enumerate(expected)}
    assert len(made(expected, takes, tried=3, compared=0)) == 3
