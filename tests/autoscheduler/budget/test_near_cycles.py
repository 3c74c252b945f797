"""Decisions are compared by arithmetic all at once, and each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fuseflow.autoscheduler.budget.costs import DecisionCosts
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.lane_models import Deal
from fuseflow.autoscheduler.budget.settings import SETTINGS


class Range:
    """A range of a kind; those of one kind have one key."""

    order = ("i",)

    def __init__(self, key: int) -> None:
        self.key = key


class Known:
    """Cycles by the lanes of `i`; those of 3 lanes are not known."""

    def __init__(self) -> None:
        self.asked = list[list[RegionDecision]]()

    def __call__(self, ordered: OrderedRange, decision: RegionDecision) -> None:
        return None

    def near(self, ordered: OrderedRange, decisions: Sequence[RegionDecision]) -> list[float | None]:
        self.asked.append(list(decisions))
        return [None if decision.width == 3 else 1000.0 / decision.width for decision in decisions]


EDGE, OTHER = (cast(OrderedRange, Range(key)) for key in range(2))


def costs(known: Known) -> DecisionCosts:
    return DecisionCosts(cast(Any, known))


def deal(count: int, least: float) -> Deal:
    return Deal((("i", count),), cast(Any, np.zeros(1)), least)


def test_what_was_asked_for_is_kept():
    known = Known()
    own = costs(known)
    decisions = [RegionDecision(("i",), (("i", count),)) for count in (2, 3, 4, 2)]
    assert own.near(EDGE, decisions) == [500.0, None, 250.0, 500.0]
    assert own.near(EDGE, decisions[::-1]) == [500.0, 250.0, None, 500.0]
    assert own.near(OTHER, decisions[:1]) == [500.0]
    assert [len(asked) for asked in known.asked] == [3, 1]


def test_the_fewest_cycles_come_first_and_those_that_promise_more_are_left():
    compared = costs(Known()).compared(EDGE, [deal(8, 10), deal(3, 90), deal(4, 200), deal(2, 300)], None)
    assert compared == [(90, compared[0][1]), (125.0, compared[1][1])]
    assert [own.lanes for _, own in compared] == [(("i", 3),), (("i", 8),)]


def test_so_many_are_compared():
    known = Known()
    many = [deal(count, 0) for count in range(4, 4 + 2 * SETTINGS.max_compared)]
    assert len(costs(known).compared(EDGE, many, 256)) == SETTINGS.max_compared
    assert len(known.asked) == 1 and all(decision.depth == 256 for decision in known.asked[0])
