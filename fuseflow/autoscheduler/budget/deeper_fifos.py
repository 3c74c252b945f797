"""Deeper FIFOs for a range whose lanes are chosen already: the fewest slots that gain as much as the deepest ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import TypeAlias

from fuseflow.autoscheduler.budget.costs import DealtRange, RegionCost
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.machine.machine import Machine
from fuseflow.resources.budget import Budget

FittingCost: TypeAlias = Callable[[OrderedRange, RegionDecision, Budget], RegionCost | None]
"""The cost of a decision, None if the region cannot have it within the budget."""
DecisionCycles: TypeAlias = Callable[[OrderedRange, list[RegionDecision]], list[float | None]]
"""About how many cycles a range takes under each of some decisions, None where nothing is known."""


@dataclass(frozen=True, slots=True)
class DeeperFifos:
    """Chooses among deeper FIFOs on a machine. Arithmetic ranks them first, and then their costs are estimated."""

    machine: Machine
    fitting: FittingCost
    near: DecisionCycles

    def best(self, edge: OrderedRange, budget: Budget, dealt: DealtRange | None) -> DealtRange | None:
        """Return a range with the deepest FIFOs that have room, if it takes fewer cycles with them, else as it is. `dealt` is the
        range with its lanes, None if it has no room."""
        if dealt is None or self.machine.first_depth is None or self.machine.rules == "comal":
            return dealt
        if dealt.cost.least >= SETTINGS.gain * dealt.cost.cycles:
            return dealt
        known = self._known(edge, budget, dealt)
        return self._deepest(edge, budget, dealt) if known is None else self._least(edge, budget, dealt, known)

    def _least(self, edge: OrderedRange, budget: Budget, dealt: DealtRange, known: list[RegionDecision]) -> DealtRange:
        """Return the range with the deepest FIFOs of the `known` decisions that have room and take fewer cycles, else as it
        is."""
        costs = ((decision, self.fitting(edge, decision, budget)) for decision in reversed(known))
        better = ((d, cost) for d, cost in costs if cost is not None and cost.cycles < SETTINGS.gain * dealt.cost.cycles)
        return next((DealtRange(d, cost, min(dealt.least, cost.cycles)) for d, cost in better), dealt)

    def _deepest(self, edge: OrderedRange, budget: Budget, dealt: DealtRange) -> DealtRange:
        """Return the range with FIFOs that are made deeper and deeper while they have room."""
        for depth in SETTINGS.deep_fifos:
            decision = replace(dealt.decision, depth=depth)
            cost = self.fitting(edge, decision, budget)
            if cost is None:
                break
            if cost.cycles < SETTINGS.gain * dealt.cost.cycles:
                dealt = DealtRange(decision, cost, min(dealt.least, cost.cycles))
        return dealt

    def _known(self, edge: OrderedRange, budget: Budget, dealt: DealtRange) -> list[RegionDecision] | None:
        """Return decisions with deeper and deeper FIFOs. Each has room, and by arithmetic takes fewer cycles than the one before
        it. None if arithmetic cannot tell."""
        deeper, fewest = list[RegionDecision](), dealt.cost.cycles
        decisions = [replace(dealt.decision, depth=depth) for depth in SETTINGS.deep_fifos]
        for decision, depth, near in zip(decisions, SETTINGS.deep_fifos, self.near(edge, decisions), strict=True):
            if near is None:
                return None
            if near < SETTINGS.gain * fewest and self._has_room(dealt, depth, budget):
                deeper, fewest = [*deeper, decision], near
        return deeper

    def _has_room(self, dealt: DealtRange, depth: int, budget: Budget) -> bool:
        """Return whether a range is likely to have room with FIFOs of `depth` slots, given the bytes of the FIFOs that it has."""
        slots, used = dealt.decision.depth or self.machine.first_depth, dealt.cost.resources.fifo
        return slots is None or used is None or used * depth / slots <= budget.limits.get("fifo", inf)
