"""Stream shapes prove which streams of a graph have the same structure.

Streams that meet in a node must be aligned token by token. The verifier proves that by computing a *shape* for every stream: the
nested lists without their values. A shape hangs below the shape one level up, and says how its innermost lists came about; equal
shapes are one object. A shape also fixes its coordinates: two coordinate streams of one shape are equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class StreamShape:
    """The structure of a stream. `parent` is the structure one level up, or None for a single element. `origin` says what made the
    innermost lists."""

    parent: StreamShape | None
    origin: tuple[Hashable, ...]

    @property
    def full(self) -> bool:
        """Whether every list holds every coordinate of its dimension."""
        return self.origin[0] == "full"

    @property
    def entries(self) -> StreamShape:
        """The structure that has the same entries in the same order, before coordinates with nothing below them left it."""
        match self.origin:
            case ("drop", _, _, StreamShape() as kept):
                return kept.entries
        return self

    def ancestor(self, levels: int) -> StreamShape | None:
        """Return the structure `levels` levels up, or None if there are not so many levels."""
        shape: StreamShape | None = self
        for _ in range(levels):
            shape = shape.parent if shape else None
        return shape


class StreamShapes:
    """A factory of shapes that returns the same object for equal shapes."""

    def __init__(self) -> None:
        self.single = StreamShape(None, ("single",))
        self._shapes: dict[tuple[StreamShape, tuple[Hashable, ...]], StreamShape] = {}

    def below(self, parent: StreamShape, *origin: Hashable) -> StreamShape:
        """Return the structure one level below `parent`. Equal origins below equal parents are the same structure."""
        key = parent, origin
        if key not in self._shapes:
            self._shapes[key] = StreamShape(parent, origin)
        return self._shapes[key]

    def full(self, parent: StreamShape, size: int) -> StreamShape:
        """Return the structure with every coordinate 0..size-1 below every element of `parent`."""
        return self.below(parent, "full", size)

    def joined(self, kind: str, sides: Sequence[StreamShape], bounds: Sequence[int]) -> StreamShape:
        """Return the structure of a join of sides with one parent, whose coordinates are below `bounds`. It is that of one side if this
        side provably has all coordinates of the join: the first for `left`, one that holds the others for a union, one that the others
        hold for an intersection."""
        if kind == "left":
            return sides[0]
        limits: dict[StreamShape, int] = {}
        for side, limit in zip(sides, bounds, strict=True):
            limits[side] = min(limit, limits.get(side, limit))
        if kind == "union":
            deciding = [side for side in limits if all(holds(side, other, limits[other]) for other in limits)]
        else:
            deciding = [side for side in limits if all(holds(other, side, limits[side]) for other in limits)]
        if deciding:
            return deciding[0]
        parent = sides[0].parent
        assert parent is not None
        return self.below(parent, kind, frozenset(sides))

    def aligned(self, shape: StreamShape, old: StreamShape, new: StreamShape) -> StreamShape:
        """Return the structure of a stream below `old` after its subtrees have been carried to `new`."""
        if shape is old:
            return new
        assert shape.parent is not None
        return self.below(self.aligned(shape.parent, old, new), "align", shape, old, new)

    def lane(self, shape: StreamShape, lanes: int, k: int) -> StreamShape:
        """Return the structure that lane `k` of `lanes` gets if the elements of `shape` are dealt to the lanes in turn."""
        assert shape.parent is not None
        return self.below(shape.parent, "lane", shape, lanes, k)

    def merged(self, lanes: Sequence[StreamShape], levels: int) -> StreamShape | None:
        """Return the structure whose elements were dealt to `lanes`, `levels` levels above the innermost one. The result is None unless
        these are all lanes of one structure, in order."""
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

    def dropped(self, parent: StreamShape, count: int, node: str, kept: StreamShape | None) -> list[StreamShape]:
        """Return the `count` levels that the drop `node` makes, outermost first. Where only coordinates with nothing below them can leave,
        the innermost level has all entries of `kept`; else that is None."""
        *outer, inner = self.chain(parent, count, "drop", node)
        return [*outer, inner if kept is None else self.below(inner.parent or parent, *inner.origin, kept)]

    def chain(self, parent: StreamShape, count: int, *origin: Hashable) -> list[StreamShape]:
        """Return `count` levels that one node makes, outermost first."""
        levels = []
        for level in range(count):
            parent = self.below(parent, *origin, level)
            levels.append(parent)
        return levels


def holds(outer: StreamShape, inner: StreamShape, bound: int) -> bool:
    """Return whether the lists of one structure provably have all coordinates of the lists of another one below the same parent, which are
    below `bound`."""
    match outer.origin:
        case ("full", int(size)) if size >= bound:
            return True
        case ("union", frozenset() as sides) if inner in sides:
            return True
    return outer is inner
