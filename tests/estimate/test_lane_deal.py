"""The elements of each lane are those of a list that is dealt out one by one, as plain Python deals it."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from fuseflow.estimate import lane_deal
from fuseflow.estimate.counted.memo import CountMemo, TooMany
from fuseflow.estimate.counted.stream_trie import EMPTY, FiberLevel, FiberNest
from fuseflow.estimate.lane_deal import DealtLevel, LaneDeal


def random_nest(rng: np.random.Generator, depth: int, most: int, alike: bool) -> FiberNest:
    """A nest of a few distinct fibers at each depth, to which elements link at random. Some of them are empty, or all are `alike` long."""
    nest: FiberNest | None = None
    for level in range(depth):
        fibers = int(rng.integers(1, 5)) if level else 1
        lengths = rng.integers(0 if level else 1, most, fibers)
        above = 1 if nest is None else len(nest.level.crd)
        lengths = np.full(fibers, rng.integers(1, most)) if alike else lengths
        link = rng.integers(0 if level == 0 or alike else EMPTY, fibers, above)
        pos = np.concatenate(([0], np.cumsum(lengths)))
        nest = FiberNest(nest, link, FiberLevel(pos, np.arange(pos[-1]), int(pos[-1]) + 1))
    assert nest is not None
    return nest


def one_by_one(nest: FiberNest, lanes_at: dict[int, int]) -> tuple[list[tuple[int, int]], list[list[int]], list[list[int]]]:
    """Each innermost element with its lane, in order, and the lists and the filled ones of every depth by lane."""
    items, lanes = [(0, 0)], 1
    lists, filled = list[list[int]](), list[list[int]]()
    total = prod(lanes_at.values())
    for depth, current in enumerate(nest.chain):
        inner, turns = lanes_at.get(depth, 1), [0] * lanes
        own, reached, inside = [0] * lanes, [0] * (lanes * inner), list[tuple[int, int]]()
        for element, lane in items:
            own[lane] += 1
            fiber = int(current.link[element])
            range_ = range(0) if fiber < 0 else range(int(current.level.pos[fiber]), int(current.level.pos[fiber + 1]))
            met = set()
            for below in range_:
                inside.append((below, lane * inner + turns[lane] % inner))
                met.add(inside[-1][1])
                turns[lane] += 1
            for each in met:
                reached[each] += 1
        lists.append([own[k * lanes // total] for k in range(total)])
        items, lanes = inside, lanes * inner
        filled.append([reached[k * lanes // total] for k in range(total)])
    return items, lists, filled


@pytest.mark.parametrize("few", [0, 1 << 16])
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_elements_are_dealt_as_one_by_one(seed: int, alike: bool, few: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lane_deal, "FEW_ELEMENTS", few)
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(1, 5))
    nest, memo = random_nest(rng, depth, 6, alike), CountMemo()
    counts = rng.integers(0, 9, len(nest.level.crd))
    for outer in range(depth):
        for levels in ((depth - 1,),) if outer == depth - 1 else ((outer, depth - 1), tuple(range(outer, depth))):
            for numbers in list(product((1, 2, 3, 7), repeat=len(levels)))[:: len(levels)]:
                dealt = tuple(DealtLevel(*one) for one in zip(levels, numbers, strict=True))
                items, lists, filled = one_by_one(nest, dict(dealt))
                deal = LaneDeal.of(memo, nest, dealt)
                assert [each.tolist() for each in deal.lists] == lists
                assert [each.tolist() for each in deal.filled] == filled
                expected, most = [0] * deal.lanes, [0] * deal.lanes
                for element, lane in items:
                    expected[lane] += int(counts[element])
                    most[lane] = max(most[lane], int(counts[element]))
                assert deal.sums(counts).tolist() == expected
                assert deal.largest(counts).tolist() == most
                assert deal.sums(np.array([3])).tolist() == [3 * sum(lane == k for _, lane in items) for k in range(deal.lanes)]


def test_rows_that_are_dense_are_not_dealt_one_by_one():
    rows = FiberNest(None, np.zeros(1, dtype=np.int64), FiberLevel(np.array([0, 5000]), np.arange(5000), 5000))
    dense = FiberNest(rows, np.zeros(5000, dtype=np.int64), FiberLevel(np.array([0, 4000]), np.arange(4000), 4000))
    deal = LaneDeal.of(CountMemo(), dense, (DealtLevel(0, 7), DealtLevel(1, 3)))
    assert deal.sums(np.array([1])).sum() == 20_000_000
    assert max(deal.sums(np.array([1]))) == 715 * 4000 // 3 + 1  # lanes of 715 rows and of 714
    below = LaneDeal.of(
        CountMemo(), FiberNest(dense, np.zeros(4000, dtype=np.int64), rows.level), (DealtLevel(1, 7), DealtLevel(2, 3))
    )
    assert below.sums(np.array([1])).sum() == 100_000_000_000


def test_what_differs_from_element_to_element_is_not_dealt_where_it_is_too_much():
    rows = FiberNest(None, np.zeros(1, dtype=np.int64), FiberLevel(np.array([0, 5000]), np.arange(5000), 5000))
    dense = FiberNest(rows, np.zeros(5000, dtype=np.int64), FiberLevel(np.array([0, 4000]), np.arange(4000), 4000))
    uneven = FiberNest(dense, np.arange(4000) % 2, FiberLevel(np.array([0, 5, 7]), np.arange(7), 7))
    assert LaneDeal.of(CountMemo(), uneven, (DealtLevel(0, 7), DealtLevel(2, 3))).elements.sum() == 70_000_000
    with pytest.raises(TooMany):
        LaneDeal.of(CountMemo(), uneven, (DealtLevel(1, 7), DealtLevel(2, 3)))
