"""A range of a program whose lanes were chosen."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.autoscheduler.budget.costs import RegionCost
from fuseflow.autoscheduler.budget.decision import RegionDecision


@dataclass(frozen=True, slots=True, eq=False)
class DealtRange:
    """A range in an order with the lanes that take the fewest cycles within a budget.

    `least` is a bound: no lanes of the range in this order take fewer cycles within the budget.
    """

    decision: RegionDecision
    cost: RegionCost
    least: float
