"""The layout of a network turns a graph into arrays: parts, streams and readers with their rings, and everything that kernels
find by address."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.samml import nodes as n
from fuseflow.samml.coordinate_bounds import stream_bounds
from fuseflow.sim.engine.agenda import AGENDA, new_agenda
from fuseflow.sim.engine.held_entries import EntryList
from fuseflow.sim.engine.kernels import RULES
from fuseflow.sim.engine.kernels.comal import RULES as COMAL_RULES
from fuseflow.sim.engine.kernels.record import recorder
from fuseflow.sim.engine.node_layout import (
    Array,
    LayoutRule,
    Limits,
    Link,
    NodeLayout,
    Part,
    StreamKey,
    element_capacity,
    word_count,
)
from fuseflow.sim.engine.node_records import NODE
from fuseflow.sim.engine.remote_memory import RemoteLayout
from fuseflow.sim.engine.stream_rings import MANY, POPS, READER, READER_SIZE, RUN, STREAM, STREAM_SIZE
from fuseflow.sim.engine.workspace import WorkspaceTable
from fuseflow.sim.machine.comal import broadcast_delays, readers_of_sums, tile_lags
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.machine.timing import NodeTiming, node_timing
from fuseflow.sim.memory.controller import Controller, sequential_readers
from fuseflow.sim.native.jit import Library
from fuseflow.sim.native.records import address
from fuseflow.tensors import Tensor

LAPS = 2
"""The ring of the computed elements of a stream holds so many times what its FIFOs hold: tokens that are produced together lie in one
piece, so the ring is cut where it begins again."""


@dataclass(frozen=True, slots=True)
class StreamReader:
    """Input `input` of part `part`, which reads stream number `stream`. `edge` is None for those inside a node and for recorders."""

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
    nodes: npt.NDArray[Any] = field(default_factory=lambda: NODE.array(0))
    streams: npt.NDArray[Any] = field(default_factory=lambda: STREAM.array(0))
    readers: npt.NDArray[Any] = field(default_factory=lambda: READER.array(0))
    readers_of: list[list[int]] = field(default_factory=list)
    writer_of: list[int] = field(default_factory=list)
    """The part that writes each stream."""
    rings: list[Array] = field(default_factory=list)
    scratches: list[Array] = field(default_factory=list)
    histories: list[Array] = field(default_factory=list)
    tables: dict[str, list[WorkspaceTable] | list[EntryList]] = field(default_factory=dict)
    arrays: dict[int, Array] = field(default_factory=dict)
    """The arrays that kernels find by address."""
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
    if controller is None:
        _make_parts(layout, tensors, machine, rules, library, record, summed)
    else:
        remote = RemoteLayout(controller, controller.lay_out(graph, tensors), sequential_readers(graph))
        _make_parts(layout, tensors, machine, remote.rules(rules), library, record, summed)
        remote.open()
    _number(layout)
    _fill_nodes(layout, machine, library)
    depths = _reader_depths(layout, machine)
    _fill_streams(layout, machine, depths)
    _fill_readers(layout, machine, depths)
    askers = [p for p, part in enumerate(layout.parts) if part.asks]
    layout.agenda = new_agenda(_neighbours(layout), askers, layout.arrays)
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
    coordinate_bounds, widened = stream_bounds(graph), dict[int, tuple[Array, Array]]()
    for node in graph.nodes:
        node_layout = NodeLayout(
            node, machine, tuple(types[port] for port in node.inputs), coordinate_bounds, graph.declared, tensors, library, layout.limits,
            layout.arrays, widened, layout.tables, node.name in summed,
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
    """Number streams in the order of the parts that write them, and readers in the order of the parts that read."""
    for p, part in enumerate(layout.parts):
        layout.keys += part.outputs
        layout.writer_of += [p] * len(part.outputs)
    number = {key: k for k, key in enumerate(layout.keys)}
    layout.readers_of = [[] for _ in layout.keys]
    for p, (part, owner) in enumerate(zip(layout.parts, layout.owners, strict=True)):
        for q, key in enumerate(part.inputs):
            edge = n.Edge(owner.name, part.first + q) if owner is not None and isinstance(key, n.Port) else None
            layout.readers_of[number[key]].append(len(layout.edges))
            layout.edges.append(StreamReader(number[key], p, q, edge))


def _neighbours(layout: NetworkLayout) -> list[list[int]]:
    """Return, for each part, those whose firings may let it go on: the parts at the other ends of its streams, and those of the
    same node."""
    neighbours: list[set[int]] = [set() for _ in layout.parts]
    for reader in layout.edges:
        writer = layout.writer_of[reader.stream]
        neighbours[writer].add(reader.part)
        neighbours[reader.part].add(writer)
    for _, parts in groupby(range(len(layout.parts)), key=lambda p: id(layout.owners[p]) if layout.owners[p] else -p):
        siblings = list(parts)
        for p in siblings:
            neighbours[p].update(siblings)
    return [sorted(others - {p}) for p, others in enumerate(neighbours)]


def _fill_nodes(layout: NetworkLayout, machine: Machine, library: Library) -> None:
    nodes = layout.nodes = NODE.array(len(layout.parts))
    layout.streams, layout.readers = STREAM.array(len(layout.keys)), READER.array(len(layout.edges))
    inputs, outputs = address(layout.readers), address(layout.streams)
    for p, (part, owner) in enumerate(zip(layout.parts, layout.owners, strict=True)):
        interval = 1 if owner is None or part.helper else _interval(part, _timing(layout, owner, machine))
        nodes[p]["kernel"] = library.address(part.kernel)
        nodes[p]["state"] = address(part.state)
        nodes[p]["inputs"], nodes[p]["arity"] = inputs, len(part.inputs)
        nodes[p]["outputs"], nodes[p]["ports"] = outputs, len(part.outputs)
        nodes[p]["interval"] = interval
        nodes[p]["pause"] = interval if machine.rules == "comal" else 1
        nodes[p]["burst"] = layout.limits.burst if interval == 1 else 1
        nodes[p]["last"] = -1
        inputs += READER_SIZE * len(part.inputs)
        outputs += STREAM_SIZE * len(part.outputs)


def _reader_depths(layout: NetworkLayout, machine: Machine) -> list[int | None]:
    """Return the depth of the FIFO of every reader, None if it is unbounded."""
    depths: list[int | None] = []
    given = dict(layout.graph.depths)
    for reader in layout.edges:
        key = layout.keys[reader.stream]
        if reader.edge is not None:
            depths.append(given.get(reader.edge, machine.first_depth))
        else:
            depths.append(key.depth if isinstance(key, Link) else None)
    return depths


def _ring_size(limit: int, needed: Sequence[int | None]) -> int:
    """Return the size of a ring, a power of two up to the limit. It holds so many entries for each of its bounded readers, of whose
    number None is said for an unbounded one. A ring that is small stays in the caches of the processor."""
    counts = [count for count in needed if count is not None]
    return limit if len(counts) < len(needed) or not counts else min(limit, 1 << (max(counts) - 1).bit_length())


def _fill_streams(layout: NetworkLayout, machine: Machine, depths: Sequence[int | None]) -> None:
    limits, streams = layout.limits, layout.streams
    lag_by_port = tile_lags(layout.graph) if machine.rules == "comal" else {}
    start = address(layout.readers)
    for k, (key, readers) in enumerate(zip(layout.keys, layout.readers_of, strict=True)):
        owner = layout.owners[layout.writer_of[k]]
        assert owner is not None
        tile = layout.types[key].tile if isinstance(key, n.Port) else ()
        reader_depths = [depths[r] for r in readers]
        runs = _ring_size(limits.runs, reader_depths)
        capacity = _ring_size(element_capacity(limits.elements, tile), [d and LAPS * d for d in reader_depths])
        ring, scratch = RUN.array(runs), np.zeros(capacity * word_count(tile))
        reader_addresses = np.array([start + READER_SIZE * r for r in readers] or [0], dtype=np.int64)
        layout.rings.append(ring)
        layout.scratches.append(scratch)
        layout.arrays[address(reader_addresses)] = reader_addresses
        streams[k]["ring"], streams[k]["mask"] = address(ring), runs - 1
        streams[k]["scratch"], streams[k]["capacity"] = address(scratch), capacity
        link = key if isinstance(key, Link) else Link()
        streams[k]["bytes"] = 8 * word_count(tile)
        streams[k]["limited"] = int(layout.parts[layout.writer_of[k]].computes and link.stored)
        streams[k]["latency"] = _timing(layout, owner, machine).latency if link.latency is None else link.latency
        streams[k]["lag"] = lag_by_port.get(key, 0) if isinstance(key, n.Port) else 0
        streams[k]["readers"], streams[k]["count"] = address(reader_addresses), len(readers)
        streams[k]["writer"] = layout.writer_of[k]


def _interval(part: Part, timing: NodeTiming) -> int:
    return timing.emission if part.emits else timing.interval


def _timing(layout: NetworkLayout, node: n.Node, machine: Machine) -> NodeTiming:
    types = [layout.types[port] for port in node.inputs]
    return node_timing(node, layout.graph, machine, [type_.tile for type_ in types if type_.kind == "val"])


def _fill_readers(layout: NetworkLayout, machine: Machine, depths: Sequence[int | None]) -> None:
    limits, readers, streams = layout.limits, layout.readers, layout.streams
    delay_by_edge = broadcast_delays(layout.graph) if machine.rules == "comal" else {}
    for r, (reader, depth) in enumerate(zip(layout.edges, depths, strict=True)):
        history = POPS.array(_ring_size(limits.pops, [depth and depth + 1]))
        layout.histories.append(history)
        stream = streams[reader.stream]
        readers[r]["part"] = reader.part
        readers[r]["stream"] = address(streams) + STREAM_SIZE * reader.stream
        readers[r]["ring"], readers[r]["mask"], readers[r]["latency"] = stream["ring"], stream["mask"], stream["latency"]
        readers[r]["history"], readers[r]["history_mask"] = address(history), len(history) - 1
        readers[r]["depth"] = depth or 0
        stream["bounded"] |= depth is not None
        readers[r]["delay"] = 0 if reader.edge is None else delay_by_edge.get(reader.edge, 0)
        readers[r]["slot_cursor"] = 0 if depth else MANY
        readers[r]["reach"] = -1 - stream["latency"]
