"""Exact placement: CP-SAT of OR-Tools looks for a shorter placement than one that is known, or proves that there is none.

What takes a solver long is to see that nets that could each be short cannot all be so. Therefore the shortest lengths of small groups of
nets are proven first, then those of larger groups that have these in them (`lower_bound.py`), and at last that of all nets.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.array.grid import Grid
from fuseflow.array.lower_bound import GROUP_WORK, group_floors
from fuseflow.array.netlist import Netlist
from fuseflow.array.placement import Placement
from fuseflow.array.shortest import least_length, setup_work, shortest

FOR_GROUPS = 0.5
"""The most of the time that is spent for groups of nets."""


@dataclass(frozen=True, slots=True)
class ExactPlacement:
    """A placement, a length that none is below, and whether the placement is proven to be one of the shortest."""

    placement: Placement
    bound: int
    proven: bool

    @property
    def gap(self) -> float:
        """How much longer the placement is than the bound, as a share of the bound: 0 if it is proven."""
        length = self.placement.wirelength
        return length / self.bound - 1 if self.bound else float(length > 0)


def exact_placement(netlist: Netlist, grid: Grid, placement: Placement, seconds: float) -> ExactPlacement:
    """Return a placement that is shorter than a known one, or that one if a search of about `seconds` seconds has none. The limit is work
    that is counted, not time, so equal searches have equal results. Raises `UsageError` if OR-Tools cannot be imported."""
    placement.verify(grid)
    floors = group_floors(netlist, grid, seconds * FOR_GROUPS)
    bound, left = least_length(netlist, grid, floors, GROUP_WORK), seconds * (1 - FOR_GROUPS) - setup_work(netlist, grid)
    if bound < placement.wirelength and left > 0:
        answer = shortest(netlist, grid, floors, left, most=placement.wirelength - 1)
        bound = max(bound, answer.bound)
        if answer.sites is not None:
            placement = Placement(netlist, answer.sites)
    return ExactPlacement(placement, bound, bound == placement.wirelength)
