"""The turns of nodes that share a port to the memory."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.errors import GraphError

MOST_TURNS = 64
"""The most nodes that share a port."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of a node at a port that `of` nodes share, in a fixed order: it fires on values only in cycles t with
    t mod `of` = `number`. Raises `GraphError` for a turn that no node has."""

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.of <= MOST_TURNS:
            raise GraphError(f"a port has {self.of:,} turns", hint=f"1 to {MOST_TURNS} nodes share a port")
        if not 0 <= self.number < self.of:
            raise GraphError(f"turn {self.number:,} of {self.of} does not come", hint="the first turn is 0")

    def next(self, cycle: int) -> int:
        """Return the first cycle of the turn that is not before a cycle.

        >>> Turn(1, 4).next(2)
        5
        """
        return cycle + (self.number - cycle) % self.of

    def interval(self, interval: int) -> int:
        """Return the least cycles from one firing on a value to the next, at a node that may fire every `interval` cycles.

        >>> Turn(1, 4).interval(5)
        8
        """
        return -(-interval // self.of) * self.of
