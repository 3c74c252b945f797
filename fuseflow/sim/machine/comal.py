"""The `comal` machine: what every simulator of it shares. Its rules of time are in docs/streams.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeGuard

from fuseflow.samml import nodes as n
from fuseflow.sim.outcome.statistics import NodeStatistics
from fuseflow.tile_ops import TileShape

ENDING = (n.Root.op, n.WriteValues.op)
"""Of these the firing on `D` takes a cycle."""


def cycles(nodes: Iterable[NodeStatistics]) -> int:
    """Cycles of a region: the end of its last process. The firing on `D`, its last one, costs a cycle in roots and value writers only."""
    return max(node.last + (node.op in ENDING) for node in nodes)


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


def interval(node: n.Node, tiles: Sequence[TileShape]) -> int:
    """Cycles from one firing to the next, stops included: of a product of tiles one for each column of the first, of all else 1."""
    return tiles[0][1] if _multiplies(node) else 1


def lags(graph: n.Graph) -> dict[n.Port, int]:
    """By how many cycles the values of a stream come later than its stops would: of streams of tiles, and what is made of them."""
    types = graph.types()
    found: dict[n.Port, int] = {}
    for node in graph.nodes:
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        if isinstance(node, n.Load | n.Alu | n.Reduce):
            found[n.Port(node.name)] = _latency(node, tiles, types[n.Port(node.name)].tile) - 1
    return {port: lag for port, lag in found.items() if lag}


def _latency(node: n.Load | n.Alu | n.Reduce, tiles: Sequence[TileShape], result: TileShape) -> int:
    """Cycles from a firing to its value. An array multiplies, with a unit for each element of the result, rows and columns beginning one
    after the other; one operand is worked on by rows, a row a cycle; all else by elements."""
    if _multiplies(node):
        a, b = tiles
        return a[0] + b[0 if node.function == "matmul_t" else 1] - 1
    if isinstance(node, n.Alu) and len(tiles) == 1:
        return tiles[0][0] if tiles[0] else 1
    return prod(result)


def _multiplies(node: n.Node) -> TypeGuard[n.Alu]:
    return isinstance(node, n.Alu) and node.function in ("matmul", "matmul_t")


def _one_sided(node: n.Node) -> bool:
    return isinstance(node, n.Join) and len(node.payloads) == 1
