"""Percentiles of latencies, at most 3 % too high."""

from __future__ import annotations

import numpy as np

from fuseflow.memory.histogram import BUCKETS, count_latency, longest_latency, percentile
from fuseflow.native.kernel_library import library
from fuseflow.native.records import address
from fuseflow.native.signatures import Signature


def histogram_of(latencies: list[int]) -> np.ndarray:
    found = np.zeros(BUCKETS, np.int64)
    count = library().compiled(count_latency, Signature(None, ("int64", "int64")))
    for cycles in latencies:
        count(address(found), cycles)
    return found


def test_every_latency_has_the_bucket_that_says_so() -> None:
    for cycles in [*range(300), 1000, 12_345, 1 << 20, (1 << 41) - 1]:
        (bucket,) = np.flatnonzero(histogram_of([cycles])).tolist()
        assert cycles <= longest_latency(bucket) <= max(cycles * 1.032, 63)
        assert bucket == 0 or longest_latency(bucket - 1) < cycles


def test_one_beyond_all_buckets_counts_in_the_last() -> None:
    assert np.flatnonzero(histogram_of([1 << 50])).tolist() == [BUCKETS - 1]


def test_percentiles() -> None:
    assert percentile(np.zeros(BUCKETS, np.int64), 99) == 0
    assert percentile(histogram_of([17] * 99 + [45]), 99) == 17
    assert percentile(histogram_of([17] * 98 + [45] * 2), 99) == 45
    latencies = np.random.default_rng(0).integers(1, 5000, 2000).tolist()
    exact = sorted(latencies)[1979]
    assert exact <= percentile(histogram_of(latencies), 99) <= exact * 1.032
