"""The flows of streams in lanes, computed from the lists that were counted on one lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from fuseflow.estimate.batches import as_number, batch_flow
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.nests import CountedStream, ElementCounts, ElementNumbers, FiberNest, Ints, take
from fuseflow.estimate.flows import Flow, Number
from fuseflow.estimate.lane_deal import DealtLevel, LaneDeal, shape_of


def dealt_flow(memo: CountMemo, stream: CountedStream, dealt: Sequence[DealtLevel]) -> Flow:
    """Return the flow of a stream whose `dealt` levels are dealt to lanes. Its numbers are arrays with one number for each
    lane."""
    assert stream.nest is not None
    nest, labels = shape_of(memo, stream.nest), stream.labels
    lists = memo.once(("dealt", tuple(dealt)), (nest,), lambda: _dealt_lists(memo, nest, dealt))
    if labels is None:
        return replace(lists, absent=as_number(np.zeros(prod(lanes for _, lanes in dealt), dtype=np.int64)))
    absent = memo.once(("dealt absent", tuple(dealt)), (nest, labels), lambda: _dealt_absent(memo, nest, labels, dealt))
    return replace(lists, absent=absent)


def _dealt_lists(memo: CountMemo, nest: FiberNest, dealt: Sequence[DealtLevel]) -> Flow:
    depth = dealt[-1].level + 1
    deal, below = LaneDeal.of(memo, nest.chain[depth - 1], dealt), batch_flow(memo, CountedStream(nest), depth)

    def sums(numbers: Number) -> Number:
        return as_number(deal.sums(np.asarray(numbers)))

    lists = (*map(as_number, deal.lists), *map(sums, below.lists))
    return Flow(lists, (*map(as_number, deal.filled), *map(sums, below.filled)), sums(below.elements))


def _dealt_absent(memo: CountMemo, nest: FiberNest, labels: ElementNumbers, dealt: Sequence[DealtLevel]) -> Number:
    depth = dealt[-1].level + 1
    deal, below = LaneDeal.of(memo, nest.chain[depth - 1], dealt), batch_flow(memo, CountedStream(nest, labels), depth)
    return as_number(deal.sums(np.asarray(below.absent)))


def dealt_counts(memo: CountMemo, counts: ElementCounts, dealt: Sequence[DealtLevel]) -> Ints:
    """Return the sum by lane of `counts`, a number for each element of a nest (such as comparisons), whose `dealt` levels are
    dealt."""
    assert counts.nest is not None
    depth = dealt[-1].level + 1
    return LaneDeal.of(memo, shape_of(memo, counts.nest).chain[depth - 1], dealt).sums(counts.summed(depth))


def dealt_largest(memo: CountMemo, nest: FiberNest, depth: int, dealt: Sequence[DealtLevel]) -> Ints:
    """Return, by lane, the most elements of a nest inside of one element at `depth`, which is further in than the `dealt`
    levels."""
    largest = ElementCounts(nest.above, nest.list_lengths).summed(depth)
    for outer in reversed(nest.chain[dealt[-1].level + 1 : depth]):
        fibers = np.zeros(outer.level.fibers, dtype=np.int64)
        np.maximum.at(fibers, outer.level.owner, largest)
        largest = take(fibers, outer.link, 0)
    return LaneDeal.of(memo, nest.chain[dealt[-1].level], dealt).largest(largest)
