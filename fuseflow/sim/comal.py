"""The `comal` machine: what every simulator of it shares. Its rules of time are in docs/streams.md."""

from __future__ import annotations

from collections.abc import Iterable

from fuseflow.samml import nodes as n
from fuseflow.sim.statistics import NodeStatistics


def cycles(nodes: Iterable[NodeStatistics]) -> int:
    """Cycles of a region: the end of its last process. The firing on `D`, its last one, costs a cycle in roots and value writers only."""
    return max(node.last + (node.op in (n.Root.op, n.WriteValues.op)) for node in nodes)


def delays(graph: n.Graph) -> dict[n.Edge, int]:
    """Broadcasts that a token passes on its way to each reader.

    One, if the stream has several readers. All repeats with this signal count as one, their generator, and pass one more if they are
    several: it stands behind the generator, but delays the repeat as much in front of it. A one-sided join that reads what a locate
    reads counts as one with it: another tool's locate, which passes its inputs on, is read as these two nodes.
    """
    kinds = graph.by_name
    found: dict[n.Edge, int] = {}
    for readers in graph.readers().values():
        signals = [edge for edge in readers if isinstance(kinds[edge.node], n.Repeat) and edge.input == 1]
        locates = [edge for edge in readers if isinstance(kinds[edge.node], n.Locate)]
        through = [edge for edge in readers if edge.input == 0 and _one_sided(kinds[edge.node])]
        paired = min(len(locates), len(through))
        broadcast = int(len(readers) - len(signals) - paired + bool(signals) > 1)
        found |= {edge: broadcast + (edge in signals and len(signals) > 1) for edge in readers}
    return found


def _one_sided(node: n.Node) -> bool:
    return isinstance(node, n.Join) and len(node.payloads) == 1
