"""Netlists: the tiles that a graph takes (cells) and what joins them (nets), without their places.

The tiles of a node are a chain in the order of its footprint. The inputs of a node enter the tiles of the chain in turn, and its last tile
gives its outputs; an accumulation goes round its chain. Tiles for what a node holds lengthen its chain, beside the way of its streams. A
node that asks the memory has a net to a port.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fuseflow.array.capacity import Storage, storages
from fuseflow.array.footprint import PORT
from fuseflow.array.port_turns import port_groups
from fuseflow.array.settings import ArraySettings
from fuseflow.errors import ArrayError
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n


@dataclass(frozen=True, slots=True)
class Cell:
    """A tile of a kind, for a `node` or for a part of it. A port that nodes share is of none."""

    name: str
    kind: str
    node: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Net:
    """A cell that sends (`source`) and the cells that receive (`sinks`), by number. A net with a `stream` carries that stream, and
    `readers` are the inputs that its sinks are for, in order; other nets are inside of nodes, or between nodes and ports."""

    source: int
    sinks: tuple[int, ...]
    stream: n.Port | None = None
    readers: tuple[n.Edge, ...] = ()

    @property
    def cells(self) -> tuple[int, ...]:
        """All its cells, the source first."""
        return (self.source, *self.sinks)

    def name(self, cells: Sequence[Cell]) -> str:
        """Return its name: that of its stream, or of its ends."""
        if self.stream is not None:
            return f"{self.stream.node}.{self.stream.output}"
        return f"{cells[self.source].name}->{cells[self.sinks[0]].name}"


@dataclass(frozen=True, slots=True)
class Netlist:
    """The cells of a graph and the nets between them."""

    cells: tuple[Cell, ...]
    nets: tuple[Net, ...]

    def __str__(self) -> str:
        lines = [f"{cell.name}: {cell.kind}" for cell in self.cells]
        for net in self.nets:
            sinks = ", ".join(self.cells[sink].name for sink in net.sinks)
            lines.append(f"{self.cells[net.source].name} -> {sinks}")
        return "\n".join(lines)

    def verify(self) -> None:
        """Raise `ArrayError` for a net without a sink or with a cell that is not there, and for two cells of one name."""
        if len({cell.name for cell in self.cells}) < len(self.cells):
            raise ArrayError("a netlist has two cells of one name")
        for net in self.nets:
            if not net.sinks or not all(0 <= cell < len(self.cells) for cell in net.cells):
                raise ArrayError(f"net {net} has no sink, or a cell that is not there")


def netlist_of(graph: n.Graph, array: ArraySettings, machine: Machine | None = None) -> Netlist:
    """Return the netlist of a verified graph on an array. On a `machine` it has the tiles for what nodes hold, too (`storages`). Raises
    `ArrayError` for a primitive without a row in the footprint."""
    chains = _Chains(graph, array, [], {}, {}, [], _port_names(port_groups(graph, array)), {}, {})
    for node in graph.nodes:
        chains.add(node)
    for storage in storages(graph, array, machine, {}) if machine is not None else ():
        chains.add_storage(storage)
    chains.inner += chains.port_nets()
    netlist = Netlist(tuple(chains.cells), (*chains.inner, *chains.streams()))
    netlist.verify()
    return netlist


@dataclass(slots=True)
class _Chains:
    """The cells so far, the numbers of those of each node and of those for what it holds (`banks`), and the nets inside of nodes.
    `port_names` has the ports of each node, `port_cells` the cell of each port so far, and `ports` the cells that ask each of these, and
    whether they write."""

    graph: n.Graph
    array: ArraySettings
    cells: list[Cell]
    of_node: dict[str, list[int]]
    banks: dict[str, list[int]]
    inner: list[Net]
    port_names: Mapping[str, Sequence[str]]
    port_cells: dict[str, int]
    ports: dict[int, list[tuple[int, bool]]]

    def add(self, node: n.Primitive) -> None:
        tiles = self.array.rows.tiles(node, self.graph.declared)
        kinds = [kind for kind, count in tiles.items() if kind != PORT for _ in range(count)]
        chain = [self._cell(f"{node.name}@{k}" if k else node.name, kind, node.name) for k, kind in enumerate(kinds)]
        self.of_node[node.name] = chain
        self.inner += [Net(a, (b,)) for a, b in itertools.pairwise(chain)]
        if isinstance(node, n.Accumulate) and len(chain) > 1:
            self.inner.append(Net(chain[-1], (chain[0],)))
        for name in self.port_names.get(node.name, ()) if chain else ():
            self._ask_port(name, node, chain[0])

    def _cell(self, name: str, kind: str, node: str) -> int:
        self.cells.append(Cell(name, kind, node))
        return len(self.cells) - 1

    def _ask_port(self, name: str, node: n.Primitive, cell: int) -> None:
        """Join a cell of a node to the port of a name, which the first cell makes."""
        if name not in self.port_cells:
            owner = node.name if name.startswith(f"{node.name}@") else ""
            self.port_cells[name] = self._cell(name, self.array.ports.kind, owner)
            self.ports[self.port_cells[name]] = []
        self.ports[self.port_cells[name]].append((cell, isinstance(node, n.TensorWriter)))

    def add_storage(self, storage: Storage) -> None:
        """Add tiles for what a node holds beside its own: a chain, from the last tile of the node."""
        banks = self.banks.setdefault(storage.node, [])
        for number in range(len(banks), len(banks) + storage.tiles):
            before = [*self.of_node[storage.node], *banks][-1:]
            banks.append(self._cell(f"{storage.node}@bytes{number}", self.array.memory.kind, storage.node))
            self.inner += [Net(cell, (banks[-1],)) for cell in before]

    def port_nets(self) -> Iterator[Net]:
        """Yield the nets of ports: from each to the cells that read, and from each cell that writes to its port."""
        for port, asking in self.ports.items():
            readers = tuple(cell for cell, writes in asking if not writes)
            if readers:
                yield Net(port, readers)
            yield from (Net(cell, (port,)) for cell, writes in asking if writes)

    def streams(self) -> Iterator[Net]:
        """Yield the nets of streams that have a source and readers."""
        for port, edges in self.graph.readers().items():
            sinks = [(edge, self._entry(edge)) for edge in edges]
            reached = [(edge, cell) for edge, cell in sinks if cell is not None]
            if (source := self._exit(port)) is not None and reached:
                yield Net(source, tuple(cell for _, cell in reached), port, tuple(edge for edge, _ in reached))

    def _entry(self, edge: n.Edge) -> int | None:
        chain, node = self.of_node[edge.node], self.graph.by_name[edge.node]
        count = len(node.inputs)
        place = count - 1 - edge.input if isinstance(node, n.Repeat) else edge.input  # its signal comes first
        return chain[place * len(chain) // count] if chain else None

    def _exit(self, port: n.Port) -> int | None:
        chain = self.of_node[port.node]
        if not chain:
            return None
        return chain[min(port.output, len(chain) - 1)] if isinstance(self.graph.by_name[port.node], n.Fork) else chain[-1]


def _port_names(groups: Sequence[Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Return the names of the ports of each node, given the nodes of each port. A port of a single node has the name of that."""
    names: dict[str, list[str]] = {}
    for port, group in enumerate(groups):
        for node in group:
            own = names.setdefault(node, [])
            own.append(f"io{port}" if len(group) > 1 else f"{node}@io{len(own) or ''}")
    return names
