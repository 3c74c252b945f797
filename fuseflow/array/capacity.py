"""Whether a graph fits an array: the tiles of each kind that its nodes, their bytes and its ports take, and those that the array has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fuseflow.array.footprint import PORT
from fuseflow.array.port_turns import port_groups, port_remedies, port_streams
from fuseflow.array.settings import ArraySettings
from fuseflow.errors import ArrayError
from fuseflow.machine.machine import Machine
from fuseflow.resources.area import ResourceCount, token_bytes
from fuseflow.resources.graph_resources import HeldEntries, Resources
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

    @property
    def extreme(self) -> str:
        """The tiles of which too few are there, or else those of the kind of which the largest share is taken.

        >>> TileUse("onyx", {"PE": 187, "IO": 36}, {"PE": 384, "IO": 32}, "IO").extreme
        '36 ports of 32'
        """
        most = max(self.needed, key=lambda kind: self.needed[kind] / max(1, self.available.get(kind, 0)))
        named = self.missing or (most,)
        return ", ".join(f"{self.needed[kind]} {self._word(kind)} of {self.available.get(kind, 0)}" for kind in named)

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
    needed, bound = _tiles(graph, array, machine, held or {})
    needed[array.ports.kind] = len(port_groups(graph, array))
    short = needed[array.ports.kind] > array.available[array.ports.kind]
    remedies = port_remedies(graph, array) if short else ()
    return TileUse(array.name, needed, array.available, array.ports.kind, bound, remedies)


def _tiles(
    graph: n.Graph, array: ArraySettings, machine: Machine | None, held: Mapping[str, HeldEntries]
) -> tuple[Counter[str], bool]:
    """Return the tiles of each kind that a graph takes, with the streams that ask ports, and whether they are an upper bound."""
    needed, bound = Counter(dict.fromkeys(array.kinds, 0)), False
    for node in graph.nodes:
        needed.update(node_tiles(node, graph, array))
    needed[array.ports.kind] = port_streams(graph, array)
    for storage in storages(graph, array, machine, held) if machine is not None else ():
        needed[array.memory.kind] += storage.tiles
        bound |= not storage.exact
    return needed, bound


def placed_tiles(graph: n.Graph, array: ArraySettings, machine: Machine) -> tuple[tuple[str, int], ...]:
    """Return the tiles that a graph takes where it is placed before any run, as `Resources.tiles` has them."""
    return limited_tiles(_tiles(graph, array, machine, {})[0], array)


def limited_tiles(tiles: Mapping[str, int], array: ArraySettings) -> tuple[tuple[str, int], ...]:
    """Return tiles by the names of their limits in a budget. Where ports serve several streams, the streams count."""
    return tuple((_limit_name(kind, array), tiles[kind]) for kind in array.kinds)


def _limit_name(kind: str, array: ArraySettings) -> str:
    return f"{kind} streams" if kind == array.ports.kind and array.ports.share > 1 else f"{kind} tiles"


def tile_limits(array: ArraySettings) -> Mapping[str, int]:
    """Return the limits of the tiles of an array: those that it has, or the streams that its ports serve."""
    available = {**array.available, array.ports.kind: array.available[array.ports.kind] * array.ports.share}
    return dict(limited_tiles(available, array))


def loading_cycles(used: Resources, array: ArraySettings) -> int:
    """Return the cycles that it takes to load a graph with these tiles, if it had no hops: these are not known before it is placed."""
    return array.load.cycles(sum(_least_tiles(used, array)))


def fit_together(graphs: Iterable[Resources], array: ArraySettings) -> bool:
    """Return whether the array has the tiles of several graphs at the same time."""
    needed = (sum(counts) for counts in zip(*(_least_tiles(used, array) for used in graphs), strict=True))
    return all(count <= array.available[kind] for kind, count in zip(array.kinds, needed, strict=True))


def _least_tiles(used: Resources, array: ArraySettings) -> tuple[int, ...]:
    """Return the tiles of each kind that a graph takes, if it shares ports as far as there are too few."""
    *tiles, streams = (count for _, count in used.tiles)
    return (*tiles, min(streams, array.available[array.ports.kind]))


def node_tiles(node: n.Primitive, graph: n.Graph, array: ArraySettings) -> Mapping[str, int]:
    """Return the tiles of each kind that the footprint of a node of a graph has, and the streams of it that ports serve. Raises
    `ArrayError` for a primitive without a row in the footprint."""
    tiles = array.rows.tiles(node, graph.declared)
    return {array.ports.kind if kind == PORT else kind: count for kind, count in tiles.items()}


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
    count = ResourceCount(graph, machine)
    for node in graph.nodes:
        storage = node_storage(node, count, array, held)
        if storage.tiles > 0:
            yield storage
    for edge, depth in graph.depths:
        if tiles := fifo_tiles(depth, (width := token_bytes(graph, graph.by_name[edge.node].inputs[edge.input])), array):
            yield Storage(edge.node, depth * width, tiles)


def node_storage(node: n.Primitive, count: ResourceCount, array: ArraySettings, held: Mapping[str, HeldEntries]) -> Storage:
    """Return what a node holds beyond its own tiles."""
    entry, buffer, memory = count.entry_bytes(node), count.node_buffers.get(node.name, 0), array.memory
    if not entry and not buffer:
        return Storage(node.name, 0, 0)
    entries = HeldEntries.of(count, node, held) if entry else HeldEntries(0)
    size = entry * entries.most + buffer
    own = array.rows.tiles(node, count.graph.declared).get(memory.kind, 0)
    return Storage(node.name, size, max(0, -(-size // memory.bytes) - own), entries.exact)


def fifo_tiles(depth: int, token: int, array: ArraySettings) -> int:
    """Return the tiles with memories that a FIFO with `depth` slots of `token` bytes takes: none if it is no deeper than those of tiles."""
    return -(-depth * token // array.memory.bytes) if depth > array.fifo_depth else 0
