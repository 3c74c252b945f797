"""Routes: the links between neighbouring tiles over which each net of a placement reaches its sinks.

They are found by negotiated congestion (McMurchie and Ebeling, PathFinder, FPGA 1995). All nets are routed as if they were alone, and what
is shared by more of them than there are tracks becomes dearer, from pass to pass, until no link is too full. A net passes
a port only on its way to one behind that.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from fuseflow.array.grid import Grid, Placement, Site
from fuseflow.errors import ArrayError

Link = tuple[Site, Site]
"""The way from a tile to its neighbour. The way back is another link."""
Branch = tuple[Site, ...]
"""Sites one beside the other: from the source of a net, or from a site of an earlier branch, to a sink."""
HOP = 0.3
"""How much a hop between source and sink costs beside what its link costs."""
MOST_PASSES = 60
"""The passes after which links that are too full are an error. Graphs that can be routed took at most 5 on two tracks."""


@dataclass(frozen=True)  # with a place for cached values
class Route:
    """The route of a net: a branch for each of its sinks that lies on no earlier one, in the order in which they were found."""

    branches: tuple[Branch, ...]

    @cached_property
    def parents(self) -> Mapping[Site, Site]:
        """The site before each site on the way from the source."""
        return {b: a for branch in self.branches for a, b in pairwise(branch)}

    @property
    def links(self) -> Iterator[Link]:
        """Its links, each once."""
        return ((parent, site) for site, parent in self.parents.items())

    def path(self, sink: Site) -> Branch:
        """Return the sites from the source to a sink, both among them."""
        path = [sink]
        while path[-1] in self.parents:
            path.append(self.parents[path[-1]])
        return tuple(path[::-1])

    def forks(self) -> tuple[Site, ...]:
        """Return the sites away from the source where the route divides, or goes on behind a sink, in the order of branches."""
        ends = [branch[-1] for branch in self.branches]
        nexts = Counter(self.parents.values())
        source = self.branches[0][0] if self.branches else None
        return tuple(site for site, count in nexts.items() if site != source and (count > 1 or site in ends))


@dataclass(frozen=True)  # with a place for cached values
class Routing:
    """The routes of all nets of a placement, in the order of its nets."""

    placement: Placement
    routes: tuple[Route, ...]

    @cached_property
    def use(self) -> Counter[Link]:
        """How many nets each link carries."""
        return Counter(link for route in self.routes for link in route.links)

    @property
    def tracks(self) -> int:
        """The most nets on a link."""
        return max(self.use.values(), default=0)

    @property
    def hops(self) -> int:
        """The number of links of all nets."""
        return sum(self.use.values())

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The hops from source to sink, for each sink of each net."""
        sites = self.placement.sites
        pairs = zip(self.placement.netlist.nets, self.routes, strict=True)
        return tuple(len(route.path(sites[sink])) - 1 for net, route in pairs for sink in net.sinks)

    def verify(self, grid: Grid, tracks: int, ports: str) -> None:
        """Raise `ArrayError` where a route does not join its net, or takes links that are not there, and where a link is too full. `ports`
        is the kind of ports."""
        neighbours, nets = grid.neighbours(ports), self.placement.netlist.nets
        if len(self.routes) != len(nets):
            raise ArrayError(f"{len(self.routes)} routes are not those of {len(nets)} nets")
        for net, route in zip(nets, self.routes, strict=True):
            name = net.name(self.placement.netlist.cells)
            source, *sinks = (self.placement.sites[cell] for cell in net.cells)
            reached = {source}
            for branch in route.branches:
                if len(branch) < 2 or branch[0] not in reached or not reached.isdisjoint(branch[1:]):
                    raise ArrayError(f"net `{name}`: a branch of its route does not begin on it, or meets it again")
                for (x, y), (x1, y1) in pairwise(branch):
                    if (x1, y1) not in neighbours[x, y]:
                        raise ArrayError(
                            f"net `{name}`: column {x1}, row {y1} is no neighbour of column {x}, row {y} on the array"
                        )
                reached |= set(branch)
                if branch[-1] not in sinks:
                    raise ArrayError(f"net `{name}`: a branch of its route ends at no sink")
            if not reached.issuperset(sinks):
                raise ArrayError(f"net `{name}`: its route does not reach all its sinks")
        if self.tracks > tracks:
            raise ArrayError(f"a link carries {self.tracks} nets, and the array has {tracks} tracks")


