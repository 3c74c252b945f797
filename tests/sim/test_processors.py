"""Simulations share the processors of a process."""

from __future__ import annotations

from fuseflow.sim.processors import Processors, cores


def test_no_more_are_taken_than_there_are() -> None:
    processors = Processors(4)
    assert [processors.take(1), processors.take(8), processors.take(1)] == [1, 3, 0]
    processors.give_back(3)
    assert processors.take(2) == 2


def test_a_process_has_all_that_it_may_run_on() -> None:
    assert Processors().limit == cores() >= 1
