"""One option from each of several groups that share a budget: the slowest of those chosen is to be as fast as possible.

The lanes of the stages of a region are such groups: each stage takes `work / lanes` cycles, all stages run at once, and their lanes
add up. Of choices that are equally fast, the one with the least sum of places is taken, and of these the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Amounts: TypeAlias = tuple[int, ...]
"""What is taken of each component of the budget."""
Selection: TypeAlias = tuple[int, ...]
"""The place of the option that is taken of each group."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option: the cycles that it takes, and its amounts."""

    cycles: float
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class SelectionProblem:
    """Groups of options, the ones that are preferred first, and what all of them together may take at most."""

    groups: tuple[tuple[Option, ...], ...]
    limits: Amounts

    def levels(self) -> list[float]:
        """Return the cycles of all options, in order and each once."""
        return sorted({option.cycles for group in self.groups for option in group})


def select_by_branches(problem: SelectionProblem) -> Selection | None:
    """Return the best selection by branch and bound: first the least cycles by bisection, then the least sum of places."""
    levels, low, high = problem.levels(), 0, len(problem.levels())
    while low < high:
        middle = (low + high) // 2
        if _Branches(problem, levels[middle]).first() is None:
            low = middle + 1
        else:
            high = middle
    return None if low == len(levels) else _Branches(problem, levels[low]).least()


class _Branches:
    """The options that are as fast as is asked for, group by group, with what the groups behind each take at least."""

    def __init__(self, problem: SelectionProblem, cycles: float) -> None:
        self.limits = problem.limits
        self.groups = [[(at, o.amounts) for at, o in enumerate(group) if o.cycles <= cycles] for group in problem.groups]
        self.rest: list[Amounts] = [tuple(0 for _ in problem.limits)]
        self.places = [0]
        for group in reversed(self.groups):
            least = [min((amounts[n] for _, amounts in group), default=0) for n in range(len(problem.limits))]
            self.rest.append(tuple(a + b for a, b in zip(self.rest[-1], least, strict=True)))
            self.places.append(self.places[-1] + min((at for at, _ in group), default=0))
        self.rest.reverse()
        self.places.reverse()

    def first(self) -> Selection | None:
        """Return any selection within the limits."""
        return self._search(any_will_do=True)

    def least(self) -> Selection | None:
        """Return the selection within the limits with the least sum of places, and of these the first."""
        return self._search(any_will_do=False)

    def _search(self, any_will_do: bool) -> Selection | None:
        best: Selection | None = None
        fewest = float("inf")
        waiting: list[tuple[Selection, Amounts, int]] = [((), tuple(0 for _ in self.limits), 0)]
        while waiting:
            chosen, used, places = waiting.pop()
            at = len(chosen)
            if places + self.places[at] >= fewest or not self._fits(used, at):
                continue
            if at == len(self.groups):
                best, fewest = chosen, places
                if any_will_do:
                    return best
                continue
            for place, amounts in reversed(self.groups[at]):
                waiting.append(((*chosen, place), tuple(a + b for a, b in zip(used, amounts, strict=True)), places + place))
        return best

    def _fits(self, used: Sequence[int], at: int) -> bool:
        return all(u + r <= limit for u, r, limit in zip(used, self.rest[at], self.limits, strict=True))
