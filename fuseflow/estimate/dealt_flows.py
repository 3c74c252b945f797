"""The flows of streams in lanes, from their counted lists: which elements each lane gets when they are dealt in turn, and what is below.

Lane k of N gets the elements k, k + N, k + 2 N, ... of a level, counted through all lists of the stream. Two dealt levels are lanes in
lanes: inside a lane of the outer one, the elements of the inner one are dealt in turn again. So the flow of a stream in all lanes takes
no more than the lane of each element of the innermost dealt level, and sums of what is below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from fuseflow.estimate.batches import as_number, batch_flow
from fuseflow.estimate.counted.fork_merge import split_by_turn
from fuseflow.estimate.counted.memo import CountMemo, TooMany
from fuseflow.estimate.counted.nests import CountedStream, ElementCounts, FiberLevel, FiberNest, Ints, take
from fuseflow.estimate.flows import Flow, Number

MOST_ELEMENTS = 1 << 21
"""The most elements that are dealt one by one."""


class DealtLevel(NamedTuple):
    """A level of a stream whose elements are dealt to so many lanes. Level 0 is the outermost."""

    level: int
    lanes: int


@dataclass(frozen=True, slots=True, eq=False)
class DealtElements:
    """The elements of the innermost dealt level: which distinct element each is, its lane, and how often it is in it.

    Lanes are numbered through, the innermost dealt level fastest. `lists` and `filled` are the lists at each depth down to that level, and
    those that are not empty, by lane.
    """

    element: Ints
    lane: Ints
    times: Ints | None
    lanes: int
    lists: tuple[Ints, ...]
    filled: tuple[Ints, ...]

    def sums(self, counts: Ints) -> Ints:
        """Return the sums by lane of a number for each distinct element, or of one number that holds for all."""
        each = (
            self.times if len(counts) == 1 else counts[self.element] if self.times is None else counts[self.element] * self.times
        )
        sums: Ints = np.bincount(self.lane, weights=each, minlength=self.lanes).astype(np.int64)
        return sums * counts[0] if len(counts) == 1 else sums


def deal(memo: CountMemo, nest: FiberNest, dealt: Sequence[DealtLevel]) -> DealtElements:
    """Deal the elements of these levels, the outermost first, of which `nest` has the innermost as its own. Raises `TooMany` if lanes in
    lanes have more elements than can be dealt one by one.
    """
    return memo.once(
        ("deal", tuple(dealt)), (nest,), lambda: _once(memo, nest, dealt[0]) if len(dealt) == 1 else _nested(nest, dealt)
    )


def _once(memo: CountMemo, nest: FiberNest, dealt: DealtLevel) -> DealtElements:
    lanes = dealt.lanes
    above, links, turns, fibers = split_by_turn(memo, nest, lanes)
    lengths = nest.level.lengths[fibers]
    pos = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
    times = FiberNest(above, links, FiberLevel(pos, np.zeros(int(pos[-1]), dtype=np.int64), nest.level.size)).times
    row, element = nest.level.expanded(fibers)
    lane = (np.arange(len(element)) - pos[:-1][row] + turns[row]) % lanes
    reached = (np.arange(lanes)[None, :] - turns[:, None]) % lanes < lengths[:, None]
    filled = [np.full(lanes, outer.filled) for outer in nest.chain[:-1]]
    return DealtElements(
        element,
        lane,
        times[row],
        lanes,
        tuple(np.full(lanes, outer.lists) for outer in nest.chain),
        (*filled, (times[:, None] * reached).sum(axis=0)),
    )


def _nested(nest: FiberNest, dealt: Sequence[DealtLevel]) -> DealtElements:
    """Deal elements to lanes in lanes, all one by one in their order."""
    lanes_at = dict(dealt)
    total = prod(lanes for _, lanes in dealt)
    element, lane, count = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1
    lists, filled = list[Ints](), list[Ints]()
    for depth, current in enumerate(nest.chain):
        links = current.link[element]
        size = int(np.where(links >= 0, current.level.lengths[np.maximum(links, 0)], 0).sum()) if current.level.fibers else 0
        if size > MOST_ELEMENTS:
            raise TooMany
        inner = lanes_at.get(depth, 1)
        lists.append(np.repeat(np.bincount(lane, minlength=count), total // count))
        row, element = current.level.expanded(links)
        lane = lane[row] * inner + _turns(lane[row], count) % inner if inner > 1 else lane[row]
        count *= inner
        pairs = np.unique(row * count + lane)
        filled.append(np.repeat(np.bincount(pairs % count, minlength=count), total // count))
    return DealtElements(element, lane, None, total, tuple(lists), tuple(filled))


def _turns(group: Ints, count: int) -> Ints:
    """Return for each element how many of its group come before it."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=count)
    starts = np.cumsum(sizes) - sizes
    turns = np.empty_like(group)
    turns[order] = np.arange(len(group)) - starts[group[order]]
    return turns


