"""What was counted before: results by the identity of what they were counted from, and how much counting is allowed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")

COUNT_BUDGET = 1 << 26
"""Distinct elements that one count may take; beyond, it is estimated."""


class Uncountable(Exception):
    """An exact count would take more elements than the budget has, or needs what is not known."""


@dataclass(slots=True)
class CountMemo:
    """Keeps what it is asked for, so that a graph that reads the same tensors finds what another one counted."""

    budget: int = COUNT_BUDGET
    _found: dict[Hashable, tuple[Any, Any]] = field(default_factory=dict)

    def once(self, what: Hashable, of: Iterable[Any], count: Callable[[], Value]) -> Value:
        """`count()`, or what it was for the very same objects."""
        of = tuple(of)
        key = (what, *(id(each) for each in of))
        if key not in self._found:
            self._found[key] = (of, count())  # `of` is kept: an identity is one only as long as its object lives
        result: Value = self._found[key][1]
        return result

    def forget(self, limit: int) -> None:
        """Forget everything, if that is more than `limit` results."""
        if len(self._found) > limit:
            self._found.clear()

    def afford(self, elements: int) -> None:
        """Raise `Uncountable` if a count of so many elements is too much."""
        if elements > self.budget:
            raise Uncountable
