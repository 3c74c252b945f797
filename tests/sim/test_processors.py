"""Simulations share the processors of a process."""

from __future__ import annotations

import os

import pytest

from fuseflow.sim.processors import Processors, cores


def test_no_more_are_taken_than_there_are() -> None:
    processors = Processors(4)
    assert [processors.take(1), processors.take(8), processors.take(1)] == [1, 3, 0]
    processors.give_back(3)
    assert processors.take(2) == 2


@pytest.mark.parametrize(("load", "left"), [(0.0, 4), (1.2, 4), (2.7, 2), (4.0, 1), (9.0, 1)])
def test_processors_that_others_need_are_left_to_them(monkeypatch: pytest.MonkeyPatch, load: float, left: int) -> None:
    """This process is one of those that the load counts."""
    monkeypatch.setattr("fuseflow.sim.processors.cores", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    assert Processors().count == left
    assert Processors(4).count == 4, "as many as were asked for"
    assert cores() >= 1
