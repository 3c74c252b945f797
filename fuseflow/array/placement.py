"""Placements: the site of each cell of a netlist, and how long its nets are.

The length of a net is half the perimeter of the box around its cells, in tiles, as public placers count it; that of a placement is the sum
over its nets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fuseflow.array.grid import Grid, Site
from fuseflow.array.netlist import Net, Netlist
from fuseflow.errors import ArrayError


@dataclass(frozen=True)  # with a place for cached values
class Placement:
    """The site of each cell of a netlist, in the order of its cells."""

    netlist: Netlist
    sites: tuple[Site, ...]

    def verify(self, grid: Grid) -> None:
        """Raise `ArrayError` where two cells have one site, or a site is not of the kind of its cell."""
        kinds, taken = grid.kinds(), dict[Site, str]()
        if len(self.sites) != len(self.netlist.cells):
            raise ArrayError(f"a placement of {len(self.sites)} cells is not one of {len(self.netlist.cells)}")
        for cell, site in zip(self.netlist.cells, self.sites, strict=True):
            if kinds.get(site) != cell.kind:
                at = f"a tile {kinds[site]}" if site in kinds else "no tile"
                raise ArrayError(
                    f"cell `{cell.name}` needs a tile {cell.kind}, and there is {at} at column {site[0]}, row {site[1]}"
                )
            if site in taken:
                raise ArrayError(f"cells `{taken[site]}` and `{cell.name}` both lie at column {site[0]}, row {site[1]}")
            taken[site] = cell.name

    def half_perimeter(self, net: Net) -> int:
        """Return the length of a net."""
        xs, ys = zip(*(self.sites[cell] for cell in net.cells), strict=True)
        return int(max(xs) - min(xs) + max(ys) - min(ys))

    @cached_property
    def wirelength(self) -> int:
        """The sum of the lengths of all nets."""
        return sum(map(self.half_perimeter, self.netlist.nets))

    @cached_property
    def longest(self) -> int:
        """The most tiles from the source of a net to one of its sinks."""
        places: npt.NDArray[np.int64] = np.array(self.sites, dtype=np.int64).reshape(-1, 2)
        ends = [(net.source, sink) for net in self.netlist.nets for sink in net.sinks]
        source, sink = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        return int(np.abs(places[source] - places[sink]).sum(axis=1).max(initial=0))
