"""The layout of a network turns a graph into arrays: parts, streams and readers with their rings, and everything that kernels
find by address."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.machine.comal import broadcast_delays, readers_of_sums, tile_lags
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import EdgeFifo, NodeTiming, edge_fifo, node_timing
from fuseflow.memory.memory_interface import Controller
from fuseflow.native.kernel_library import Library
from fuseflow.native.records import address
from fuseflow.samml import nodes as n
from fuseflow.samml.graph import stream_bounds
from fuseflow.sim.engine.kernels import RULES
from fuseflow.sim.engine.kernels.comal import COMAL_RULES
from fuseflow.sim.engine.kernels.write import recorder
from fuseflow.sim.engine.node_firing import NODE, SPECIAL
from fuseflow.sim.engine.node_layout import (
    Array,
    LayoutRule,
    Limits,
    Link,
    NodeLayout,
    Part,
    StreamKey,
    TensorData,
    element_capacity,
    word_count,
)
from fuseflow.sim.engine.pop_history import POPS
from fuseflow.sim.engine.remote_layout import RemoteLayout
from fuseflow.sim.engine.stream_rings import MANY, READER, READER_SIZE, RUN, SHARED, STREAM, STREAM_SIZE
from fuseflow.sim.engine.visits import AGENDA, new_agenda
from fuseflow.sim.engine.workspace import EntryList, WorkspaceTable
from fuseflow.sim.precision import node_arithmetic
from fuseflow.tensors import Tensor

LAPS = 8
"""The ring of the computed elements of a stream holds `LAPS` times as many as its FIFOs: tokens that are produced together must
be contiguous, so a run of them ends at the end of the ring."""
LEAST_RING, ALL_RINGS = 64, 1 << 15
"""The least entries of a ring, and the entries that the rings of a graph of few streams share, if limits allow it. A smaller ring
is full, or at its end, so often that kernels take more and smaller steps."""
PAGE = 4096
"""The bytes of a page of memory."""


@dataclass(frozen=True, slots=True)
class StreamReader:
    """Input `input` of part `part`, which reads stream number `stream`. `edge` is the edge of the graph, None inside a node and
    for recorders."""

    stream: int
    part: int
    input: int
    edge: n.Edge | None


@dataclass(slots=True)
class NetworkLayout:
    """A graph ready to run. Parts, streams and readers are numbered; `nodes`, `streams`, `readers` hold their records."""

    graph: n.Graph
    types: dict[n.Port, n.StreamType]
    limits: Limits
    parts: list[Part] = field(default_factory=list)
    owners: list[n.Node | None] = field(default_factory=list)
    """The node of each part, None for a recorder."""
    keys: list[StreamKey] = field(default_factory=list)
    edges: list[StreamReader] = field(default_factory=list)
    reader_of: dict[n.Edge, int] = field(default_factory=dict)
    """The number of the reader at each edge of the graph."""
    nodes: npt.NDArray[Any] = field(default_factory=lambda: NODE.array(0))
    streams: npt.NDArray[Any] = field(default_factory=lambda: STREAM.array(0))
    readers: npt.NDArray[Any] = field(default_factory=lambda: READER.array(0))
    readers_of: list[list[int]] = field(default_factory=list)
    reader_addresses: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """The addresses of the readers of all streams, one stream behind the other."""
    added: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """The slots of each reader that are those of hops, and not of its FIFO."""
    writer_of: list[int] = field(default_factory=list)
    """The part that writes each stream."""
    rings: list[Array] = field(default_factory=list)
    scratches: list[Array] = field(default_factory=list)
    histories: list[Array] = field(default_factory=list)
    tables: dict[str, list[WorkspaceTable] | list[EntryList]] = field(default_factory=dict)
    arrays: dict[int, Array] = field(default_factory=dict)
    """The arrays that kernels find by address and may write."""
    data: TensorData = field(default_factory=dict)
    agenda: npt.NDArray[Any] = field(default_factory=lambda: AGENDA.array(1))
    controller: Controller | None = None
    """The controller of the memory, None where the memory answers at once."""


def lay_out(
    graph: n.Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    library: Library,
    limits: Limits,
    record: bool = False,
    controller: Controller | None = None,
) -> NetworkLayout:
    """Return the layout of a verified graph on its tensors. With a `controller`, nodes read and write through it."""
    layout = NetworkLayout(graph, graph.types(), limits, controller=controller)
    rules, summed = (RULES | COMAL_RULES, readers_of_sums(graph)) if machine.rules == "comal" else (RULES, frozenset[str]())
    remote = None
    if controller is not None:
        remote = RemoteLayout(controller, graph, tensors)
        rules = remote.rules(rules)
    _make_parts(layout, tensors, machine, rules, library, record, summed)
    if remote is not None:
        remote.open()
    _number(layout)
    timings = _timings(layout, machine)
    _fill_nodes(layout, machine, timings, library)
    fifos = _reader_fifos(layout, machine, timings)
    depths = [fifo.slots for fifo in fifos]
    _fill_streams(layout, machine, timings, depths)
    _fill_readers(layout, machine, depths, fifos)
    askers = [p for p, part in enumerate(layout.parts) if part.asks]
    layout.agenda = new_agenda(_neighbours(layout), askers, _defers(layout, depths), layout.arrays)
    return layout


def _make_parts(
    layout: NetworkLayout,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    rules: Mapping[type[n.Node], LayoutRule],
    library: Library,
    record: bool,
    summed: Container[str],
) -> None:
    graph, types = layout.graph, layout.types
    coordinate_bounds = stream_bounds(graph)
    for node in graph.nodes:
        node_layout = NodeLayout(
            node, machine, tuple(types[port] for port in node.inputs), coordinate_bounds, graph.declared, tensors, library, layout.limits,
            layout.arrays, layout.data, node_arithmetic(graph, node, machine), layout.tables, node.name in summed,
        )  # fmt: skip
        parts = n.require_entry(rules, type(node), "kernel in the engine")(node, node_layout)
        layout.parts += parts
        layout.owners += [node] * len(parts)
    if record:
        layout.parts += [
            recorder(port, type_.tile, layout.limits.writer_elements, layout.arrays) for port, type_ in types.items()
        ]
        layout.owners += [None] * len(types)


def _number(layout: NetworkLayout) -> None:
    """Number all streams in the order of the parts that write them, and all readers in the order of the parts that read."""
    for p, part in enumerate(layout.parts):
        layout.keys += part.outputs
        layout.writer_of += [p] * len(part.outputs)
    number = {key: k for k, key in enumerate(layout.keys)}
    layout.readers_of = [[] for _ in layout.keys]
    for p, (part, owner) in enumerate(zip(layout.parts, layout.owners, strict=True)):
        for q, key in enumerate(part.inputs):
            edge = n.Edge(owner.name, part.first + q) if owner is not None and isinstance(key, n.Port) else None
            layout.readers_of[number[key]].append(len(layout.edges))
            if edge is not None:
                layout.reader_of[edge] = len(layout.edges)
            layout.edges.append(StreamReader(number[key], p, q, edge))


def _neighbours(layout: NetworkLayout) -> list[list[int]]:
    """Return, for each part, the parts whose firings may unblock it: the parts at the other ends of its streams and of those before a
    link (`past_links`), and the other parts of its node."""
    neighbours: list[set[int]] = [set() for _ in layout.parts]
    sources = {reader.part: layout.writer_of[reader.stream] for reader in layout.edges}
    for reader in layout.edges:
        writer = layout.writer_of[reader.stream]
        neighbours[writer].add(reader.part)
        neighbours[reader.part].add(writer)
        while isinstance(layout.owners[writer], n.Link):
            writer = sources[writer]
            neighbours[reader.part].add(writer)
    for _, parts in groupby(range(len(layout.parts)), key=lambda p: id(layout.owners[p]) if layout.owners[p] else -p):
        siblings = list(parts)
        for p in siblings:
            neighbours[p].update(siblings)
    return [sorted(others - {p}) for p, others in enumerate(neighbours)]


def _timings(layout: NetworkLayout, machine: Machine) -> list[NodeTiming | None]:
    """Return the timing of the node of every part, None for recorders."""
    timing_by_node: dict[str, NodeTiming] = {}
    for node in layout.graph.nodes:
        types = [layout.types[port] for port in node.inputs]
        timing_by_node[node.name] = node_timing(
            node, layout.graph, machine, [type_.tile for type_ in types if type_.kind == "val"]
        )
    return [None if owner is None else timing_by_node[owner.name] for owner in layout.owners]


def _fill_nodes(layout: NetworkLayout, machine: Machine, timings: Sequence[NodeTiming | None], library: Library) -> None:
    parts, nodes = layout.parts, NODE.array(len(layout.parts))
    layout.nodes = nodes
    layout.streams, layout.readers = STREAM.array(len(layout.keys)), READER.array(len(layout.edges))
    interval = np.array([_interval(part, timing) for part, timing in zip(parts, timings, strict=True)], np.int64)
    nodes["kernel"] = [library.address(part.kernel) for part in parts]
    nodes["state"] = [address(part.state) for part in parts]
    nodes["arity"], nodes["ports"] = [len(part.inputs) for part in parts], [len(part.outputs) for part in parts]
    nodes["inputs"] = address(layout.readers) + READER_SIZE * _starts(nodes["arity"])
    nodes["outputs"] = address(layout.streams) + STREAM_SIZE * _starts(nodes["ports"])
    turns = dict(layout.graph.turns)
    for p, owner in enumerate(layout.owners):
        if owner is not None and (turn := turns.get(owner.name)):
            special = SPECIAL.array(1)
            special["turns"], special["turn"] = turn.of, turn.number
            nodes["special"][p] = address(special)
            layout.arrays[address(special)] = special
    nodes["interval"] = interval
    nodes["pause"] = interval if machine.rules == "comal" else list(map(_pause, parts, timings))
    nodes["burst"] = np.where((interval == 1) & (nodes["special"] == 0), layout.limits.burst, 1)
    nodes["last"] = -1


def _interval(part: Part, timing: NodeTiming | None) -> int:
    if timing is None or part.helper:
        return 1
    return timing.emission if part.emits else timing.interval


def _pause(part: Part, timing: NodeTiming | None) -> int:
    return 1 if timing is None or part.helper or part.emits else timing.pause


def _starts(sizes: Array) -> Array:
    """Return the offsets of consecutive pieces of these sizes."""
    starts: Array = np.cumsum(sizes) - sizes
    return starts


def _zeroed(dtype: npt.DTypeLike, sizes: Sequence[int]) -> tuple[list[Array], Array]:
    """Return a zeroed array of each of these sizes, and their addresses. Arrays of less than a page are pieces of one array,
    since one array is made sooner than thousands. A larger array is allocated alone, so that only its written pages take
    memory."""
    own = np.dtype(dtype).itemsize * np.array(sizes, np.int64) >= PAGE
    shared_sizes = np.where(own, 0, sizes)
    shared, starts = np.zeros(max(int(shared_sizes.sum()), 1), dtype), _starts(shared_sizes)
    addresses = address(shared) + shared.itemsize * starts
    arrays = [shared[start : start + size] for start, size in zip(starts.tolist(), sizes, strict=True)]
    for k in np.flatnonzero(own).tolist():
        arrays[k] = np.zeros(sizes[k], dtype)
        addresses[k] = address(arrays[k])
    return arrays, addresses


def _reader_fifos(layout: NetworkLayout, machine: Machine, timings: Sequence[NodeTiming | None]) -> list[EdgeFifo]:
    """Return the FIFO of every reader."""
    given, hops, by_name = dict(layout.graph.depths), dict(layout.graph.hops), layout.graph.by_name
    links = [key.depth if isinstance(key, Link) else None for key in layout.keys]
    latencies = [timing.latency if timing else 1 for timing in timings]

    def fifo(edge: n.Edge, stream: int) -> EdgeFifo:
        return edge_fifo(by_name[edge.node], given.get(edge), hops.get(edge), latencies[layout.writer_of[stream]], machine)

    return [EdgeFifo(links[r.stream]) if r.edge is None else fifo(r.edge, r.stream) for r in layout.edges]


def _defers(layout: NetworkLayout, depths: Sequence[int | None]) -> bool:
    """Return whether parts that decide about no request are visited in later windows of the memory. Where all FIFOs are shallow,
    they could do little more later than now, and visiting all parts takes less time than finding out which ones decide."""
    if layout.controller is None:
        return False
    shallow = layout.limits.windows * layout.controller.step
    return any(depth is None or depth > shallow for depth, reader in zip(depths, layout.edges, strict=True) if reader.edge)


def _least_ring(layout: NetworkLayout) -> int:
    """Return the number of entries of the smallest ring of a network. Where there are many streams, small rings stay in the
    caches of the processor."""
    return max(LEAST_RING, ALL_RINGS // max(len(layout.keys), 1))


def _ring_size(limit: int, least: int, needed: Sequence[int | None]) -> int:
    """Return the size of a ring, a power of two up to the limit. It holds at least `least` entries, and as many as `needed` says
    for each of its bounded readers. An unbounded reader has None there."""
    counts = [count for count in needed if count is not None]
    if len(counts) < len(needed) or not counts:
        return limit
    return min(limit, 1 << (max(least, *counts) - 1).bit_length())


def _fill_streams(
    layout: NetworkLayout, machine: Machine, timings: Sequence[NodeTiming | None], depths: Sequence[int | None]
) -> None:
    limits, streams, least = layout.limits, layout.streams, _least_ring(layout)
    lag_by_port = tile_lags(layout.graph) if machine.rules == "comal" else {}
    runs, capacities, words, latencies = list[int](), list[int](), list[int](), list[int]()
    for key, writer, readers in zip(layout.keys, layout.writer_of, layout.readers_of, strict=True):
        timing = timings[writer]
        assert timing is not None
        tile = layout.types[key].tile if isinstance(key, n.Port) else ()
        reader_depths = [depths[r] for r in readers]
        runs.append(_ring_size(limits.runs, least, reader_depths))
        capacities.append(_ring_size(element_capacity(limits.elements, tile), least, [d and LAPS * d for d in reader_depths]))
        words.append(word_count(tile))
        latencies.append(key.latency if isinstance(key, Link) and key.latency is not None else timing.latency)
    elements = [capacity * count for capacity, count in zip(capacities, words, strict=True)]
    layout.rings, streams["ring"] = _zeroed(RUN.dtype, runs)
    layout.scratches, streams["scratch"] = _zeroed(np.float64, elements)
    streams["mask"], streams["capacity"] = np.array(runs, np.int64) - 1, capacities
    streams["bytes"] = 8 * np.array(words, np.int64)
    streams["limited"] = [
        layout.parts[writer].computes and (key.stored if isinstance(key, Link) else True)
        for key, writer in zip(layout.keys, layout.writer_of, strict=True)
    ]
    streams["latency"], streams["writer"] = latencies, layout.writer_of
    streams["lag"] = [lag_by_port.get(key, 0) if isinstance(key, n.Port) else 0 for key in layout.keys]
    counts = [len(readers) for readers in layout.readers_of]
    numbers = np.array([r for readers in layout.readers_of for r in readers], np.int64)
    layout.reader_addresses = address(layout.readers) + READER_SIZE * numbers
    streams["count"], streams["readers"] = counts, address(layout.reader_addresses) + 8 * _starts(np.array(counts, np.int64))


def _fill_readers(layout: NetworkLayout, machine: Machine, depths: Sequence[int | None], fifos: Sequence[EdgeFifo]) -> None:
    limits, readers, streams, least = layout.limits, layout.readers, layout.streams, _least_ring(layout)
    delay_by_edge = broadcast_delays(layout.graph) if machine.rules == "comal" else {}
    of_stream = np.array([reader.stream for reader in layout.edges], np.int64)
    lengths = [_ring_size(limits.pops, least, [depth and 2 * depth + 1]) for depth in depths]
    layout.histories, readers["history"] = _zeroed(POPS.dtype, lengths)
    readers["history_mask"] = np.array(lengths, np.int64) - 1
    readers["part"] = [reader.part for reader in layout.edges]
    readers["stream"] = address(streams) + STREAM_SIZE * of_stream
    for name in ("ring", "mask", "latency"):
        readers[name] = streams[name][of_stream]
    readers["depth"] = [depth or 0 for depth in depths]
    streams["bounded"][of_stream[np.array([depth is not None for depth in depths], bool)]] = (
        SHARED if machine.rules == "comal" else 1
    )
    readers["delay"] = [
        delay_by_edge.get(reader.edge, fifo.delay) if reader.edge else 0 for fifo, reader in zip(fifos, layout.edges, strict=True)
    ]
    readers["back"] = [fifo.back for fifo in fifos]
    layout.added = np.array([fifo.added for fifo in fifos], np.int64)
    readers["slot_cursor"] = np.where(readers["depth"] > 0, 0, MANY)
    readers["unwatched"] = [depth is None and reader.edge is None for depth, reader in zip(depths, layout.edges, strict=True)]
    readers["reach"] = np.where(readers["unwatched"] != 0, MANY, -1 - readers["latency"] - readers["back"])
