"""A memo of counts, by the identity of the objects that they were counted from, and a budget for counting."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")

COUNT_BUDGET = 1 << 26
"""The most distinct elements that one count may take at once."""
MOST_PIECES = 512
"""The most pieces in which a graph is counted that takes more at once, where one program is estimated."""


class Uncountable(Exception):
    """Raised if an exact count needs a pattern that is not known, or takes too many elements."""


class TooMany(Uncountable):
    """Raised if an exact count would take more elements than the budget allows."""


@dataclass(slots=True)
class CountMemo:
    """A memo of counts, so that graphs that read the same tensors share their counts.

    `budget` is the most distinct elements that one count may take at once. A graph that takes more is counted in up to `pieces` pieces,
    which are smaller, so that no more memory is needed than before.
    """

    budget: int = COUNT_BUDGET
    pieces: int = 1
    _results: dict[Hashable, tuple[Any, Any]] = field(default_factory=dict)

    def once(self, kind: Hashable, objects: Iterable[Any], count: Callable[[], Value]) -> Value:
        """Return `count()`, or the result that it had before for an equal `kind` and the identical objects."""
        objects = tuple(objects)
        key = (kind, *map(id, objects))
        if key not in self._results:
            # The objects are kept, because an identity is unique only while its object lives.
            self._results[key] = (objects, count())
        result: Value = self._results[key][1]
        return result

    def forget(self, limit: int) -> None:
        """Forget all results if there are more than `limit`."""
        if len(self._results) > limit:
            self._results.clear()

    def afford(self, elements: int) -> None:
        """Raise `TooMany` if a count of `elements` elements exceeds the budget."""
        if elements > self.budget:
            raise TooMany
