"""Tables of regions on an array of tiles: the tiles that they take, how long their links are, and what loading them takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from fuseflow.array.capacity import TileUse
from fuseflow.array.placed_region import PlacedRegion
from fuseflow.array.settings import ArraySettings
from fuseflow.explain.array_cuts import ArrayCut
from fuseflow.report.tables import add_footer, plain_table

if TYPE_CHECKING:
    from fuseflow.run.placed import PlacedCycles

ASSUMED = "*"
"""The mark behind a number that follows from one without a source."""
_SHAPE, _TILES = ("grid", "tiles", "ports"), ("footprint", "memory", "fifo_depth")


def tile_table(array: ArraySettings, regions: Iterable[tuple[str, TileUse]]) -> Table:
    """Return a table with the tiles of each kind that each region takes, those that are missing, and those that the array has."""
    table = plain_table("region", *array.kinds, "missing", numbers_from=1, footer=True)
    for name, use in regions:
        most = "≤ " if use.bound else ""
        counts = (f"{most if kind == array.memory.kind else ''}{use.needed[kind]:,}" for kind in array.kinds)
        missing = ", ".join(f"{count:,} {kind}" for kind, count in use.missing.items())
        table.add_row(escape(name), *_marked(array, _TILES, counts), missing)
    add_footer(table, escape(array.name), *_available(array), "")
    return table


def place_table(array: ArraySettings, regions: Mapping[str, PlacedRegion], cycles: Mapping[str, PlacedCycles]) -> Table:
    """Return a table with a row for each placed region: its cells and tiles, the lengths of its wires, clocks, cycles of loading, and the
    cycles that it takes if it has run. The last row says how many tiles of each kind and how many tracks the array has."""
    bounds = ("wires", "shortest\nbound", "gap\n%", "longest\nhops", "mean\nhops")
    ran = ("cycles", "ideal\ncycles") if cycles else ()
    columns = (*array.kinds, *bounds, "tracks", "clock\nMHz", "clock without\nregisters", "loading\ncycles", *ran)
    table = plain_table("region", "cells", *columns, numbers_from=1, footer=True)
    for name, placed in regions.items():
        counts = (len(placed.netlist.cells), *placed.tiles.values())
        clocks = (_megahertz(placed.tile_delay), _megahertz(placed.path_delay))
        table.add_row(
            escape(name),
            *_marked(array, _TILES, (f"{count:,}" for count in counts)),
            *_marked(array, (*_SHAPE, *_TILES), _length_cells(placed)),
            *_marked(array, (*_SHAPE, *_TILES), (f"{placed.routing.tracks}",)),
            *_marked(array, ("delays_ps",), clocks),
            *_marked(array, ("load",), (f"{placed.loading_cycles:,}",)),
            *_marked(array, (*_SHAPE, *_TILES, "hop"), (f"{cycles[name].cycles:,}", f"{cycles[name].ideal:,}") if cycles else ()),
        )
    empty = ("",) * len(bounds)
    tracks = _marked(array, ("tracks",), (f"{array.tracks}",))
    add_footer(table, escape(array.name), "", *_available(array), *empty, *tracks, "", "", "", *("" for _ in ran))
    return table


def placed_json(regions: Mapping[str, PlacedRegion], cycles: Mapping[str, PlacedCycles]) -> list[dict[str, Any]]:
    """Return what `place_table` shows as plain values, unrounded. What is not known is null."""
    return [
        {
            "name": name,
            "tiles": dict(placed.tiles),
            "wirelength": placed.placement.wirelength,
            "bound": placed.bound,
            "proven": placed.proven,
            "longest_hops": 0 if placed.longest is None else placed.longest.hops,
            "mean_hops": placed.mean_hops,
            "hops": placed.routing.hops,
            "tracks": placed.routing.tracks,
            **placed.delays,
            "loading_cycles": placed.loading_cycles,
            "cycles": cycles[name].cycles if cycles else None,
            "ideal_cycles": cycles[name].ideal if cycles else None,
        }
        for name, placed in regions.items()
    ]


def placed_cells(placed: PlacedRegion, loading: int) -> Sequence[str]:
    """Return the tiles of each kind that a placed region takes, the hops of its longest link, and the cycles of `loading` it."""
    array, longest = placed.array, placed.longest
    return (
        *_marked(array, _TILES, (f"{count:,}" for count in placed.tiles.values())),
        *_marked(array, (*_SHAPE, *_TILES), (f"{0 if longest is None else longest.hops}",)),
        *_marked(array, ("load",), (f"{loading:,}",)),
    )


def cut_lines(cuts: Iterable[ArrayCut]) -> Iterator[str]:
    """Yield a line for each cut: what the region before it would take with the operator behind it."""
    for cut in cuts:
        told = f"no region with it: {cut.refusal}" if cut.use is None else f"with it {cut.use.extreme}"
        yield escape(f"cut before {cut.operator}: {told}{'' if cut.use is None or not cut.use.fits else ', which fits'}")


def cuts_json(cuts: Iterable[ArrayCut]) -> list[dict[str, Any]]:
    """Return cuts as plain values."""
    return [
        {
            "before": cut.operator,
            "region": cut.region,
            "needed": None if cut.use is None else dict(cut.use.needed),
            "missing": None if cut.use is None else dict(cut.use.missing),
            "refusal": cut.refusal,
        }
        for cut in cuts
    ]


def assumed_lines(array: ArraySettings) -> Iterator[str]:
    """Yield a line about numbers of an array that have no source, if there are any."""
    if array.assumed:
        yield f"{ASSUMED}: from numbers that array `{array.name}` assumes: {', '.join(array.assumed)}"


def _length_cells(placed: PlacedRegion) -> Sequence[str]:
    """Return the cells from `wires` to the mean hops. Without a bound its cell and the gap are empty."""
    length, bound, longest = placed.placement.wirelength, placed.bound, placed.longest
    gap = "" if not bound else f"{100 * (length - bound) / bound:.0f}"
    shortest = "" if bound is None else f"{bound:,}"
    return (f"{length:,}", shortest, gap, f"{0 if longest is None else longest.hops}", f"{placed.mean_hops:.1f}")


def _available(array: ArraySettings) -> Sequence[str]:
    return _marked(array, _SHAPE, (f"{array.available[kind]:,}" for kind in array.kinds))


def _marked(array: ArraySettings, keys: Iterable[str], cells: Iterable[str]) -> Sequence[str]:
    """Return cells with the mark of what is assumed, if that is so of one of the keys of an array file."""
    assumed = {name.partition(".")[0] for name in array.assumed}
    mark = "" if assumed.isdisjoint(keys) else ASSUMED
    return [f"{cell}{mark}" if cell else "" for cell in cells]


def _megahertz(picoseconds: int | None) -> str:
    return f"{1_000_000 / picoseconds:,.0f}" if picoseconds else ""
