"""Threads of compiled code meet at a barrier: each waits until all have come. What each wrote before is visible to all afterwards."""

from __future__ import annotations

from fuseflow.native.records import LINE, fetch_add, inline, load_acquire, store_release, yield_processor

ARRIVED, MEETING = 0, LINE // 8
"""The words of a barrier: how many have come, and, in another cache line, the number of the meeting."""
BARRIER_WORDS = 2 * LINE // 8
SPINS = 4096
"""The looks at a barrier before a thread lets others run: some microseconds. Where there is a processor for each thread, it seldom
takes longer. Tuned on attention with 16 lanes on two processors, and tried with four threads there."""


@inline
def meet(barrier: int, threads: int) -> None:
    """Wait at the barrier at an address until all `threads` threads have come."""
    meeting = load_acquire(barrier, MEETING)
    if fetch_add(barrier, ARRIVED, 1) == threads - 1:
        store_release(barrier, ARRIVED, 0)
        store_release(barrier, MEETING, meeting + 1)
        return
    spins = 0
    while load_acquire(barrier, MEETING) == meeting:
        spins += 1
        if spins >= SPINS:
            yield_processor()
