"""Links: a placed graph with its hops runs as with a process on every hop of its routes."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import pytest
from arrays import CAPACITY, LANES, recorded_graph
from engines import LIMITS, differences, on_engine, on_reference
from graph_fuzz import drawn
from hop_trees import DEPTHS, Branch, Trees, differences_from_processes, without_links
from random_graphs.case import Case

from fuseflow.array.anneal import anneal
from fuseflow.array.capacity import tile_use
from fuseflow.array.grid import Grid, Placement, Site
from fuseflow.array.links import linked_graph
from fuseflow.array.netlist import netlist_of
from fuseflow.array.placed_region import PlacedRegion
from fuseflow.array.routing import route
from fuseflow.array.settings import ArraySettings, load_array, read_array
from fuseflow.samml.nodes import Edge, Graph, Hops, Link, NodeHops
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify

ONYX, PLASTICINE = load_array("onyx"), load_array("plasticine")
SMALL = """
array:
  grid: {columns: 20, rows: 20}
  tiles: {rows: [PM, MP], kinds: {P: PE, M: MEM}}
  ports: {side: [north, south, west, east]}
  tracks: 16
  footprint: %s
"""


def anywhere(graph: Graph, array: ArraySettings, rng: random.Random) -> PlacedRegion:
    """A graph at random sites."""
    netlist, grid = netlist_of(graph, array), Grid.of(array)
    pools = {kind: rng.sample(sites, len(sites)) for kind, sites in grid.sites.items()}
    placement = Placement(netlist, tuple(pools[cell.kind].pop() for cell in netlist.cells))
    return PlacedRegion(graph, array, route(placement, grid, array.tracks, array.ports.kind), 1.0, 1)


def trees_of(placed: PlacedRegion) -> Trees:
    """The routes of the streams, hop by hop. What reads a stream without a tile of its own reads it at its source."""
    sites, trees, readers = placed.placement.sites, Trees(), placed.graph.readers()
    for net, its_route in zip(placed.netlist.nets, placed.routing.routes, strict=True):
        if net.stream is not None:
            ends = [(sites[sink], edge) for edge, sink in zip(net.readers, net.sinks, strict=True)]
            ends += [(sites[net.source], edge) for edge in readers[net.stream] if edge not in net.readers]
            steps = sorted({step for branch in its_route.branches for step in pairwise(branch)})
            trees[net.stream] = branches_at(sites[net.source], steps, ends)
    return trees


def branches_at(site: Site, steps: list[tuple[Site, Site]], ends: list[tuple[Site, Edge]]) -> tuple[Branch, ...]:
    here = [Branch(0, edge) for end, edge in ends if end == site]
    return (*here, *(Branch(1, branches_at(b, steps, ends)) for a, b in steps if a == site))


def stream_hops(placed: PlacedRegion) -> int:
    pairs = zip(placed.netlist.nets, placed.routing.routes, strict=True)
    return sum(len(list(its_route.links)) for net, its_route in pairs if net.stream is not None)


def ways_inside(placed: PlacedRegion) -> dict[str, NodeHops]:
    """The hops of nodes by a search in the graph of their tiles."""
    tiles, ports, sites = nx.DiGraph(), dict[str, int](), placed.placement.sites
    cells = placed.netlist.cells
    for net, way in zip(placed.netlist.nets, placed.routing.routes, strict=True):
        for sink in net.sinks if net.stream is None else ():
            length = len(way.path(sites[sink])) - 1
            a, b = cells[net.source], cells[sink]
            if "IO" in (a.kind, b.kind):
                ports[b.node if a.kind == "IO" else a.node] = length
            else:
                tiles.add_edge(net.source, sink, weight=length)
    hops = {name: NodeHops(port=length) for name, length in ports.items()}
    for part in [tiles.subgraph(part).copy() for part in nx.weakly_connected_components(tiles)]:
        (name,), loop = {cells[cell].node for cell in part}, 0
        for cycle in list(nx.simple_cycles(part)):
            loop = nx.path_weight(part, [*cycle, cycle[0]], "weight")
            part.remove_edge(max(cycle), min(cycle))
        hops[name] = replace(hops.get(name, NodeHops()), inner=nx.dag_longest_path_length(part), loop=loop)
    return hops


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(25, 1000, 25))])
def test_random_graphs_run_as_with_a_process_on_every_hop(first: int) -> None:
    arrays = [read_array(SMALL % name) for name in ("onyx", "simple")]
    with_links = 0
    for seed in range(first, first + 25):
        rng, case = random.Random(f"placed {seed}"), drawn(seed, None)
        graph = case.graph.with_depths({edge: rng.choice(DEPTHS) for edge, _ in case.graph.depths})
        if not tile_use(graph, arrays[0]).fits:
            continue
        placed = anywhere(graph, arrays[seed % 2], rng)
        linked = linked_graph(placed)
        verify(linked)
        assert replace(without_links(linked), node_hops=()) == graph and linked.hop_count == stream_hops(placed)
        with_links += linked.node_count < len(linked.nodes)
        case = Case(linked, case.tensors, case.machine.model_copy(update={"fifo_depth": rng.choice((None, *DEPTHS))}))
        expected = on_reference(case)
        lines = [
            *differences_from_processes(case, trees_of(placed), expected),
            *differences(case, expected, on_engine(case, LIMITS[seed % len(LIMITS)])),
        ]
        assert not lines, f"seed {seed}: " + "\n".join(lines[:5])
    assert with_links > 8


def fitting(array: ArraySettings) -> list[tuple[ArraySettings, str, int]]:
    return [(array, name, lanes) for name in CAPACITY for lanes in LANES if tile_use(recorded_graph(name, lanes), array).fits]


@pytest.mark.parametrize(
    ("array", "region", "lanes"), [*fitting(ONYX), *fitting(PLASTICINE)], ids=lambda value: getattr(value, "name", value)
)
def test_regions_of_the_models(array: ArraySettings, region: str, lanes: int) -> None:
    graph, grid = recorded_graph(region, lanes), Grid.of(array)
    routing = route(anneal(netlist_of(graph, array), grid, effort=0.1, seeds=1), grid, array.tracks, array.ports.kind)
    placed = PlacedRegion(graph, array, routing, 0.1, 1)
    linked = linked_graph(placed)
    verify(linked)
    assert parse(show(linked)) == linked
    assert replace(without_links(linked), node_hops=()) == graph and linked.hop_count == stream_hops(placed) > 0
    assert dict(linked.node_hops) == ways_inside(placed)


def test_hops_without_slots_are_those_of_each_reader() -> None:
    graph = recorded_graph("sae", 1)
    elastic = anywhere(graph, ONYX, random.Random(0))
    registers = replace(elastic, array=ArraySettings.model_validate({**ONYX.model_dump(), "hop": {"slots": 0}}))
    linked, sites = linked_graph(registers), elastic.placement.sites
    assert not any(isinstance(node, Link) for node in linked.nodes)
    pairs = [(net, way) for net, way in zip(elastic.netlist.nets, elastic.routing.routes, strict=True) if net.stream is not None]
    expected = {
        edge: Hops(len(way.path(sites[sink])) - 1, 0)
        for net, way in pairs
        for edge, sink in zip(net.readers, net.sinks, strict=True)
    }
    assert dict(linked.hops) == expected and linked.node_hops == linked_graph(elastic).node_hops
