"""Histograms of latencies. They are exact below 64 cycles and have 32 buckets for each doubling above, so a percentile is at most 3 %
too high."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fuseflow.native.records import bit_length, get_int, inline, set_int

EXACT_BITS = 6
EXACT, STEPS = 1 << EXACT_BITS, 32
BUCKETS = EXACT + STEPS * 36
"""The number of buckets, which reach up to 2^42 cycles, over an hour of memory time; longer latencies count in the last."""


@inline
def count_latency(histogram: int, cycles: int) -> None:
    """Count one more latency of `cycles` cycles in the histogram at an address."""
    octave = bit_length(cycles | EXACT - 1) - EXACT_BITS
    bucket = min(STEPS * octave + (cycles >> octave), BUCKETS - 1)
    set_int(histogram, bucket, get_int(histogram, bucket) + 1)


def longest_latency(bucket: int) -> int:
    """Return the longest latency that counts in a bucket, in cycles."""
    octave = max(bucket // STEPS - 1, 0)
    return ((bucket - STEPS * octave + 1) << octave) - 1


def percentile(histogram: npt.NDArray[np.int64], percent: int) -> int:
    """Return the number of cycles that `percent` percent of the latencies do not exceed, or 0 if there are no latencies."""
    total = int(histogram.sum())
    if total == 0:
        return 0
    rank = -(-total * percent // 100)
    return longest_latency(int(np.searchsorted(np.cumsum(histogram), rank)))
