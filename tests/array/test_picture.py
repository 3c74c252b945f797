"""Pictures of placed regions."""

from __future__ import annotations

from functools import cache
from xml.etree import ElementTree

import pytest
from arrays import recorded_graph

from fuseflow.array.grid import Grid, Placement
from fuseflow.array.netlist import Cell, Net, Netlist
from fuseflow.array.picture import MOST_BYTES, picture
from fuseflow.array.placed_region import PlacedRegion, PlacementSearch, place_region
from fuseflow.array.routing import route
from fuseflow.array.settings import load_array, read_array

ONYX = load_array("onyx")


@cache
def placed(region: str, lanes: int) -> PlacedRegion:
    return place_region(recorded_graph(region, lanes), ONYX, None, PlacementSearch(effort=0.5, seeds=1))


def titles(text: str) -> list[str]:
    return [title.text or "" for title in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}title")]


def test_tiles_links_and_the_longest_path_are_named() -> None:
    region = placed("gcn", 1)
    text = picture(region)
    assert text == picture(region) and len(text.encode()) < MOST_BYTES and "prefers-color-scheme:dark" in text
    names = titles(text)
    assert {f"{cell.name} ({cell.kind})" for cell in region.netlist.cells} <= set(names)
    carried = [name for name in names if name.endswith("of 5 tracks)")]
    assert len(carried) == len(region.routing.use)
    assert sum(int(name.rpartition("(")[2].split()[0]) for name in carried) == region.routing.hops
    assert region.longest is not None and region.longest.hops == max(region.routing.lengths)
    assert any(name.startswith(f"longest path: {region.longest.hops} hops of ") for name in names)
    assert all(f"{kind} {count} of" in text for kind, count in region.tiles.items())


def test_busy_nodes_are_opaque() -> None:
    region = placed("gcn", 1)
    node = region.graph.nodes[-1].name
    text = picture(region, {node: 0.5})
    assert 'style="stroke-opacity:0.70"' in text and any(name.endswith("busy 50%") and node in name for name in titles(text))


def test_a_large_region_leaves_parts_out() -> None:
    array = read_array(
        "array: {grid: {columns: 100, rows: 99}, tiles: {pattern: P, kinds: {P: PE}}, ports: {side: north}, footprint: {alu: {PE: 1}}}"
    )
    grid = Grid.of(array)
    sites = grid.sites["PE"]
    cells = tuple(Cell(f"a<node>&{k}", "PE") for k in range(len(sites)))
    nets = tuple(Net(k, (k + 1,)) for k in range(len(sites) - 1) if sites[k + 1][1] == sites[k][1])
    routing = route(Placement(Netlist(cells, nets), sites), grid, 5, "IO")
    region = PlacedRegion(recorded_graph("sae", 1), array, routing, 1.0, 1)
    text = picture(region)
    assert len(text.encode()) <= MOST_BYTES and "longest path: 1 hops" in text
    ElementTree.fromstring(text)


@pytest.mark.parametrize("names", [("a<b>", "PE & MEM")])
def test_names_are_escaped(names: tuple[str, str]) -> None:
    array = read_array(
        "array: {grid: {columns: 2, rows: 1}, tiles: {pattern: P, kinds: {P: PE}}, ports: {side: north}, footprint: {alu: {PE: 1}}}"
    )
    netlist = Netlist(tuple(Cell(name, "PE") for name in names), (Net(0, (1,)),))
    routing = route(Placement(netlist, ((0, 1), (1, 1))), Grid.of(array), 1, "IO")
    assert any("a<b>" in title for title in titles(picture(PlacedRegion(recorded_graph("sae", 1), array, routing, 1.0, 1))))
