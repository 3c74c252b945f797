"""Threads meet: none goes on before all have come."""

from __future__ import annotations

import threading

import numpy as np

from fuseflow.native.barrier import BARRIER_WORDS, meet
from fuseflow.native.kernel_library import library
from fuseflow.native.records import address, get_int, set_int, zeros
from fuseflow.native.signatures import integers

THREADS, ROUNDS = 3, 20_000


def add_up_in_turns(barrier: int, words: int, me: int) -> int:
    """In each round, every thread writes its word, and after a meeting sums up all words. The result is the number of wrong sums."""
    wrong = 0
    for number in range(ROUNDS):
        set_int(words, me, number * (me + 1))
        meet(barrier, THREADS)
        total = 0
        for other in range(THREADS):
            total += get_int(words, other)
        wrong += total != number * THREADS * (THREADS + 1) // 2
        meet(barrier, THREADS)
    return wrong


def test_what_was_written_before_a_meeting_is_seen_after_it() -> None:
    function = library().compiled(add_up_in_turns, integers(3))
    barrier, words, results = zeros(BARRIER_WORDS, np.int64), zeros(THREADS, np.int64), [-1] * THREADS

    def go(me: int) -> None:
        results[me] = function(address(barrier), address(words), me)

    threads = [threading.Thread(target=go, args=(me,)) for me in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0] * THREADS
