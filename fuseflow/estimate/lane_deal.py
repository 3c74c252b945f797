"""Which elements each lane gets when the elements of some levels of a nest (the lists of a stream) are dealt in turn.

Lane k of N gets the elements k, k + N, k + 2 N, ... of a level, counted through all lists of the stream. If two levels are dealt,
each lane of the outer one contains further lanes, and deals the elements of the inner one to these in turn.

So the lane of an element follows from its fiber, and from the turn at which its list begins. Equal lists that begin at the same
turn of the same lane are one *start*, and there are far fewer starts than elements: a dense row of 3,072 elements that is dealt
to 8 lanes has 8. Outer dealt levels are dealt element by element, since turns in a lane depend on all before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fuseflow.estimate.counted.memo import CountMemo, TooMany
from fuseflow.estimate.counted.stream_trie import ElementCounts, FiberNest, Ints, PerFiber, take
from fuseflow.estimate.pipeline_batches import list_sums

MOST_ELEMENTS = 1 << 21
"""The most elements that are dealt one by one."""
FEW_ELEMENTS = 1 << 16
"""The most lists that are handled one by one, before equal ones are put together."""

ROOT: Ints = np.zeros(1, dtype=np.int64)
"""The array of one 0: the root element above all lists, its lane, and the number of elements before it."""


class DealtLevel(NamedTuple):
    """A level of a stream whose elements are dealt to `lanes` lanes. Level 0 is the outermost."""

    level: int
    lanes: int


class _Outer(NamedTuple):
    """The elements of the innermost but one of the dealt levels, in order: the number of the distinct element, its lane of
    `lanes`, and how many elements of that lane come `before` it."""

    element: Ints
    lane: Ints
    before: Ints
    lanes: int


class _Starts(NamedTuple):
    """Lists of a level, in columns: the lane that has the list, its fiber, its `rank` (how many elements of the innermost dealt
    level come before it in the lane), and how often it occurs; `times` of None means once each."""

    level: int
    lane: Ints
    fiber: Ints
    rank: Ints
    times: Ints | None


def shape_of(memo: CountMemo, nest: FiberNest) -> FiberNest:
    """Return one shared nest for all nests that differ in their coordinates alone, which do not change what lanes get."""

    def known() -> FiberNest:
        above = None if nest.above is None else shape_of(memo, nest.above)
        own, links = FiberNest(above, nest.links, nest.level), nest.links
        key = ("fibers", links.numbers.tobytes()) if isinstance(links, PerFiber) else ("elements", links.tobytes())
        return memo.once(("shape of nest", id(above), key, nest.level.pos.tobytes()), (above,), lambda: own)

    shape: FiberNest = memo.once("shape of nest", (nest,), known)
    return shape


class _Elements(NamedTuple):
    """Elements of lists, in columns: the number of the distinct element, its lane, and how often it occurs; `times` of None means
    once each."""

    element: Ints
    lane: Ints
    times: Ints | None


@dataclass(frozen=True, slots=True, eq=False)
class LaneDeal:
    """The elements of the innermost dealt level, by lane. All lanes are numbered in one row, the innermost dealt level fastest.

    `elements` is how many each lane has. `lists` and `filled` count its lists at each depth down to that level, and its filled
    lists. `inner` is the number of lanes of that level. `_one_by_one` are the elements of all starts, or None if it takes less to
    sum up all lanes of a fiber at once.
    """

    nest: FiberNest
    inner: int
    lanes: int
    elements: Ints
    lists: tuple[Ints, ...]
    filled: tuple[Ints, ...]
    _starts: _Starts
    _offsets: tuple[Ints, ...]
    _one_by_one: _Elements | None

    @classmethod
    def of(cls, memo: CountMemo, nest: FiberNest, dealt: Sequence[DealtLevel]) -> LaneDeal:
        """Deal the elements of these levels, the outermost first. The innermost level of `nest` is the last of them. Raises
        `TooMany` if outer levels have more elements than can be dealt one by one."""
        return memo.once(("deal", tuple(dealt)), (nest,), lambda: cls._of(memo, nest, dealt))

    @classmethod
    def _of(cls, memo: CountMemo, nest: FiberNest, dealt: Sequence[DealtLevel]) -> LaneDeal:
        *around, (_, inner) = dealt
        starts = _put_together(_first_starts(memo, nest, around, inner), nest, inner)
        while starts.level < len(nest.chain) - 1 and not _is_repeated(starts, nest, inner):
            starts = _put_together(_inside(memo, starts, nest, starts.level), nest, inner)
        offsets = tuple(_offsets(memo, nest, level) for level in range(starts.level, len(nest.chain)))
        own = None if _is_repeated(starts, nest, inner) else _elements(starts, nest, inner, offsets[-1])
        lists, filled = memo.once(("lists", tuple(around)), (nest,), lambda: cls._lists(memo, nest, around))
        in_lane, none = [np.repeat(numbers, inner) for numbers in (*lists, *filled)], np.zeros(0, dtype=np.int64)
        deal = cls(nest, inner, len(lists[0]) * inner, none, (), (), starts, offsets, own)
        reached = deal.sums((offsets[-1] < inner).astype(np.int64))
        every = deal.sums(np.ones(nest.level.elements, dtype=np.int64)) if own is None else _sums(own.lane, own.times, deal.lanes)
        return replace(deal, elements=every, lists=tuple(in_lane[: len(lists)]), filled=(*in_lane[len(lists) :], reached))

    @classmethod
    def _lists(cls, memo: CountMemo, nest: FiberNest, around: Sequence[DealtLevel]) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
        """Return, by lane of the outer levels (`around`), the lists at each depth, and the filled lists but of the innermost."""
        depth = around[-1].level + 1 if around else 0
        lists, filled, _ = memo.once(("batches", depth), (nest,), lambda: list_sums(nest, depth))
        if not around:
            return tuple(map(np.asarray, lists)), tuple(map(np.asarray, filled[:-1]))
        outer = cls.of(memo, nest.chain[depth - 1], around)
        inside = [outer.sums(np.asarray(numbers)) for numbers in (*lists, *filled[:-1])]
        return (*outer.lists, *inside[: len(lists)]), (*outer.filled, *inside[len(lists) :])

    def sums(self, counts: Ints) -> Ints:
        """Return the sum by lane of `counts`, which has a number for each distinct element, or one number for all."""
        if len(counts) == 1 and len(self.elements):
            alike: Ints = counts[0] * self.elements
            return alike
        if (own := self._one_by_one) is not None:
            each = np.broadcast_to(counts, self.nest.level.elements)[own.element]
            return _sums(own.lane, each if own.times is None else each * own.times, self.lanes)
        numbers, times = self._by_lane(counts, np.add), self._starts.times
        each = numbers if times is None else numbers * times[:, None]
        return _sums((self._starts.lane[:, None] * self.inner + np.arange(self.inner)).ravel(), each.ravel(), self.lanes)

    def largest(self, numbers: Ints) -> Ints:
        """Return by lane the largest of `numbers`, which has a number for each distinct element, or one for all."""
        most = np.zeros(self.lanes, dtype=np.int64)
        if (own := self._one_by_one) is not None:
            np.maximum.at(most, own.lane, np.broadcast_to(numbers, self.nest.level.elements)[own.element])
        else:
            lanes = self._starts.lane[:, None] * self.inner + np.arange(self.inner)
            np.maximum.at(most, lanes.ravel(), self._by_lane(numbers, np.maximum).ravel())
        return most

    def _by_lane(self, numbers: Ints, combine: np.ufunc) -> Ints:
        """Return for each start and each lane the numbers of the elements of its list, combined by `combine`."""
        inner, (innermost, *outer) = self.inner, list(zip(reversed(self.nest.chain), reversed(self._offsets), strict=False))
        by_turn: Ints = np.zeros(innermost[0].level.fibers * inner, dtype=np.int64)
        groups = innermost[0].level.owner * inner + _modulo(innermost[1], inner)
        if combine is np.add:
            by_turn = _sums(groups, np.broadcast_to(numbers, len(groups)), len(by_turn))
        else:
            combine.at(by_turn, groups, np.broadcast_to(numbers, len(groups)))
        by_turn, below = np.reshape(by_turn, (-1, inner)), innermost[0]
        for nest, offsets in outer:
            inside = np.where(below.link[:, None] >= 0, _turned(by_turn, below.link, offsets), 0)
            filled = nest.level.lengths > 0
            by_turn = np.zeros((nest.level.fibers, inner), dtype=np.int64)
            by_turn[filled] = combine.reduceat(inside, nest.level.pos[:-1][filled], axis=0)
            below = nest
        return _turned(by_turn, self._starts.fiber, self._starts.rank)


def _is_repeated(starts: _Starts, nest: FiberNest, inner: int) -> bool:
    """Return whether lists begin at so few turns that it takes less to sum up all lanes of their fibers at once."""
    inside = [nest.chain[level].level for level in range(starts.level, len(nest.chain))]
    at_once = sum(level.elements for level in inside) + inside[0].fibers
    return (at_once + len(starts.fiber)) * inner < int(inside[0].lengths[starts.fiber].sum())


def _turned(by_turn: Ints, fiber: Ints, rank: Ints) -> Ints:
    """Return the numbers by lane of fibers that begin at these ranks, given the numbers of each fiber at rank 0."""
    inner = by_turn.shape[1]
    turned: Ints = by_turn[fiber[:, None], _modulo(np.arange(inner)[None, :] - _modulo(rank, inner)[:, None] + inner, inner)]
    return turned


def _elements(starts: _Starts, nest: FiberNest, inner: int, offsets: Ints) -> _Elements:
    """Return all elements of the innermost lists, with their lanes. `offsets` has the position of each in its fiber."""
    row, element = nest.level.expanded(starts.fiber)
    turn = _modulo(starts.rank[row] + offsets[element], inner)
    return _Elements(element, starts.lane[row] * inner + turn, None if starts.times is None else starts.times[row])


def _modulo(numbers: Ints, divisor: int) -> Ints:
    """Return `numbers % divisor` for numbers that are not negative, which is faster this way."""
    return numbers - numbers // divisor * divisor


def _sums(groups: Ints, weights: Any, count: int) -> Ints:
    """Return the sums of weights by group, exact below 2^53; with `weights` of None, the number of members of each group."""
    sums: Ints = np.bincount(groups, weights, count).astype(np.int64)
    return sums


def _first_starts(memo: CountMemo, nest: FiberNest, around: Sequence[DealtLevel], inner: int) -> _Starts:
    """Return the lists of the level at which equal lists begin to be put together. `around` are the outer dealt levels."""
    if len(around) == 1 and nest.chain[around[0].level].elements > FEW_ELEMENTS:
        below = _below(memo, nest, around[0].level + 1)
        if below.min() == below.max():
            return _alike_starts(memo, nest, *around[0], inner, int(below[0]))
    return _explicit(memo, nest, around)


def _alike_starts(memo: CountMemo, nest: FiberNest, at: int, lanes: int, inner: int, below: int) -> _Starts:
    """Return the lists below the dealt level `at`, with `below` elements below each element. The rank of an element in its lane
    follows from its turn, and so does the turn at which its list begins. So turns repeat after `lanes * inner` elements."""
    outer, turns = nest.chain[at], lanes * inner
    starts = _Starts(0, ROOT, ROOT, ROOT, None)
    for level in range(at):
        starts = _put_together(_inside(memo, starts, outer, level), outer, turns)
    if int(outer.level.lengths[starts.fiber].sum()) > MOST_ELEMENTS:
        raise TooMany
    row, element = outer.level.expanded(starts.fiber)
    turn = _modulo(starts.rank[row] + _offsets(memo, outer, at)[element], turns)
    times = None if starts.times is None else starts.times[row]
    place = turn // lanes
    return _filled(_Starts(at + 1, turn - place * lanes, nest.chain[at + 1].link[element], place * below, times))


def _outer(memo: CountMemo, nest: FiberNest, dealt: Sequence[DealtLevel]) -> _Outer:
    """Deal all levels but the innermost dealt one, element by element. Without such levels, the whole stream is one element."""
    lanes_at, chain = dict(dealt), nest.chain[: dealt[-1].level + 1] if dealt else ()

    def one_by_one() -> _Outer:
        element, lane, before, count = ROOT, ROOT, ROOT, 1
        for depth, current in enumerate(chain):
            links, inner = current.link[element], lanes_at.get(depth, 1)
            lengths = take(current.level.lengths, links, 0)
            if int(lengths.sum()) > MOST_ELEMENTS:
                raise TooMany
            row, element = current.level.expanded(links)
            turn = (_before(lane, count, lengths) - np.cumsum(lengths) + lengths)[row] + np.arange(len(row))
            before = turn // inner
            lane, count = lane[row] * inner + turn - before * inner, count * inner
        return _Outer(element, lane, before, count)

    return memo.once(("outer", tuple(dealt)), chain[-1:], one_by_one)


def _before(lane: Ints, lanes: int, lengths: Ints) -> Ints:
    """Return for each element the sum of the lengths of those before it in its lane."""
    if lanes == 1:
        return np.cumsum(lengths) - lengths
    order = np.argsort(lane.astype(np.uint16) if lanes <= 1 << 16 else lane, kind="stable")
    sums = np.cumsum(lengths[order])
    ends = np.cumsum(np.bincount(lane, minlength=lanes))
    heads = np.append(0, sums)[np.append(0, ends[:-1])]
    before = np.empty_like(sums)
    before[order] = sums - lengths[order] - heads[lane[order]]
    return before


def _explicit(memo: CountMemo, nest: FiberNest, around: Sequence[DealtLevel]) -> _Starts:
    """Return the lists below the outer dealt levels (`around`), or further inside while they are few, with their ranks."""

    def starts() -> _Starts:
        outer = _outer(memo, nest, around)
        level = around[-1].level + 1 if around else 0
        below = _below(memo, nest, level)
        alike = len(below) > 0 and below.min() == below.max()
        rank = outer.before * below[0] if alike else _before(outer.lane, outer.lanes, below[outer.element])
        lists = _filled(_Starts(level, outer.lane, nest.chain[level].link[outer.element], rank, None))
        while level < len(nest.chain) - 1 and int(nest.chain[level].level.lengths[lists.fiber].sum()) <= FEW_ELEMENTS:
            lists = _inside(memo, lists, nest, level)
            level += 1
        return lists

    return memo.once(("starts", tuple(around)), (nest,), starts)


def _inside(memo: CountMemo, starts: _Starts, nest: FiberNest, level: int) -> _Starts:
    """Return the lists one level further inside of `starts`, which are lists of `level`."""
    row, element = nest.chain[level].level.expanded(starts.fiber)
    rank = starts.rank[row] + _offsets(memo, nest, level)[element]
    times = None if starts.times is None else starts.times[row]
    return _filled(_Starts(level + 1, starts.lane[row], nest.chain[level + 1].link[element], rank, times))


def _filled(starts: _Starts) -> _Starts:
    """Return the lists that are not empty."""
    level, lane, fiber, rank, times = starts
    there = fiber >= 0
    if there.all():
        return starts
    return _Starts(level, lane[there], fiber[there], rank[there], None if times is None else times[there])


def _put_together(starts: _Starts, nest: FiberNest, inner: int) -> _Starts:
    """Return the lists with turns in place of ranks, and equal ones at the same turn of a lane as one, if that makes fewer."""
    level, lane, fiber, rank, times = starts
    fibers, turn = nest.chain[level].level.fibers, _modulo(rank, inner)
    keys = (int(lane.max(initial=0)) + 1) * fibers * inner
    if keys >= len(lane):
        return _Starts(level, lane, fiber, turn, times)
    number = np.bincount((lane * fibers + fiber) * inner + turn, times, keys)
    (there,) = np.nonzero(number)
    rest, turn = np.divmod(there, inner)
    lane, fiber = np.divmod(rest, fibers)
    return _Starts(level, lane, fiber, turn, number[there].astype(np.int64))


def _below(memo: CountMemo, nest: FiberNest, depth: int) -> Ints:
    """Return the elements of a nest below each distinct element of its first `depth` levels."""
    below: Ints = memo.once(("below", depth), (nest,), lambda: ElementCounts(nest.above, nest.list_lengths).summed(depth))
    return below


def _offsets(memo: CountMemo, nest: FiberNest, level: int) -> Ints:
    """Return for each distinct element of a level how many elements of the nest come before it in its fiber."""

    def offsets() -> Ints:
        fibers = nest.chain[level].level
        if level == len(nest.chain) - 1:
            places: Ints = np.arange(fibers.elements) - fibers.pos[:-1][fibers.owner]
            return places
        below = _below(memo, nest, level + 1)
        before: Ints = np.cumsum(below) - below
        within: Ints = before - np.append(before, 0)[fibers.pos[:-1]][fibers.owner]
        return within

    result: Ints = memo.once(("offsets", level), (nest,), offsets)
    return result
