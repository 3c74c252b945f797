"""Selects one option from each of several groups that share a budget, so that the slowest selected option is as fast as possible.

The lanes of the stages of a region are such groups: each stage takes `work / lanes` cycles, all stages run at once, and their
lanes add up. Of selections that are equally fast, the one whose numbers have the least sum is taken, and of these the first. So
there is one best selection, and all releases of the solver find it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from fuseflow.cp_sat import CpSatProblem, Objective

Amounts: TypeAlias = tuple[int, ...]
"""The amount of each component of the budget."""
Selection: TypeAlias = tuple[int, ...]
"""The number of the option that is selected in each group."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option: the cycles that it takes, and how much of each component of the budget."""

    cycles: float
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class SelectionProblem:
    """Groups of options, preferred ones first, and for each component the limit of the sum over the selected options."""

    groups: tuple[tuple[Option, ...], ...]
    limits: Amounts

    def has_room(self, selection: Selection) -> bool:
        """Return whether a selection is within the limits."""
        taken = [group[at].amounts for group, at in zip(self.groups, selection, strict=True)]
        return all(sum(amounts[n] for amounts in taken) <= limit for n, limit in enumerate(self.limits))

    def fastest(self) -> Selection:
        """Return the best selection without limits: in each group the first option that is as fast as the slowest group can
        be."""
        cycles = max((min(option.cycles for option in group) for group in self.groups), default=0.0)
        return tuple(next(at for at, option in enumerate(group) if option.cycles <= cycles) for group in self.groups)


def select(problem: SelectionProblem) -> Selection | None:
    """Return the best selection, or None if none is within the limits. CP-SAT is used only if the limits matter. If it reaches
    its limit of work, it returns the best selection so far."""
    if not all(problem.groups):
        return None
    fastest = problem.fastest()
    return fastest if problem.has_room(fastest) else selected_by_cp_sat(problem)


def selected_by_cp_sat(problem: SelectionProblem) -> Selection | None:
    """Return the best selection by CP-SAT. Its first variable is the rank of the slowest group's cycles, and each option has one, too."""
    options = [option for group in problem.groups for option in group]
    ranks = {cycles: rank for rank, cycles in enumerate(sorted({option.cycles for option in options}))}
    solver = CpSatProblem([len(ranks) - 1, *(1 for _ in options)])
    ends = np.cumsum([1, *map(len, problem.groups)]).tolist()
    spans = [range(begin, end) for begin, end in pairwise(ends)]
    for span in spans:
        solver.require(dict.fromkeys(span, 1), least=1, most=1)
        solver.require({0: 1} | {number: -ranks[options[number - 1].cycles] for number in span}, least=0)
    for n, limit in enumerate(problem.limits):
        if sum(max(option.amounts[n] for option in group) for group in problem.groups) > limit:
            solver.require({number: option.amounts[n] for number, option in enumerate(options, 1)}, most=limit)
    slowest, *places = np.zeros((1 + len(spans), ends[-1]), dtype=np.int64)
    slowest[0] = 1
    for span, place in zip(spans, places, strict=True):
        place[span.start : span.stop] = range(len(span))
    most = [len(span) - 1 for span in spans]
    first = Objective(slowest, len(ranks) - 1), Objective(np.sum(places, axis=0), sum(most))
    solution = solver.minimize([*first, *map(Objective, places, most)])
    return None if solution is None else tuple(int(solution[span.start : span.stop].argmax()) for span in spans)
