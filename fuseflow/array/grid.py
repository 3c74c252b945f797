"""The sites of an array: where a tile of each kind lies. Columns count from the west, and rows from the north."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from fuseflow.array.settings import ArraySettings

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
