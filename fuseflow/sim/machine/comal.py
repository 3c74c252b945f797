"""The timing facts of machines with `rules: comal`, which both simulators share. The rules of time are described in docs/streams.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeGuard

from fuseflow.samml import nodes as n
from fuseflow.sim.outcome.statistics import NodeStatistics
from fuseflow.tile_ops import TileShape

ENDING_OPS = (n.Root.op, n.WriteValues.op)
"""The operations whose firing on the token `D` takes a cycle. That of all other operations takes none."""


def region_cycles(nodes: Iterable[NodeStatistics]) -> int:
    """Return the cycles of a region, which ends with its last process. The firing on `D` is the last one of a process, and takes a cycle
    in roots and value writers only."""
    return max(node.last + (node.op in ENDING_OPS) for node in nodes)


def broadcast_delays(graph: n.Graph) -> dict[n.Edge, int]:
    """Return for each edge the number of broadcasts that a token passes on its way to that reader.

    A stream with several readers has one broadcast. All repeats with the same signal count as one reader, which is their signal
    generator. If there are several such repeats, their tokens pass one more broadcast: it stands behind the generator, but delays the
    repeats as much as one in front of it. A one-sided join that reads what a locate reads counts as one reader with it, because the
    locate of public SAM tools passes its inputs on and is read as these two nodes.
    """
    kinds = graph.by_name
    delays: dict[n.Edge, int] = {}
    for readers in graph.readers().values():
        signals = [edge for edge in readers if isinstance(kinds[edge.node], n.Repeat) and edge.input == 1]
        locates = [edge for edge in readers if isinstance(kinds[edge.node], n.Locate)]
        joins = [edge for edge in readers if edge.input == 0 and _one_sided(kinds[edge.node])]
        paired = min(len(locates), len(joins))
        broadcast = int(len(readers) - len(signals) - paired + bool(signals) > 1)
        delays |= {edge: broadcast + (edge in signals and len(signals) > 1) for edge in readers}
    return delays


def firing_interval(node: n.Node, tiles: Sequence[TileShape]) -> int:
    """Return the cycles from one firing to the next, stops included. A product of tiles takes one for each column of its first tile;
    everything else takes 1."""
    return tiles[0][1] if _multiplies(node) else 1


def tile_lags(graph: n.Graph) -> dict[n.Port, int]:
    """Return for each stream of tiles by how many cycles its values become visible later than its stops. Streams without such a lag are
    left out."""
    types = graph.types()
    lags: dict[n.Port, int] = {}
    for node in graph.nodes:
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        if isinstance(node, n.Load | n.Alu | n.Reduce):
            lags[n.Port(node.name)] = _latency(node, tiles, types[n.Port(node.name)].tile) - 1
    return {port: lag for port, lag in lags.items() if lag}


def _latency(node: n.Load | n.Alu | n.Reduce, tiles: Sequence[TileShape], result: TileShape) -> int:
    """Return the cycles from a firing to its value. A product runs on an array with a unit for each element of the result, whose rows
    and columns begin one after the other. An operator with one operand works row by row, a row a cycle. All others work element by
    element."""
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
