"""Streams of different depth that are read together: which coordinates and stops of the outer streams belong to a token of the
innermost."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from fuseflow.samml.tokens import D, Stop, stop
from fuseflow.sim.reference.process import Fifo, Process, Wait, await_tokens


def seen_above(token: Stop, levels: int) -> Stop:
    """Return a stop as it appears in a stream that is `levels` shallower.

    >>> seen_above(stop(1, 3), 2)
    S1
    """
    return stop(max(token.low - levels, 0), token.high - levels)


class EnclosingStreams:
    """The coordinate streams around an inner stream, outermost first, each one level shallower than the next.

    A coordinate is *open*, and in `crds`, from the firing of its first inner value until the stop that ends its list. It is taken
    in that first firing; a coordinate with an empty list below has no inner value, so a separate firing takes it before the inner
    stop. A stop of an outer stream is taken with the inner stop that ends the same list.
    """

    __slots__ = ("crds", "depth", "fifos", "open", "process")

    def __init__(self, process: Process, fifos: Sequence[Fifo]) -> None:
        self.process, self.fifos = process, tuple(fifos)
        self.depth = len(self.fifos)
        self.open = 0
        self.crds: list[Any] = [None] * self.depth

    def childless(self, token: Stop) -> bool:
        """Return whether an inner stop ends an empty list below a coordinate that has not been taken."""
        return self.open < self.depth - token.low

    def await_coordinates(self, visible: int, levels: int) -> Generator[Wait, None, int]:
        """Wait for the coordinates to be opened, down to the outermost `levels`. Returns the cycle by which all are visible, at
        least `visible`."""
        return await_tokens(visible, self.fifos[self.open : levels])

    def enter(self, t: int, levels: int) -> None:
        """Take the coordinates that are to be opened, down to the outermost `levels`, in cycle `t`."""
        for level in range(self.open, levels):
            crd = self.fifos[level][0][0]
            if crd is D or crd.__class__ is Stop:
                raise self.process.error(f"stream {level} holds {crd} where a coordinate is due")
            self.crds[level] = crd
            self.fifos[level].take(t)
        self.open = max(self.open, levels)

    def ended_levels(self, token: Stop) -> range:
        """Return the levels of the outer streams whose lists an inner stop ends."""
        return range(max(self.depth - token.high, 0), self.depth)

    def ended_fifos(self, token: Stop) -> Sequence[Fifo]:
        """Return the FIFOs of the outer streams whose lists an inner stop ends."""
        return [self.fifos[level] for level in self.ended_levels(token)]

    def leave(self, t: int, token: Stop) -> None:
        """Take the stops of the outer streams whose lists the inner stop `token` ends, in cycle `t`."""
        for level in self.ended_levels(token):
            head, expected = self.fifos[level][0][0], seen_above(token, self.depth - level)
            if head is not expected:
                raise self.process.misaligned(head, expected)
            self.fifos[level].take(t)
        self.open = min(self.open, max(self.depth - 1 - token.high, 0))

    def finish(self, t: int) -> None:
        """Take the `D` of every outer stream in cycle `t`. Raise `SimulationError` if another token is there."""
        for fifo in self.fifos:
            if fifo[0][0] is not D:
                raise self.process.misaligned(fifo[0][0], D)
            fifo.take(t)
