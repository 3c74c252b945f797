"""Whether a graph fits an array: the tiles of each kind that its nodes, their bytes and its ports take, and those that the array has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fuseflow.array.footprint import PORT
from fuseflow.array.port_turns import port_groups, port_remedies
from fuseflow.array.settings import ArraySettings
from fuseflow.errors import ArrayError
from fuseflow.machine.machine import Machine
from fuseflow.resources.graph_resources import HeldEntries
from fuseflow.resources.resource_count import ResourceCount, token_bytes
from fuseflow.samml import nodes as n


@dataclass(frozen=True, slots=True)
class TileUse:
    """The tiles that a graph takes (`needed`) and those that an array has, by kind, the kind `ports` of ports last. `bound` says that the
    bytes of a workspace are an upper bound, since no run counted its entries. `remedies` are what would help where ports are missing."""

    array: str
    needed: Mapping[str, int]
    available: Mapping[str, int]
    ports: str
    bound: bool = False
    remedies: tuple[str, ...] = ()

    @property
    def missing(self) -> Mapping[str, int]:
        """The tiles that the array lacks, by kind."""
        short = {kind: count - self.available.get(kind, 0) for kind, count in self.needed.items()}
        return {kind: count for kind, count in short.items() if count > 0}

    @property
    def fits(self) -> bool:
        """Whether the array has all tiles that the graph takes."""
        return not self.missing

    def shortage(self, region: str) -> str:
        """Return a sentence, without a full stop, that says of which kind of tile too few are there.

        >>> TileUse("onyx", {"PE": 187, "IO": 36}, {"PE": 384, "IO": 32}, "IO").shortage("full")
        'region `full` needs 36 ports, and array `onyx` has 32 (PE 187 of 384)'
        """
        lack = [f"{count} {self._word(kind)}" for kind, count in self.needed.items() if kind in self.missing]
        has = [str(self.available.get(kind, 0)) for kind in self.needed if kind in self.missing]
        rest = [
            f"{self._word(kind)} {count} of {self.available.get(kind, 0)}"
            for kind, count in self.needed.items()
            if kind not in self.missing
        ]
        behind = f" ({', '.join(rest)})" if rest else ""
        return f"region `{region}` needs {' and '.join(lack)}, and array `{self.array}` has {' and '.join(has)}{behind}"

    def _word(self, kind: str) -> str:
        return "ports" if kind == self.ports else kind


def tile_use(
    graph: n.Graph, array: ArraySettings, machine: Machine | None = None, held: Mapping[str, HeldEntries] | None = None
) -> TileUse:
    """Return the tiles that a verified graph takes on an array. On a `machine`, what its nodes hold is counted, too: a tile with a memory
    for each `memory.bytes` bytes that the tiles of the node do not have. `held` has the most entries of nodes that a run counted.
    Raises `ArrayError` for a primitive without a row in the footprint."""
    needed, bound = Counter(dict.fromkeys(array.kinds, 0)), False
    footprint, tensors = array.rows, graph.declared
    for node in graph.nodes:
        for kind, count in footprint.tiles(node, tensors).items():
            if kind != PORT:
                needed[kind] += count
    needed[array.ports.kind] = len(port_groups(graph, array))
    for storage in storages(graph, array, machine, held or {}) if machine is not None else ():
        needed[array.memory.kind] += storage.tiles
        bound |= not storage.exact
    short = needed[array.ports.kind] > array.available[array.ports.kind]
    remedies = port_remedies(graph, array) if short else ()
    return TileUse(array.name, needed, array.available, array.ports.kind, bound, remedies)


def require_fit(use: TileUse, region: str) -> None:
    """Raise `ArrayError` if a graph does not fit."""
    if not use.fits:
        raise ArrayError(use.shortage(region), hint=", or ".join(("a cut (`--fuse`), fewer lanes (`--par`)", *use.remedies)))


@dataclass(frozen=True, slots=True)
class Storage:
    """The `bytes` that a node, or a FIFO in front of it, holds beyond its own tiles, and the tiles with memories that have them. They are
    exact, or an upper bound."""

    node: str
    bytes: int
    tiles: int
    exact: bool = True


def storages(graph: n.Graph, array: ArraySettings, machine: Machine, held: Mapping[str, HeldEntries]) -> Iterator[Storage]:
    """Yield what needs tiles with memories beside those of the footprint: workspaces, reuse buffers, preloads and kept levels that
    are larger than the memories of the node's own tiles, and FIFOs that the graph makes deeper than those of tiles."""
    count, footprint, memory = ResourceCount(graph, machine), array.rows, array.memory
    for node in graph.nodes:
        entry, buffer = count.entry_bytes(node), count.node_buffers.get(node.name, 0)
        if not entry and not buffer:
            continue
        entries = HeldEntries.of(count, node, held) if entry else HeldEntries(0)
        size = entry * entries.most + buffer
        own = footprint.tiles(node, graph.declared).get(memory.kind, 0)
        if (tiles := -(-size // memory.bytes) - own) > 0:
            yield Storage(node.name, size, tiles, entries.exact)
    for edge, depth in graph.depths:
        if depth > array.fifo_depth:
            size = depth * token_bytes(graph, graph.by_name[edge.node].inputs[edge.input])
            yield Storage(edge.node, size, -(-size // memory.bytes))
