"""The agenda of a search: how many candidates its steps may still try, to report progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

SearchProgress: TypeAlias = Callable[[str, int], None]
"""A function that is called with the candidate that a search tries next, as text, and how many may follow it."""


@dataclass(slots=True)
class Agenda:
    """The steps of a search, each with the candidates that it tries at most. A step that ends early leaves none."""

    report: SearchProgress = lambda text, left: None
    _left: dict[str, int] = field(default_factory=dict)
    _step: str = ""

    def expect(self, step: str, most: int) -> None:
        """State that a step tries at most `most` candidates."""
        self._left[step] = most

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the candidates that are tried in the block for this step. After the block, the step has none left."""
        before, self._step = self._step, name
        try:
            yield
        finally:
            self._step = before
            self._left[name] = 0

    def trying(self, text: str) -> None:
        """Report the candidate that the current step tries next."""
        self._left[self._step] = max(0, self._left.get(self._step, 0) - 1)
        self.report(text, sum(self._left.values()))