def route(placement: Placement, grid: Grid, tracks: int, ports: str, taken: Mapping[Link, int] | None = None) -> Routing:
    """Return routes of all nets of a placement, at most `tracks` on each link, of which other graphs have `taken` some. `ports` is the kind
    of ports. Raises `ArrayError` where links stay too full."""
    search = _Search(tracks, grid.neighbours(ports), Counter(taken or {}), Counter())
    nets = [tuple(placement.sites[cell] for cell in net.cells) for net in placement.netlist.nets]
    routes: list[Route | None] = [None] * len(nets)
    for turn in range(MOST_PASSES):
        search.present = 0.5 * 1.5**turn if turn else 0.0
        for k, (source, *sinks) in enumerate(nets):
            old = routes[k]
            if old is not None:
                if search.has_room(old):
                    continue
                search.use.subtract(old.links)
            routes[k] = new = search.tree(source, sinks)
            search.use.update(new.links)
        full = [link for link, count in search.use.items() if count > tracks]
        if not full:
            return Routing(placement, tuple(r for r in routes if r is not None))
        for link in full:
            search.history[link] += search.use[link] - tracks
    hint = "more tracks, another placement (`--effort`, `--seeds`), or fewer lanes"
    raise ArrayError(f"{len(full)} links carry more than {tracks} nets after {MOST_PASSES} passes", hint=hint)


@dataclass(slots=True)
class _Search:
    """The state of the negotiation: how many nets each link carries (`use`), how often it was too full (`history`), and how much a net that
    is one too many costs now (`present`)."""

    tracks: int
    neighbours: Mapping[Site, Sequence[Site]]
    use: Counter[Link]
    history: Counter[Link]
    present: float = 0.0

    def has_room(self, route: Route) -> bool:
        """Return whether no link of a route is too full."""
        return all(self.use[link] <= self.tracks for link in route.links)

    def tree(self, source: Site, sinks: Sequence[Site]) -> Route:
        """Return the cheapest branches to the sinks, the nearest sink first."""
        depth, branches = {source: 0}, []
        for sink in sorted(dict.fromkeys(sinks), key=lambda sink: (_apart(source, sink), sink)):
            if sink in depth:
                continue
            branch = self._branch(depth, sink)
            depth |= {site: depth[branch[0]] + k for k, site in enumerate(branch)}
            branches.append(branch)
        return Route(tuple(branches))

    def _branch(self, depth: Mapping[Site, int], sink: Site) -> Branch:
        """Return the cheapest way from any site of a tree to a sink (A*: no way is cheaper than one straight over free links)."""
        best: dict[Site, float] = {}
        before: dict[Site, Site] = {}
        waiting: list[tuple[float, float, Site]] = []
        for site, hops in depth.items():
            best[site] = HOP * hops
            heapq.heappush(waiting, (best[site] + (1 + HOP) * _apart(site, sink), best[site], site))
        while waiting:
            _, cost, site = heapq.heappop(waiting)
            if site == sink:
                break
            if cost > best[site]:
                continue
            for other in self.neighbours[site]:
                if other in depth:
                    continue
                new = cost + HOP + self._cost((site, other))
                if new < best.get(other, float("inf")):
                    best[other], before[other] = new, site
                    heapq.heappush(waiting, (new + (1 + HOP) * _apart(other, sink), new, other))
        else:
            raise ArrayError(f"no way leads to the tile at column {sink[0]}, row {sink[1]}")
        path = [sink]
        while path[-1] not in depth:
            path.append(before[path[-1]])
        return tuple(path[::-1])

    def _cost(self, link: Link) -> float:
        over = max(0, self.use[link] + 1 - self.tracks)
        return (1 + self.history[link]) * (1 + self.present * over)


def _apart(a: Site, b: Site) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])
