"""Placements by annealing, against recorded ones."""

from __future__ import annotations

import pytest
from arrays import recorded_netlists

from fuseflow.array.anneal import anneal
from fuseflow.array.grid import Grid


@pytest.mark.parametrize("recorded", recorded_netlists(), ids=lambda recorded: recorded.name)
def test_a_short_run_is_near_the_best_known(recorded) -> None:
    placement = anneal(recorded.netlist, Grid.of(recorded.array))
    placement.verify(Grid.of(recorded.array))
    assert recorded.bound <= placement.wirelength <= 1.08 * recorded.wirelength
