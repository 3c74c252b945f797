"""The run of a region tile by tile, put together to one simulation: the cycles and the counts of all tiles, and the whole results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from fuseflow.lower.region_tile import RegionTile
from fuseflow.lower.regions import CompiledRegion
from fuseflow.memory.statistics import MemoryPort, MemoryStatistics, joined_channels, joined_ports
from fuseflow.samml.nodes import Graph
from fuseflow.sim import NodeStatistics, Simulation
from fuseflow.sim.outcome.statistics import EdgeStatistics, Traffic
from fuseflow.tensors import Tensor
from fuseflow.tensors.pack import from_coordinates
from fuseflow.tensors.restriction import concatenate

K = TypeVar("K", bound=Hashable)
Run = Callable[[Graph, Mapping[str, Tensor]], Simulation]
"""A function that simulates a graph on its tensors."""


def run_tiles(region: CompiledRegion, memory: Mapping[str, Tensor], run: Run) -> Simulation:
    """Run the tiles of a region one after the other, on the tensors in `memory`, and return them as one simulation."""
    simulations: list[Simulation] = []
    for number, tile in enumerate(region.tiles):
        read = tile.read(memory)
        if tile.ahead:
            following = region.tiles[number + 1].read(memory)
            read |= {name: following[own] for name, own in tile.ahead.items()}
        if tile.behind:
            read |= {name: simulations[-1].outputs[own] for name, own in tile.behind.items()}
        simulations.append(run(tile.graph, read))
    return _joined(region, simulations)


def _joined(region: CompiledRegion, parts: Sequence[Simulation]) -> Simulation:
    modes = {result.name: result.indices.index(region.tiles[0].index) for result in region.fused.results}
    outputs = {name: assembled([part.outputs[name] for part in parts], modes[name]) for name in region.graph.outputs}
    memories = [part.memory for part in parts if part.memory is not None]
    return replace(
        parts[0],
        outputs=outputs,
        cycles=sum(part.cycles for part in parts),
        tokens=sum(part.tokens for part in parts),
        operators=_sums(part.operators for part in parts),
        traffic=_traffic(region.tiles, parts),
        nodes=tuple(_node(name, op, parts) for name, op in ((node.name, node.op) for node in region.graph.nodes)),
        edges=_edges(parts),
        depths=_most(part.depths for part in parts),
        engine="fast" if any(part.engine == "fast" for part in parts) else "reference",
        memory=_memory(region.tiles, memories) if memories else None,
        kept=_sums(part.kept for part in parts),
        values=_sums(part.values for part in parts),
        tiles=len(parts),
    )


def assembled(parts: Sequence[Tensor], mode: int) -> Tensor:
    """Return the tensor that has the coordinates of all parts in a mode, part after part.

    >>> from fuseflow.tensors import Format, pack
    >>> assembled([pack([[1], [2]], Format.dense(2)), pack([[3], [4]], Format.dense(2))], 1).to_dense().tolist()
    [[1, 3], [2, 4]]
    """
    first = parts[0]
    if first.format.order[0] == mode and all(level.appended for level in first.format.levels):
        return concatenate(parts)
    offsets = np.cumsum([0, *(part.shape[mode] for part in parts)])
    pieces = [part.entries() for part in parts]
    for (entries, _), offset in zip(pieces, offsets, strict=False):
        entries[mode] += offset
    shape = tuple(int(offsets[-1]) if d == mode else size for d, size in enumerate(first.shape))
    entries, elements = (
        np.concatenate(columns, axis=axis) for columns, axis in zip(zip(*pieces, strict=True), (1, 0), strict=True)
    )
    return from_coordinates(shape, entries, elements, first.format, first.fill, first.type)


def _sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _most(counts: Iterable[Mapping[K, int]]) -> dict[K, int]:
    most: dict[K, int] = {}
    for each in counts:
        most |= {key: max(number, most.get(key, number)) for key, number in each.items()}
    return most


def _node(name: str, op: str, parts: Sequence[Simulation]) -> NodeStatistics:
    """Return the statistics of a node in all tiles. From its last firing in a tile to the end of the tile it is starved."""
    total = NodeStatistics(name, op, 0, 0, 0, -1, -1)
    begin = 0
    for part in parts:
        node = next((node for node in part.nodes if node.name == name), NodeStatistics(name, op, 0, 0, 0, -1, -1))
        idle = begin - 1 - total.last if node.last >= 0 else 0
        workspaces = [size for size in (total.workspace, node.workspace) if size is not None]
        total = NodeStatistics(
            name,
            op,
            total.firings + node.firings,
            total.starved + node.starved + node.processes * idle,
            total.blocked + node.blocked,
            begin + node.first if total.first < 0 <= node.first else total.first,
            begin + node.last if node.last >= 0 else total.last,
            total.waited + node.waited,
            total.occupied + node.occupied,
            max(workspaces, default=None),
        )
        begin += part.cycles
    return total


def _edges(parts: Sequence[Simulation]) -> tuple[EdgeStatistics, ...]:
    edges: dict[tuple[str, int], EdgeStatistics] = {}
    for edge in (edge for part in parts for edge in part.edges):
        before = edges.get((edge.node, edge.input), EdgeStatistics(edge.node, edge.input, 0, 0))
        tokens, peak = before.tokens + edge.tokens, max(before.peak, edge.peak)
        edges[edge.node, edge.input] = EdgeStatistics(edge.node, edge.input, tokens, peak)
    return tuple(edges.values())


def _traffic(tiles: Sequence[RegionTile], parts: Sequence[Simulation]) -> tuple[Traffic, ...]:
    rows: dict[tuple[str, str, str], Traffic] = {}
    for tile, part in zip(tiles, parts, strict=True):
        for row in part.traffic:
            name = tile.region.source(row.tensor)
            key = name, row.kind, row.direction
            before = rows.get(key, replace(row, tensor=name, words=0, bytes=0))
            rows[key] = replace(before, words=before.words + row.words, bytes=before.bytes + row.bytes)
    return tuple(rows.values())


def _memory(tiles: Sequence[RegionTile], memories: Sequence[MemoryStatistics]) -> MemoryStatistics:
    """Return the statistics of the memory in all tiles, with the places of the first. Ports of the same node and array are one port,
    also if they are those of several lanes."""

    def whole(tile: RegionTile, port: MemoryPort) -> MemoryPort:
        return replace(port, tensor=tile.region.source(port.tensor))

    ports = joined_ports(
        (whole(tile, port), of) for tile, memory in zip(tiles, memories, strict=True) for port, of in memory.ports
    )
    reads = [sum(of.fetches for port, of in memory.ports if port.direction == "read" and not port.on_chip) for memory in memories]
    latency = sum(memory.read_latency * count for memory, count in zip(memories, reads, strict=True)) / max(sum(reads), 1)
    return replace(
        memories[0],
        ports=ports,
        channels=joined_channels([memory.channels for memory in memories]),
        read_latency=latency,
        read_latency_p99=max(memory.read_latency_p99 for memory in memories),
    )
