"""Stream shapes prove which streams of a graph have the same structure.

Streams that meet in a node must be aligned token by token. The verifier proves that by computing a *shape* for every stream: the
nested lists without their values. A shape has the shape one level up as its parent, and its origin says how its innermost lists
were made; equal shapes are one object. A shape also determines coordinates: two coordinate streams of one shape are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

LOCAL = frozenset({"full", "accumulate", "permute", "union", "intersect", "flatten", "split"})
"""The origins that define each list by the lists of other structures at the same position. So they apply to one lane's share of a
structure as to the whole. A scan, a drop and a select are not local: their origin names their node, and every lane has another
node. Dealing in turn is not local, since the turn continues from list to list."""


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
        """The structure with the same entries in the same order, before a drop removed coordinates with nothing below them."""
        match self.origin:
            case ("drop", _, _, StreamShape() as kept):
                return kept.entries
        return self

    @property
    def depth(self) -> int:
        """The number of levels above this structure."""
        depth, shape = 0, self.parent
        while shape is not None:
            depth, shape = depth + 1, shape.parent
        return depth

    def covers(self, sizes: Sequence[int]) -> bool:
        """Return whether the structure has all coordinates of dimensions of these sizes, outermost first, and nothing above."""
        shape: StreamShape | None = self
        for size in reversed(sizes):
            if shape is None or shape.origin != ("full", size):
                return False
            shape = shape.parent
        return shape is not None and shape.parent is None

    def hangs_below(self, other: StreamShape) -> bool:
        """Return whether this structure is `other`, or has `other` among its ancestors."""
        levels = self.depth - other.depth
        return levels >= 0 and self.ancestor(levels) is other

    def ancestor(self, levels: int) -> StreamShape | None:
        """Return the structure `levels` levels up, or None if there are fewer levels."""
        shape: StreamShape | None = self
        for _ in range(levels):
            shape = shape.parent if shape else None
        return shape


class StreamShapes:
    """A factory of shapes that returns the same object for equal shapes.

    `derivations` has the shapes that first came about as a lane's part of another one, or as a whole of which lanes have the parts: the
    origin that says so, as an align or a merge.
    """

    def __init__(self) -> None:
        self.single = StreamShape(None, ("single",))
        self.derivations: dict[StreamShape, tuple[Hashable, ...]] = {}
        self._numbers: dict[StreamShape, int] = {}
        self._shapes: dict[tuple[StreamShape, tuple[Hashable, ...]], StreamShape] = {}
        self._aligned: dict[tuple[StreamShape, StreamShape, StreamShape], StreamShape] = {}
        self._undealt: dict[tuple[StreamShape, StreamShape], StreamShape | None] = {}
        """The whole structure by a lane's share and the structure dealt; None where the share does not determine it."""

    def below(self, parent: StreamShape, *origin: Hashable) -> StreamShape:
        """Return the structure below `parent` with an origin: the same one for equal origins below equal parents."""
        key = parent, origin
        if key not in self._shapes:
            self._shapes[key] = StreamShape(parent, origin)
            self._numbers[self._shapes[key]] = len(self._numbers)
        return self._shapes[key]

    def _derived(self, shape: StreamShape, known: int, *origin: Hashable) -> StreamShape:
        """Return a shape, and record its derivation `origin` if it is not among the first `known` shapes."""
        if self._numbers.get(shape, -1) >= known:
            self.derivations.setdefault(shape, origin)
        return shape

    def full(self, parent: StreamShape, size: int) -> StreamShape:
        """Return the structure with every coordinate 0..size-1 below every element of `parent`."""
        return self.below(parent, "full", size)

    def joined(self, kind: str, sides: Sequence[StreamShape], bounds: Sequence[int]) -> StreamShape:
        """Return the structure of a join of sides with one parent, whose coordinates are below `bounds`. The result is the
        structure of one side if this side provably has all coordinates of the join: of the first for `left`, of a side that holds
        the others for a union, of a side that the others hold for an intersection."""
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
        """Return the structure of a stream below `old` after its subtrees have been carried to `new`. If `new` is a lane of
        `old`, the result is the structure that the lane would compute from its share of `old`, where that is known."""
        if shape is old:
            return new
        key = shape, old, new
        if key not in self._aligned:
            dealt = new.origin[0] == "lane" and new.origin[1] is old
            known = len(self._numbers)
            part = (self._dealt(shape, old, new) if dealt else None) or self._carried(shape, old, new)
            if dealt and self._undealt.get((part, new)) is None:
                self._undealt[part, new] = shape  # the parts of all lanes define the whole, however a lane came by its part
            self._aligned[key] = self._derived(part, known, "align", shape, old, new)
        return self._aligned[key]

    def _carried(self, shape: StreamShape, old: StreamShape, new: StreamShape, *origin: Hashable) -> StreamShape:
        assert shape.parent is not None
        return self.below(self.aligned(shape.parent, old, new), *(origin or ("align", shape, old, new)))

    def _dealt(self, shape: StreamShape, old: StreamShape, lane: StreamShape) -> StreamShape | None:
        """Return the share of a structure below `old` of a `lane` of `old`, if the lane computes it alone, else None."""
        match shape.origin:
            case ("merge", *parts):
                return next((part for part in parts if isinstance(part, StreamShape) and part.hangs_below(lane)), None)
        origin = _mapped(shape.origin, lambda part: self.aligned(part, old, lane) if part.hangs_below(old) else None)
        return None if origin is None else self._carried(shape, old, lane, *origin)

    def lane(self, shape: StreamShape, lanes: int, k: int) -> StreamShape:
        """Return the structure that lane `k` of `lanes` gets if the elements of `shape` are dealt to the lanes in turn."""
        assert shape.parent is not None
        return self.below(shape.parent, "lane", shape, lanes, k)

    def merged(self, lanes: Sequence[StreamShape], levels: int) -> StreamShape | None:
        """Return the structure whose elements were dealt to `lanes`, `levels` levels above the innermost one. The result is None
        unless `lanes` are all lanes of one structure, in order."""
        dealt = [lane.ancestor(levels) for lane in lanes]
        match dealt[0]:
            case StreamShape(origin=("lane", StreamShape() as whole, *_)):
                in_order = [self.lane(whole, len(lanes), k) for k in range(len(lanes))]
                return self._gathered(lanes, in_order, len(self._numbers)) if dealt == in_order else None
        return None

    def _gathered(self, lanes: Sequence[StreamShape], dealt: Sequence[StreamShape], known: int) -> StreamShape:
        """Return the whole structure, given each lane's share of it, and the structure that was `dealt` to each lane. The first
        `known` structures belong to other streams."""
        parts = {self._undealt_shape(lane, at) for lane, at in zip(lanes, dealt, strict=True)}
        if len(parts) == 1 and (whole := parts.pop()) is not None:
            levels = lanes[0].depth - dealt[0].depth
            for level in range(levels):
                self._derived(_above(whole, level), known, "merge", *(_above(lane, level) for lane in lanes))
            return whole
        above = self._gathered([lane.parent for lane in lanes if lane.parent is not None], dealt, known)
        return self.below(above, "merge", *lanes)

    def _undealt_shape(self, shape: StreamShape, dealt: StreamShape) -> StreamShape | None:
        """Return the whole structure for the share of a lane, to which `dealt` was dealt; None if the share does not tell it."""
        key = shape, dealt
        if key not in self._undealt:
            self._undealt[key] = self._whole_of(shape, dealt)
        return self._undealt[key]

    def _whole_of(self, shape: StreamShape, dealt: StreamShape) -> StreamShape | None:
        _, whole, *_ = dealt.origin
        if shape is dealt:
            assert isinstance(whole, StreamShape)
            return whole
        if not shape.hangs_below(dealt) or shape.parent is None:
            return None
        origin = _mapped(shape.origin, lambda part: self._undealt_shape(part, dealt))
        above = self._undealt_shape(shape.parent, dealt)
        return None if origin is None or above is None else self.below(above, *origin)

    def dropped(self, parent: StreamShape, count: int, node: str, kept: StreamShape | None) -> list[StreamShape]:
        """Return the `count` levels that the drop `node` makes, outermost first. Where the drop can only remove coordinates with
        nothing below them, the innermost level has all entries of `kept`; else `kept` is None."""
        *outer, inner = self.chain(parent, count, "drop", node)
        return [*outer, inner if kept is None else self.below(inner.parent or parent, *inner.origin, kept)]

    def chain(self, parent: StreamShape, count: int, *origin: Hashable) -> list[StreamShape]:
        """Return `count` levels, one below the other, that one node makes below `parent` with an origin, outermost first."""
        levels = []
        for level in range(count):
            parent = self.below(parent, *origin, level)
            levels.append(parent)
        return levels


