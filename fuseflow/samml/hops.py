"""What nodes with places on an array have: hops, the registers between tiles, of edges and of nodes of several tiles; and turns at a port
to the memory that nodes share."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.errors import GraphError

HOP_SLOTS = (0, 2)
"""The slots that a hop may have: none is a register whose reader gives its slots back, two are a small FIFO."""
MOST_HOPS = 1 << 16
"""The most hops of an edge, or of a node."""


@dataclass(frozen=True, slots=True)
class Hops:
    """The hops of an edge, each of which takes a cycle forth and a cycle back.

    With two `slots`, a hop is a FIFO of two tokens: it passes one on in every cycle in which there is room behind it. With none,
    the `count` hops are registers without a stop: the writer knows how many slots the reader's FIFO has, and learns that one
    is free `count` cycles later than without hops. Raises `GraphError` for numbers that no edge has.
    """

    count: int
    slots: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.count <= MOST_HOPS:
            raise GraphError(f"an edge has {self.count:,} hops", hint=f"it has 0 to {MOST_HOPS:,}")
        if self.slots not in HOP_SLOTS:
            raise GraphError(f"a hop has {self.slots} slots", hint="a hop has 2 slots, or 0 as a plain register")


@dataclass(frozen=True, slots=True)
class NodeHops:
    """The hops between the tiles of a node, and those to its port.

    What a node gives is visible `inner` cycles later, and an accumulation goes on `loop` cycles later behind a fiber. Its requests to the
    memory arrive `port` cycles later, and so do the answers. Raises `GraphError` for numbers that no node has.
    """

    inner: int = 0
    loop: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        if not all(0 <= count <= MOST_HOPS for count in (self.inner, self.loop, self.port)):
            raise GraphError(f"a node has hops below 0, or more than {MOST_HOPS:,}: {self}")


NO_HOPS = NodeHops()
"""The hops of a node whose tiles are one."""


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
