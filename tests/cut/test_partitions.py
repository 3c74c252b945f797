"""Partitions of sequences of units: the cheapest ones against all of them, and the greedy one."""

from __future__ import annotations

import itertools
import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.cut.units import UnitRange, cheapest_partitions, greedy_partition, partition_at

COSTS = st.integers(1, 7).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.fixed_dictionaries(
            {(i, j): st.one_of(st.integers(0, 9), st.just(math.inf)) for i in range(n) for j in range(i + 1, n + 1)}
        ),
    )
)


@given(COSTS, st.integers(1, 5))
def test_it_finds_the_cheapest_of_all(case: tuple[int, dict[UnitRange, float]], keep: int) -> None:
    count, costs = case
    cuts = [partition_at(c, count) for k in range(count) for c in combinations(range(1, count), k)]
    sums = sorted(total for cut in cuts if (total := sum(costs[part] for part in cut)) < math.inf)
    partitions = cheapest_partitions(count, costs.__getitem__, keep)
    assert [total for total, _ in partitions] == sums[:keep]
    assert len({cut for _, cut in partitions}) == len(partitions)
    assert all(total == sum(costs[part] for part in cut) for total, cut in partitions)


def test_of_equal_partitions_the_one_of_fewer_regions_is_first() -> None:
    assert cheapest_partitions(2, lambda part: float(part[1] - part[0]), 2)[0][1] == ((0, 2),)


def test_no_units_have_no_regions() -> None:
    assert greedy_partition(0, lambda part: 1.0) == (0.0, ())


@pytest.mark.parametrize("count", [1, 2, 3, 7, 9])
def test_one_region_where_fusion_always_pays(count: int) -> None:
    assert greedy_partition(count, lambda part: math.sqrt(part[1] - part[0])) == (math.sqrt(count), ((0, count),))


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_units_alone_where_it_never_pays(count: int) -> None:
    total, parts = greedy_partition(count, lambda part: float((part[1] - part[0]) ** 2))
    assert (total, parts) == (count, tuple((n, n + 1) for n in range(count)))


def test_a_range_that_cannot_be_a_region_is_not_taken() -> None:
    cost = lambda part: math.inf if part[0] < 4 < part[1] else 1.0  # noqa: E731
    assert greedy_partition(9, cost) == (2.0, ((0, 4), (4, 9)))


@pytest.mark.parametrize("border", range(1, 9))
def test_a_border_is_found_where_it_is(border: int) -> None:
    """Regions that no border crosses cost 1, and others 100."""
    cost = lambda part: 100.0 if part[0] < border < part[1] else 1.0  # noqa: E731
    assert greedy_partition(9, cost) == (2.0, ((0, border), (border, 9)))
    assert cheapest_partitions(9, cost, 1)[0] == (2.0, ((0, border), (border, 9)))


def test_few_costs_are_asked_for() -> None:
    asked: set[UnitRange] = set()

    def cost(part: UnitRange) -> float:
        asked.add(part)
        return 1.0 if part[1] <= 100 or part[0] >= 100 else 200.0

    assert greedy_partition(200, cost) == (2.0, ((0, 100), (100, 200)))
    assert sum(end - start > 1 for start, end in asked) <= 4 * math.ceil(math.log2(200))


def test_the_sum_is_that_of_the_ranges_and_no_more_than_that_of_the_units() -> None:
    for seed in range(200):
        costs = {
            part: ((part[0] * 7919 + part[1] * 104729 + seed * 31) % 97 + 1.0) for part in itertools.combinations(range(9), 2)
        }
        total, parts = greedy_partition(8, costs.__getitem__)
        assert total == sum(costs[part] for part in parts)
        assert [n for part in parts for n in range(*part)] == list(range(8))
        assert total <= sum(costs[n, n + 1] for n in range(8))