def dealt_flow(memo: CountMemo, stream: CountedStream, dealt: Sequence[DealtLevel]) -> Flow:
    """Return the flow of a stream in lanes. Its numbers are arrays with one number for each lane."""
    assert stream.nest is not None
    depth = dealt[-1].level + 1
    elements = deal(memo, stream.nest.chain[depth - 1], dealt)
    below = batch_flow(memo, stream, depth)

    def sums(numbers: Number) -> Number:
        return as_number(elements.sums(np.asarray(numbers)))

    return Flow(
        (*map(as_number, elements.lists), *map(sums, below.lists)),
        (*map(as_number, elements.filled), *map(sums, below.filled)),
        sums(below.elements),
        sums(below.absent),
        0,
    )


def dealt_counts(memo: CountMemo, counts: ElementCounts, dealt: Sequence[DealtLevel]) -> Ints:
    """Return the sums by lane of a count for each element of a nest, such as the comparisons below it."""
    assert counts.nest is not None
    depth = dealt[-1].level + 1
    return deal(memo, counts.nest.chain[depth - 1], dealt).sums(counts.summed(depth))


def dealt_largest(memo: CountMemo, nest: FiberNest, depth: int, dealt: Sequence[DealtLevel]) -> Ints:
    """Return by lane the most elements of a nest inside of one element at `depth`. The dealt levels are further out than `depth`."""
    largest = ElementCounts(nest.above, nest.list_lengths).summed(depth)
    for outer in reversed(nest.chain[dealt[-1].level + 1 : depth]):
        fibers = np.zeros(outer.level.fibers, dtype=np.int64)
        np.maximum.at(fibers, outer.level.owner, largest)
        largest = take(fibers, outer.link, 0)
    elements = deal(memo, nest.chain[dealt[-1].level], dealt)
    most = np.zeros(elements.lanes, dtype=np.int64)
    occurs = slice(None) if elements.times is None else elements.times > 0
    np.maximum.at(most, elements.lane[occurs], largest[elements.element[occurs]])
    return most


def in_all(shape: tuple[int, ...], numbers: Number) -> int:
    """Return the sum of numbers over lanes of this shape, of which some may share a number."""
    array = np.asarray(numbers)
    return int(np.broadcast_to(array, np.broadcast_shapes(shape, array.shape)).sum())


def most(numbers: Number) -> Number:
    """Return the largest of numbers that lanes may have each."""
    return float(np.max(numbers)) if isinstance(numbers, np.ndarray) else numbers


def busiest(flow: Flow) -> Flow:
    """Return the flow of a stream in the lane in which there is most of it."""
    return Flow(tuple(map(most, flow.lists)), tuple(map(most, flow.filled)), *map(most, (flow.elements, flow.absent, flow.read)))


__all__ = ["DealtElements", "DealtLevel", "busiest", "deal", "dealt_counts", "dealt_flow", "dealt_largest", "in_all", "most"]
