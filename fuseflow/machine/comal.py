"""Numbers of cycles on machines with `rules: comal`, which both simulators share. The rules of time are described in
docs/reference/streams.md."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeGuard

from fuseflow.samml import nodes as n
from fuseflow.samml.public_streams import PublicStreams
from fuseflow.samml.verify import stream_facts
from fuseflow.tile_ops import TileShape

ENDING_OPS = (n.Root.op, n.WriteValues.op)
"""The operations whose firing on the token `D` takes a cycle. The firing of all other operations on `D` takes none."""


def broadcast_delays(graph: n.Graph) -> dict[n.Edge, int]:
    """Return for each edge the number of broadcasts that a token passes on its way to that reader, each of which delays it by a
    cycle.

    The broadcasts are counted in the graph that `fuseflow.samml` writes in the public schema, for the public simulator to run.
    """
    return PublicStreams(graph, stream_facts(graph)).broadcasts()


def readers_of_sums(graph: n.Graph) -> frozenset[str]:
    """Return the names of the nodes that take a firing more for each stop that is not behind a value.

    The public `Reduce` emits a sum for every stop, also for a stop that ends an empty list of lists, which has no sum here.
    Operators pass such a sum on, reductions fold it, and value writers write it. A repeat takes it together with the stop behind
    it. Tiles have no such rule.
    """
    types, sums, readers = graph.types(), set[n.Port](), set[str]()
    for node in graph.nodes:
        reads = isinstance(node, n.Reduce | n.Alu | n.WriteValues) and sums.issuperset(node.inputs)
        if reads:
            readers.add(node.name)
        if (isinstance(node, n.Reduce) or (isinstance(node, n.Alu) and reads)) and not types[n.Port(node.name)].tile:
            sums.add(n.Port(node.name))
    return frozenset(readers)


def firing_interval(node: n.Node, tiles: Sequence[TileShape]) -> int:
    """Return the cycles from one firing of a node to the next, stops included. A product of tiles takes one for each column of
    its first tile (`tiles` are the shapes of its inputs); every other node takes 1."""
    return tiles[0][1] if _multiplies(node) else 1


def tile_lags(graph: n.Graph) -> dict[n.Port, int]:
    """Return for each stream of tiles whose values are later visible than its stops by how many cycles."""
    types = graph.types()
    lags: dict[n.Port, int] = {}
    for node in graph.nodes:
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        if isinstance(node, n.Load | n.Alu | n.Reduce):
            lags[n.Port(node.name)] = _latency(node, tiles, types[n.Port(node.name)].tile) - 1
    return {port: lag for port, lag in lags.items() if lag}


def _latency(node: n.Load | n.Alu | n.Reduce, tiles: Sequence[TileShape], result: TileShape) -> int:
    """Return the cycles from a firing to its value, given the shapes of the inputs and of the result. A product runs on an array
    with a unit for each element of the result, whose rows and columns begin one after the other. An operator with one operand
    takes a row in each cycle, and any other an element."""
    if _multiplies(node):
        a, b = tiles
        return a[0] + b[0 if node.function == "matmul_t" else 1] - 1
    if isinstance(node, n.Alu) and len(tiles) == 1:
        return tiles[0][0] if tiles[0] else 1
    return prod(result)


def _multiplies(node: n.Node) -> TypeGuard[n.Alu]:
    return isinstance(node, n.Alu) and node.function in ("matmul", "matmul_t")
