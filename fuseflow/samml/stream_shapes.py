"""Shapes: which streams of a graph provably have the same structure.

Streams that meet in a node must be aligned token by token. The verifier proves that by computing a *shape* for every stream: the
nested lists without their values. A shape hangs below the shape one level up, and says how its innermost lists came about; equal
shapes are one object. A shape also fixes its coordinates: two coordinate streams of one shape are equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class StreamShape:
    """The structure of a stream. `parent`: the structure one level up (None: a single element); `origin`: what made the innermost
    lists."""

    parent: StreamShape | None
    origin: tuple[Hashable, ...]

    @property
    def full(self) -> bool:
        """Whether every list holds every coordinate of its dimension."""
        return self.origin[0] == "full"

    def ancestor(self, levels: int) -> StreamShape | None:
        """The structure `levels` levels up."""
        shape: StreamShape | None = self
        for _ in range(levels):
            shape = shape.parent if shape else None
        return shape


class StreamShapes:
    """Makes shapes, one object for equal ones."""

    def __init__(self) -> None:
        self.single = StreamShape(None, ("single",))
        self._shapes: dict[tuple[StreamShape, tuple[Hashable, ...]], StreamShape] = {}

    def below(self, parent: StreamShape, *origin: Hashable) -> StreamShape:
        """One level deeper; equal origins below equal parents are the same structure."""
        key = parent, origin
        if key not in self._shapes:
            self._shapes[key] = StreamShape(parent, origin)
        return self._shapes[key]

    def full(self, parent: StreamShape, size: int) -> StreamShape:
        """Every coordinate 0..size-1 below every element."""
        return self.below(parent, "full", size)

    def joined(self, kind: str, sides: Sequence[StreamShape]) -> StreamShape:
        """The structure of a join: that of side 0 for `left`, and of every side where all are equal. Sides have one parent."""
        if kind == "left" or len(set(sides)) == 1:
            return sides[0]
        parent = sides[0].parent
        assert parent is not None
        return self.below(parent, kind, frozenset(sides))

    def aligned(self, shape: StreamShape, old: StreamShape, new: StreamShape) -> StreamShape:
        """The structure of a stream below `old` after its subtrees are carried to `new`."""
        if shape is old:
            return new
        assert shape.parent is not None
        return self.below(self.aligned(shape.parent, old, new), "align", shape, old, new)

    def lane(self, shape: StreamShape, lanes: int, k: int) -> StreamShape:
        """What lane `k` of `lanes` gets of a structure whose elements are dealt to them in turn."""
        assert shape.parent is not None
        return self.below(shape.parent, "lane", shape, lanes, k)

    def merged(self, lanes: Sequence[StreamShape], levels: int) -> StreamShape | None:
        """The structure of which `lanes` were dealt the elements, `levels` levels above these. None unless they are all the lanes of
        one structure, in order."""
        if levels > 0:
            match lanes[0].origin:
                case ("align", StreamShape() as carried, StreamShape() as old, _) if carried.ancestor(levels) is old and all(
                    s.origin == ("align", carried, old, self.lane(old, len(lanes), k)) for k, s in enumerate(lanes)
                ):
                    return carried  # what lay below each coordinate went to the lane of the coordinate
            parents = [lane.parent for lane in lanes if lane.parent is not None]
            above = self.merged(parents, levels - 1) if len(parents) == len(lanes) else None
            if above is None:
                return None
            equal = lanes[0].full and len({lane.origin for lane in lanes}) == 1
            return self.below(above, *lanes[0].origin) if equal else self.below(above, "merge", *lanes)
        match lanes[0].origin:
            case ("lane", StreamShape() as dealt, *_) if all(s is self.lane(dealt, len(lanes), k) for k, s in enumerate(lanes)):
                return dealt
        return None

    def chain(self, parent: StreamShape, count: int, *origin: Hashable) -> list[StreamShape]:
        """`count` levels that one node makes, outermost first."""
        levels = []
        for level in range(count):
            parent = self.below(parent, *origin, level)
            levels.append(parent)
        return levels
