"""The links of a placed region, as hops of its graph (docs/develop/firings.md#hops).

A hop is a register between two tiles. Where a route divides away from its source, or passes a reader, its hop is a node `link`, and the
edges have the hops of the segments between such points. Nets within a node, and between a node and its port, are hops of the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fuseflow.array.grid import Site
from fuseflow.array.netlist import Net
from fuseflow.array.placed_region import PlacedRegion
from fuseflow.array.port_turns import with_turns
from fuseflow.array.routing import Route
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import stated_depth
from fuseflow.samml import nodes as n


def linked_graph(placed: PlacedRegion) -> n.Graph:
    """Return the graph of a placed region with its hops and turns at ports. Hops without slots pass tokens on, so none is a `link`."""
    graph, sites, slots = with_turns(placed.graph, placed.array), placed.placement.sites, placed.array.hop.slots
    laid = _Laid(graph)
    for net, route in zip(placed.netlist.nets, placed.routing.routes, strict=True):
        if net.stream is not None and slots:
            laid.add(net.stream, route, sites[net.source], _readers(net, sites))
        elif net.stream is not None:
            pairs = zip(net.readers, net.sinks, strict=True)
            laid.hops |= {edge: n.Hops(len(route.path(sites[sink])) - 1, slots) for edge, sink in pairs}
    return laid.graph_with_links(node_hops(placed))


def at_equal_slots(placed: PlacedRegion, machine: Machine) -> n.Graph:
    """Return the graph of a placed region without hops, whose FIFOs have the slots of their hops, too: what remains of the cycles of
    the linked graph without the distances."""
    graph, sites, slots = with_turns(placed.graph, placed.array), placed.placement.sites, placed.array.hop.slots
    stated, depths = dict(graph.depths), dict[n.Edge, int]()
    for net, route in zip(placed.netlist.nets, placed.routing.routes, strict=True):
        for edge, sink in zip(net.readers, net.sinks, strict=True) if net.stream is not None else ():
            depth = stated_depth(graph.by_name[edge.node], stated.get(edge), machine)
            if depth is not None:
                depths[edge] = depth + slots * (len(route.path(sites[sink])) - 1)
    return graph.with_depths(depths)


def node_hops(placed: PlacedRegion) -> Mapping[str, n.NodeHops]:
    """Return the hops of nodes of several tiles, and of those with a port: the longest way from the first tile of a node to another of
    its tiles, once round the tiles of a fold, and to the port."""
    cells, port, sites = placed.netlist.cells, placed.array.ports.kind, placed.placement.sites
    hops, away = dict[str, n.NodeHops](), [0] * len(cells)
    for net, route in zip(placed.netlist.nets, placed.routing.routes, strict=True):
        for sink in net.sinks if net.stream is None else ():
            count, ends = len(route.path(sites[sink])) - 1, (cells[net.source], cells[sink])
            name = next(cell.node for cell in ends if cell.kind != port)
            old = hops.get(name, n.NodeHops())
            if any(cell.kind == port for cell in ends):
                hops[name] = replace(old, port=count)
            elif sink < net.source:  # from the last tile to the first
                hops[name] = replace(old, loop=away[net.source] + count)
            else:
                away[sink] = away[net.source] + count
                hops[name] = replace(old, inner=max(old.inner, away[sink]))
    return hops


def _readers(net: Net, sites: Sequence[Site]) -> Mapping[Site, Sequence[n.Edge]]:
    readers: dict[Site, list[n.Edge]] = {}
    for edge, sink in zip(net.readers, net.sinks, strict=True):
        readers.setdefault(sites[sink], []).append(edge)
    return readers


@dataclass(slots=True)
class _Laid:
    """The links behind each node, the stream that each edge reads where that is a link's, and the hops of edges."""

    graph: n.Graph
    links: dict[str, list[n.Link]] = field(default_factory=dict)
    reads: dict[n.Edge, n.Port] = field(default_factory=dict)
    hops: dict[n.Edge, n.Hops] = field(default_factory=dict)

    def add(self, stream: n.Port, route: Route, source: Site, readers: Mapping[Site, Sequence[n.Edge]]) -> None:
        """Lay the route of a stream from its source to the sites of its readers."""
        nexts: dict[Site, list[Site]] = {}
        for before, site in route.links:
            nexts.setdefault(before, []).append(site)
        waiting = [(source, stream)]
        while waiting:
            begin, port = waiting.pop()
            for site in nexts[begin]:
                count = 1
                while site not in readers and len(nexts[site]) == 1:
                    (site,), count = nexts[site], count + 1
                edges = readers.get(site, ())
                if site not in nexts and len(edges) == 1:
                    self.reads[edges[0]], self.hops[edges[0]] = port, n.Hops(count)
                else:
                    link = self._link(stream, port)
                    self.hops[n.Edge(link.node, 0)] = n.Hops(count - 1)
                    self.reads |= dict.fromkeys(edges, link)
                    waiting += [(site, link)] if site in nexts else []

    def _link(self, stream: n.Port, port: n.Port) -> n.Port:
        """Add a link that reads the output `port` of a node or another link, and return its output."""
        links = self.links.setdefault(stream.node, [])
        links.append(n.Link(f"{n.stream_name(self.graph.by_name[stream.node], stream.output)}.link{len(links)}", (port,)))
        return n.Port(links[-1].name)

    def graph_with_links(self, node_hops: Mapping[str, n.NodeHops]) -> n.Graph:
        nodes: list[n.Primitive] = []
        for node in self.graph.nodes:
            inputs = tuple(self.reads.get(n.Edge(node.name, k), port) for k, port in enumerate(node.inputs))
            nodes += [replace(node, inputs=inputs), *self.links.get(node.name, ())]
        return replace(self.graph, nodes=tuple(nodes)).with_hops(self.hops, node_hops)
