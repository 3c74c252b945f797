"""The sites of an array: where a tile of each kind lies. Columns count from the west, and rows from the north. A placement
has the site of each cell of a netlist, and lengths as public placers count them: the length of a net is half the perimeter of the box
around its cells, in tiles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fuseflow.array.netlist import Net, Netlist
from fuseflow.array.settings import ArraySettings
from fuseflow.errors import ArrayError

Site = tuple[int, int]
"""A column and a row."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The sites of an array, by kind, in the order of rows. `columns` and `rows` count those of ports, too."""

    columns: int
    rows: int
    sites: Mapping[str, tuple[Site, ...]]

    @classmethod
    def of(cls, array: ArraySettings) -> Grid:
        """Return the grid of an array: its tiles, and beside them the ports of each side, `each` of them one behind the other."""
        ports, size = array.ports, array.grid
        margin = {side: ports.each if side in ports.side else 0 for side in ("north", "south", "west", "east")}
        left, top = margin["west"], margin["north"]
        sites: dict[str, list[Site]] = {kind: [] for kind in array.kinds}
        for row in range(size.rows):
            for column in range(size.columns):
                sites[array.tiles.kind(column, row)].append((left + column, top + row))
        right, bottom = left + size.columns, top + size.rows
        columns, rows = range(left, right), range(top, bottom)
        sites[ports.kind] += [(x, y) for y in range(top) for x in columns]
        sites[ports.kind] += [(x, y) for y in range(bottom, bottom + margin["south"]) for x in columns]
        sites[ports.kind] += [(x, y) for x in range(left) for y in rows]
        sites[ports.kind] += [(x, y) for x in range(right, right + margin["east"]) for y in rows]
        ordered = {kind: tuple(sorted(places, key=lambda place: place[::-1])) for kind, places in sites.items()}
        return cls(right + margin["east"], bottom + margin["south"], ordered)

    def neighbours(self, ports: str) -> Mapping[Site, tuple[Site, ...]]:
        """Return the sites that each site has links to, given the kind of ports. A port has links towards the array and away from it, and
        none to the ports beside it: nets pass ports only on their way to ports behind these."""
        kinds = self.kinds()
        columns = {x for (x, _), kind in kinds.items() if kind != ports}
        near: dict[Site, tuple[Site, ...]] = {}
        for (x, y), kind in kinds.items():
            across, along = ((x + 1, y), (x - 1, y)), ((x, y + 1), (x, y - 1))
            sites = (*across, *along) if kind != ports else along if x in columns else across
            near[x, y] = tuple(site for site in sites if site in kinds)
        return near

    def kinds(self) -> Mapping[Site, str]:
        """Return the kind of each site."""
        return {site: kind for kind, sites in self.sites.items() for site in sites}

    def without(self, taken: Collection[Site]) -> Grid:
        """Return the grid without some of its sites."""
        left = {kind: tuple(site for site in sites if site not in taken) for kind, sites in self.sites.items()}
        return replace(self, sites=left)


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
