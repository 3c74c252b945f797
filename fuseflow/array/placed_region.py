"""Placed regions: a graph with the sites of its cells and the routes of its nets, how fast that can be clocked, and how long it takes to
load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from fuseflow.array.anneal import EFFORT, SEEDS, anneal
from fuseflow.array.exact import exact_placement, lower_bound
from fuseflow.array.grid import Grid, Placement
from fuseflow.array.netlist import Net, Netlist, netlist_of
from fuseflow.array.routing import Branch, Link, Routing, route
from fuseflow.array.settings import ArraySettings
from fuseflow.errors import ArrayError
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n

MOST_CELLS = 10_000
"""The most cells of a graph that are placed."""


@dataclass(frozen=True, slots=True)
class PlacementSearch:
    """What is spent on a placement: the runs of annealing with their effort, the seconds of the exact search, and, without that, the
    seconds for a lower bound of the wirelength; 0 is none."""

    effort: float = EFFORT
    seeds: int = SEEDS
    exact_seconds: float = 0.0
    bound_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class LongestPath:
    """The path of the most hops from a source to a sink, and the net that it is of."""

    net: Net
    sink: int
    sites: Branch

    @property
    def hops(self) -> int:
        return len(self.sites) - 1


@dataclass(frozen=True)  # with a place for cached values
class PlacedRegion:
    """A graph on an array. `bound` is a wirelength that no placement is below, or None if it is not known."""

    graph: n.Graph
    array: ArraySettings
    routing: Routing
    effort: float
    seeds: int
    bound: int | None = None

    @property
    def placement(self) -> Placement:
        return self.routing.placement

    @property
    def netlist(self) -> Netlist:
        return self.placement.netlist

    @property
    def proven(self) -> bool:
        """Whether no placement is shorter."""
        return self.bound == self.placement.wirelength

    @cached_property
    def tiles(self) -> Mapping[str, int]:
        """The tiles that the cells take, by kind."""
        counts = Counter(cell.kind for cell in self.netlist.cells)
        return {kind: counts[kind] for kind in self.array.kinds}

    @cached_property
    def longest(self) -> LongestPath | None:
        """The longest path, the first of several; None if there are no nets."""
        ends = [(net, r, sink) for net, r in zip(self.netlist.nets, self.routing.routes, strict=True) for sink in net.sinks]
        if not ends:
            return None
        net, its_route, sink = ends[max(range(len(ends)), key=lambda k: (self.routing.lengths[k], -k))]
        return LongestPath(net, sink, its_route.path(self.placement.sites[sink]))

    @property
    def mean_hops(self) -> float:
        """The hops from a source to a sink, on average."""
        lengths = self.routing.lengths
        return sum(lengths) / len(lengths) if lengths else 0.0

    @property
    def tile_delay(self) -> int | None:
        """The delay of the slowest kind of tile, or of the slowest switch box on a route if that is slower, in picoseconds: the clock
        cycle where each hop has a register. None if the array states no delay of one of them."""
        kinds = (kind for kind, count in self.tiles.items() if count)
        ways = {_way(link) for link in self.routing.use}
        return self._slowest((*kinds, *ways))

    @property
    def path_delay(self) -> int | None:
        """The largest delay of a tile and of the switch boxes behind it up to a sink, in picoseconds: the clock cycle where hops have no
        registers. None if the array states no delay of one of them."""
        delays, cells, sites = self.array.delays_ps, self.netlist.cells, self.placement.sites
        if (slowest := self.tile_delay) is None:
            return None
        for net, its_route in zip(self.netlist.nets, self.routing.routes, strict=True):
            for sink in net.sinks:
                ways = (delays[_way(link)] for link in pairwise(its_route.path(sites[sink])))
                slowest = max(slowest, delays[cells[net.source].kind] + sum(ways))
        return slowest

    @property
    def delays(self) -> Mapping[str, int | None]:
        """What the clock of a circuit follows from, with registers at hops and without, as plain values."""
        return {"tile_delay_ps": self.tile_delay, "path_delay_ps": self.path_delay}

    def _slowest(self, names: tuple[str, ...]) -> int | None:
        delays = self.array.delays_ps
        return max(delays[name] for name in names) if names and all(name in delays for name in names) else None

    @property
    def loading_cycles(self) -> int:
        """The cycles from the end of the region before until the configuration is loaded."""
        return self.array.load.cycles(len(self.netlist.cells), self.routing.hops)

    def leaves_room_for(self, other: PlacedRegion) -> bool:
        """Return whether another region may lie on the array at the same time: on other sites, and on links that have tracks for both."""
        use = self.routing.use + other.routing.use
        apart = set(self.placement.sites).isdisjoint(other.placement.sites)
        return apart and max(use.values(), default=0) <= self.array.tracks


def _way(link: Link) -> str:
    """Return the way through a switch box that a link takes: up is to the north."""
    (_, y), (_, y1) = link
    return "across" if y == y1 else "up" if y1 < y else "down"


def place_region(
    graph: n.Graph,
    array: ArraySettings,
    machine: Machine | None,
    search: PlacementSearch,
    beside: PlacedRegion | None = None,
) -> PlacedRegion:
    """Return a verified graph on an array: annealed, then placed exactly if that is asked for, and routed. It lies `beside` another region
    if there are tiles and links enough for both. Raises `ArrayError` if the array has too few tiles, or links stay too full."""
    netlist, grid = netlist_of(graph, array, machine), Grid.of(array)
    if len(netlist.cells) > MOST_CELLS:
        raise ArrayError(f"region `{graph.name}` has {len(netlist.cells):,} cells, and at most {MOST_CELLS:,} are placed")
    free, taken = grid, Counter[Link]()
    if beside is not None:
        left = grid.without(frozenset(beside.placement.sites))
        needed = Counter(cell.kind for cell in netlist.cells)
        if all(count <= len(left.sites[kind]) for kind, count in needed.items()):
            free, taken = left, beside.routing.use
    placement, bound = anneal(netlist, free, search.effort, search.seeds), None
    if search.exact_seconds and free is grid:
        exact = exact_placement(netlist, grid, placement, search.exact_seconds)
        placement, bound = exact.placement, exact.bound
    elif search.exact_seconds or search.bound_seconds:
        bound = lower_bound(netlist, grid, search.exact_seconds or search.bound_seconds)
    try:
        routing = route(placement, grid, array.tracks, array.ports.kind, taken)
    except ArrayError as error:
        if beside is not None and free is not grid:
            return place_region(graph, array, machine, search)
        raise ArrayError(f"region `{graph.name}` is not routed: {error.message}", hint=error.hint) from error
    return PlacedRegion(graph, array, routing, search.effort, search.seeds, bound)
