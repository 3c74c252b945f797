"""The rest of a search: how many candidates its steps may still try."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

SearchProgress: TypeAlias = Callable[[str, int], None]
"""A function that is told what a search tries next, and how many candidates may follow it."""


@dataclass(slots=True)
class Agenda:
    """The steps of a search, each with the candidates that it tries at most. A step that ends early leaves none."""

    report: SearchProgress = lambda text, left: None
    _left: dict[str, int] = field(default_factory=dict)
    _step: str = ""

    def expect(self, step: str, most: int) -> None:
        """Let a step try `most` candidates at most."""
        self._left[step] = most

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the candidates that are tried in the block for a step. After the block, the step has none left."""
        before, self._step = self._step, name
        try:
            yield
        finally:
            self._step = before
            self._left[name] = 0

    def trying(self, text: str) -> None:
        """Report a candidate of the step that goes on."""
        self._left[self._step] = max(0, self._left.get(self._step, 0) - 1)
        self.report(text, sum(self._left.values()))
