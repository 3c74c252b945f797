"""The dynamic program against all partitions."""

from __future__ import annotations

import math
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from fuseflow.cut.partitions import cheapest_partitions
from fuseflow.cut.units import UnitRange, partition_at

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
