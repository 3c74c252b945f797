"""Routes: every sink is reached on links that have room, as a walk says that shares no code with the search."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from arrays import CAPACITY, LANES, recorded_graph, recorded_netlists

import fuseflow as ff
from fuseflow.array.anneal import anneal
from fuseflow.array.capacity import tile_use
from fuseflow.array.grid import Grid, Placement
from fuseflow.array.netlist import Cell, Net, Netlist, netlist_of
from fuseflow.array.routing import Route, Routing, route
from fuseflow.array.settings import load_array, read_array
from fuseflow.errors import ArrayError

ONYX = load_array("onyx")


def walk(routing: Routing, kinds: dict[tuple[int, int], str], tracks: int) -> None:
    """Send a token from each source over the links of its net, as a flood, and count the nets on each link."""
    carried: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}
    for net, tree in zip(routing.placement.netlist.nets, routing.routes, strict=True):
        steps = {(branch[k], branch[k + 1]) for branch in tree.branches for k in range(len(branch) - 1)}
        source = routing.placement.sites[net.source]
        wet, ends = {source}, {source, *(routing.placement.sites[sink] for sink in net.sinks)}
        while True:
            more = {b for a, b in steps if a in wet} - wet
            if not more:
                break
            wet |= more
        assert ends <= wet and {b for _, b in steps} == wet - {source}, "it reaches its sinks, and no step is cut off"
        assert all(abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1 for a, b in steps)
        assert all(kinds[site] != "IO" or site in ends for site in wet)
        for step in steps:
            carried[step] = carried.get(step, 0) + 1
    assert max(carried.values()) <= tracks


@pytest.mark.parametrize("recorded", recorded_netlists(), ids=lambda recorded: recorded.name)
def test_recorded_placements_on_two_tracks(recorded) -> None:
    grid = Grid.of(recorded.array)
    routing = route(Placement(recorded.netlist, recorded.sites), grid, 2, "IO")
    routing.verify(grid, 2, "IO")
    walk(routing, dict(grid.kinds()), 2)
    assert max(routing.lengths) <= 1.5 * routing.placement.longest
    assert routing.hops == sum(len(list(tree.links)) for tree in routing.routes)


def fitting() -> list[tuple[str, str, int]]:
    """The arrays, recorded regions and lanes that fit."""
    arrays = [load_array(name) for name in ("onyx", "plasticine")]
    cases = [(array, region, lanes) for array in arrays for region in CAPACITY for lanes in LANES]
    return [(a.name, region, lanes) for a, region, lanes in cases if tile_use(recorded_graph(region, lanes), a).fits]


QUICK = ("sae", "attention")


@pytest.mark.parametrize(
    ("name", "region", "lanes"), [pytest.param(*c, marks=() if c[1] in QUICK else pytest.mark.slow) for c in fitting()]
)
def test_every_region_that_fits_on_two_tracks(name: str, region: str, lanes: int) -> None:
    array = load_array(name)
    grid, netlist = Grid.of(array), netlist_of(recorded_graph(region, lanes), array)
    routing = route(anneal(netlist, grid, effort=5, seeds=1), grid, 2, "IO")
    walk(routing, dict(grid.kinds()), 2)
    assert max(routing.lengths) <= 1.5 * routing.placement.longest


@pytest.mark.slow
@pytest.mark.parametrize("fuse", ["none", "layerwise", "full"])
@pytest.mark.parametrize("model", sorted(path.stem for path in (Path(__file__).parents[2] / "models").glob("*.py")))
def test_every_region_of_the_models_on_two_tracks(model: str, fuse: str) -> None:
    options = {} if model == "mobilenet" else {"small": True}
    compiled = ff.compile(f"models/{model}.py", schedule=ff.Schedule.fuse(fuse), options=options)
    for array in (ONYX, load_array("plasticine")):
        fits = [r.graph for r in compiled.regions if tile_use(r.graph, array, compiled.machine).fits]
        grid, netlists = Grid.of(array), dict.fromkeys(netlist_of(graph, array, compiled.machine) for graph in fits)
        for netlist in netlists:
            routing = route(anneal(netlist, grid, effort=5, seeds=1), grid, 2, "IO")
            walk(routing, dict(grid.kinds()), 2)


def test_ports_behind_ports() -> None:
    """Thirteen ports in the north of eight columns: nets to those that are farther away pass one each, and no port beside it."""
    array = read_array(
        "array: {grid: {columns: 8, rows: 8}, tiles: {pattern: PM, kinds: {P: PE, M: MEM}}, ports: {side: north, each: 2},"
        " footprint: onyx}"
    )
    grid, netlist = Grid.of(array), netlist_of(recorded_graph("sae", 1), array)
    routing = route(anneal(netlist, grid, effort=5, seeds=1), grid, 2, "IO")
    routing.verify(grid, 2, "IO")
    kinds = grid.kinds()
    passed = [(a, b) for tree in routing.routes for a, b in tree.links if kinds[a] == kinds[b] == "IO"]
    assert passed and all(a[0] == b[0] for a, b in passed)


def test_a_random_placement_on_five_tracks() -> None:
    netlist, grid, rng = netlist_of(recorded_graph("gcn", 1), ONYX), Grid.of(ONYX), random.Random(0)
    pools = {kind: rng.sample(sites, len(sites)) for kind, sites in grid.sites.items()}
    placement = Placement(netlist, tuple(pools[cell.kind].pop() for cell in netlist.cells))
    routing = route(placement, grid, 5, "IO")
    walk(routing, dict(grid.kinds()), 5)
    assert routing == route(placement, grid, 5, "IO")


def test_what_has_no_room_is_refused() -> None:
    array = read_array(
        "array: {grid: {columns: 2, rows: 1}, tiles: {pattern: PM, kinds: {P: PE, M: MEM}}, ports: {side: west}, footprint: simple}"
    )
    cells = (Cell("a", "PE"), Cell("b", "MEM"))
    nets = (Net(0, (1,)), Net(0, (1,)), Net(1, (0,)))
    placement, grid = Placement(Netlist(cells, nets), ((1, 0), (2, 0))), Grid.of(array)
    assert route(placement, grid, 2, "IO").tracks == 2
    with pytest.raises(ArrayError, match="1 links carry more than 1 nets"):
        route(placement, grid, 1, "IO")


def test_wrong_routes_are_refused() -> None:
    array = read_array(
        "array: {grid: {columns: 3, rows: 2}, tiles: {pattern: P, kinds: {P: PE}}, ports: {side: north}, footprint: {alu: {PE: 1}}}"
    )
    cells = tuple(Cell(name, "PE") for name in "abc")
    netlist, grid = Netlist(cells, (Net(0, (1, 2)),)), Grid.of(array)
    placement = Placement(netlist, ((0, 1), (2, 1), (1, 2)))
    good = ((0, 1), (1, 1), (2, 1)), ((1, 1), (1, 2))
    Routing(placement, (Route(good),)).verify(grid, 1, "IO")
    for wrong, said in (
        (good[:1], "does not reach"),
        ((good[0], ((2, 2), (1, 2))), "does not begin on it"),
        ((((0, 1), (2, 1)), good[1]), "does not begin|no neighbour"),
        ((((0, 1), (0, 0), (1, 0), (2, 0), (2, 1)), ((2, 1), (2, 2), (1, 2))), "no neighbour"),
        ((*good, ((2, 1), (2, 2))), "ends at no sink"),
    ):
        with pytest.raises(ArrayError, match=said):
            Routing(placement, (Route(wrong),)).verify(grid, 1, "IO")
    with pytest.raises(ArrayError, match="0 routes"):
        Routing(placement, ()).verify(grid, 1, "IO")