def _above(shape: StreamShape, levels: int) -> StreamShape:
    ancestor = shape.ancestor(levels)
    assert ancestor is not None
    return ancestor


def _mapped(origin: tuple[Hashable, ...], part: Callable[[StreamShape], StreamShape | None]) -> tuple[Hashable, ...] | None:
    """Return an origin with each structure in it replaced by the result of `part`. The result is None if `part` returns None for
    one of them, or the origin is not local."""
    if origin[0] not in LOCAL:
        return None
    mapped: list[Hashable] = []
    for word in origin:
        words = word if isinstance(word, frozenset) else (word,)
        parts = [part(w) if isinstance(w, StreamShape) else w for w in words]
        if None in parts:
            return None
        mapped.append(frozenset(parts) if isinstance(word, frozenset) else parts[0])
    return tuple(mapped)


def holds(outer: StreamShape, inner: StreamShape, bound: int) -> bool:
    """Return whether the lists of `outer` provably have all coordinates of the lists of `inner`, which has the same parent and
    coordinates below `bound`."""
    match outer.origin:
        case ("full", int(size)) if size >= bound:
            return True
        case ("union", frozenset() as sides) if inner in sides:
            return True
    return outer is inner


def lists_are_full_or_empty(shape: StreamShape | None) -> bool:
    """Return whether each innermost list of a shape provably has all coordinates of its dimension, or none. False for no shape.
    A list of a workspace has the coordinates of all lists that were summed, so it is full or empty if these are."""
    match shape:
        case StreamShape(origin=("full", _)):
            return True
        case StreamShape(origin=("accumulate", StreamShape() as summed, _)):
            return lists_are_full_or_empty(summed.ancestor(summed.depth - shape.depth - 1))
        case StreamShape(origin=("union" | "intersect", frozenset() as sides)):
            return all(isinstance(side, StreamShape) and lists_are_full_or_empty(side) for side in sides)
    return False
