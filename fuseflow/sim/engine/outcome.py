"""This module collects the results of the engine when it stops: statistics, written elements, recorded streams, or which part
waits for which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fuseflow.errors import SimulationError
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import ArrayKind
from fuseflow.native.records import address
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Token, stop
from fuseflow.samml.writers import LaneWriter
from fuseflow.sim.engine import node_firing
from fuseflow.sim.engine.buffer_growth import PartOutput, collect_all, stream_numbers
from fuseflow.sim.engine.network_layout import NetworkLayout
from fuseflow.sim.engine.node_firing import BUFFER, ENDED, INPUT, OUTPUT, TOUCH
from fuseflow.sim.engine.node_layout import Array, word_count
from fuseflow.sim.engine.stream_rings import CONTROL, DONE, EMPTY, MANY, READER_SIZE, high_of, low_of
from fuseflow.sim.outcome import deadlock
from fuseflow.sim.outcome.output_tensors import WriterStream, with_lanes_gathered
from fuseflow.sim.outcome.statistics import (
    EdgeStatistics,
    NodeStatistics,
    Outcome,
    Recording,
    edges,
    node_statistics,
    run_cycles,
)


def outcome(layout: NetworkLayout, machine: Machine, part_output: PartOutput) -> Outcome:
    """Return the outcome of a finished run: cycles, statistics, written elements and recorded streams."""
    collect_all(layout, part_output)
    nodes = statistics(layout)
    token_counts = dict(zip(layout.keys, layout.streams["pushed"].tolist(), strict=True))
    return Outcome(
        cycles=run_cycles(nodes, machine, layout.controller),
        nodes=nodes,
        edges=_edges(layout),
        tokens={key: token_counts[key] for key in layout.keys if isinstance(key, n.Port)},
        values=_values(layout),
        elements=_elements(layout),
        written=_written(layout, part_output),
        memory=None if layout.controller is None else layout.controller.statistics(),
        streams={
            key: _recording(np.concatenate(part_output.elements[p]), layout.types[key])
            for p, part in enumerate(layout.parts)
            if layout.owners[p] is None
            for key in part.inputs
            if isinstance(key, n.Port)
        },
    )


def _edges(layout: NetworkLayout) -> tuple[EdgeStatistics, ...]:
    """Return the statistics of every FIFO, in graph order."""
    pushed, peaks = layout.streams["pushed"].tolist(), layout.readers["peak"].tolist()
    numbered = ((edge, layout.reader_of[edge]) for edge in edges(layout.graph))
    return tuple(EdgeStatistics(edge.node, edge.input, pushed[layout.edges[r].stream], peaks[r]) for edge, r in numbered)


def statistics(layout: NetworkLayout) -> tuple[NodeStatistics, ...]:
    """Return the statistics of every node, in graph order."""
    records, count = layout.nodes, sum(owner is not None for owner in layout.owners)  # the recorders come last
    starts = np.array([p for p in range(count) if p == 0 or layout.owners[p] is not layout.owners[p - 1]])
    counted = np.array([not part.helper for part in layout.parts])
    fired = counted & (records["firings"] > 0)
    closings = records["closings"]
    occupied = (records["firings"] - closings) * records["interval"] + closings * records["pause"]

    def combine(function: np.ufunc, values: Array) -> list[int]:
        return [int(value) for value in function.reduceat(values[:count], starts)]

    waited = combine(np.add, records["waited"])
    firings, starved, blocked = (
        combine(np.add, np.where(counted, records[name], 0)) for name in ("firings", "starved", "blocked")
    )
    first = [-1 if cycle == MANY else cycle for cycle in combine(np.minimum, np.where(fired, records["first"], MANY))]
    last = combine(np.maximum, np.where(counted, records["last"], -1))
    busy = combine(np.maximum, np.where(counted, occupied, 0))
    held = [
        int(layout.parts[start].state[0]["most"]) if isinstance(layout.owners[start], n.Workspace) else None for start in starts
    ]
    return tuple(
        node_statistics(node, *figures)
        for node, *figures in zip(layout.graph.nodes, waited, firings, starved, blocked, first, last, busy, held, strict=True)
    )


def _values(layout: NetworkLayout) -> dict[str, int]:
    """Return the number of values that each operator node has computed."""
    counts: dict[str, int] = {}
    for node, record, part in zip(layout.owners, layout.nodes, layout.parts, strict=True):
        if node is None or not node.operator:
            continue
        if isinstance(node, n.Workspace):  # of two parts, which share their state
            counts[node.name] = int(part.state[0]["values"])
        else:
            counts[node.name] = int(record["firings"] - record["closings"])
    return counts


def _elements(layout: NetworkLayout) -> dict[tuple[str, ArrayKind], int]:
    """Return the number of elements of each array that each reading node has read."""
    counts: dict[tuple[str, ArrayKind], int] = {}
    declared = layout.graph.declared
    for p, node in enumerate(layout.owners):
        state, record = layout.parts[p].state[0], layout.nodes[p]
        if layout.parts[p].helper:
            continue
        if isinstance(node, n.Load):
            counts[node.name, "val"] = int(record["firings"] - record["closings"] - state["absent"]) * word_count(
                declared[node.tensor].tile
            )
        elif isinstance(node, n.Scan):
            for array in declared[node.tensor].stored_arrays(node.level):
                entries = int(state["entries"]) if array.entry else 0
                counts[node.name, array.kind] = array.scanned * int(state["references"]) + array.entry * entries
        elif isinstance(node, n.Locate) and node.keeps(declared):
            counts[node.name, "crd"] = int(state["kept"])
        elif isinstance(node, n.Locate):
            for array in declared[node.tensor].stored_arrays(node.level):
                if array.told:
                    counts[node.name, array.kind] = int(state["asked"])
    return counts


def _written(layout: NetworkLayout, part_output: PartOutput) -> Mapping[str, WriterStream]:
    """Return the streams of every output. The pieces of each array in `part_output` are joined and then released."""
    streams = {name: WriterStream() for name in layout.graph.outputs}
    for p, node in enumerate(layout.owners):
        if isinstance(node, LaneWriter):
            streams[node.tensor].lanes[node.name] = np.concatenate(part_output.elements.pop(p))
        elif isinstance(node, n.WriteLevel):
            streams[node.tensor].crd[node.level] = np.concatenate(part_output.elements.pop(p))
            streams[node.tensor].pos[node.level] = np.concatenate([[0], *part_output.ends.pop(p)])
        elif isinstance(node, n.WriteValues):
            streams[node.tensor].values = np.concatenate(part_output.elements.pop(p))
    return with_lanes_gathered(layout.graph, streams)


def _recording(rows: Array, type_: n.StreamType) -> Recording:
    """Return the recording of a stream of a type. Of each token `rows` has the kind, the cycle, and the word or words."""
    elements: Iterable[Any] = rows[:, 2].tolist()
    if type_.kind == "val":
        values = rows[:, 2:].copy().view(np.float64)
        elements = values.reshape(-1, *type_.tile) if type_.tile else values[:, 0].tolist()
    tokens = [
        _control(word) if kind == CONTROL else N if kind == EMPTY else element
        for kind, word, element in zip(rows[:, 0].tolist(), rows[:, 2].tolist(), elements, strict=True)
    ]
    return Recording(tokens, tuple(rows[:, 1].tolist()))


def _control(word: int) -> Token:
    return D if word == DONE else stop(low_of(word), high_of(word))


def describe_deadlock(
    layout: NetworkLayout,
    nodes: tuple[NodeStatistics, ...],
    smallest_depth: Callable[[Sequence[n.Edge]], int | None],
    run_deepened: Callable[[Mapping[n.Edge, int]], deadlock.Deadlock | None],
) -> deadlock.Deadlock:
    """Return the deadlock of a stuck run: which part waits for what. The two functions compute advice about depths later."""
    waits = layout.nodes["waits"].tolist()
    full = full_readers(layout)
    first_readers = ((layout.nodes["inputs"] - address(layout.readers)) // READER_SIZE).tolist()
    stuck_parts = [p for p in unfinished_parts(layout) if layout.owners[p] is not None]
    position = {p: k for k, p in enumerate(stuck_parts)}
    processes = []
    for p in stuck_parts:
        owner = layout.owners[p]
        assert owner is not None
        awaited, blocking_part = _awaited(layout, p, waits[p], first_readers[p], full)
        processes.append(deadlock.WaitingProcess(owner.name, awaited, position.get(blocking_part)))
    return deadlock.Deadlock(tuple(processes), nodes, smallest_depth, run_deepened)


def unfinished_parts(layout: NetworkLayout) -> list[int]:
    """Return the parts that have not ended. A part that fetches ahead has ended if nothing will need its further lines: those of elements
    that no token names at the end of an array, such as the padding of a level n:m."""
    waits, firings = layout.nodes["waits"], layout.nodes["firings"]

    def is_dropped(p: int) -> bool:
        if waits[p] != TOUCH or waits[p - 1] != ENDED:
            return False
        requester = layout.parts[p].state[0]
        return bool(firings[p] - requester["ahead"] >= requester["needed"])

    return [p for p in np.flatnonzero(waits != ENDED).tolist() if not is_dropped(p)]


def _awaited(
    layout: NetworkLayout, p: int, wait: int, first_reader: int, full: Mapping[int, int]
) -> tuple[deadlock.AwaitedResource, int]:
    """Return the resource that the stuck part `p` waits for (`wait`), and the part that would have to fire first. `first_reader`
    is the number of the reader at its first input, `full` the result of `full_readers`."""
    if INPUT <= wait < OUTPUT:
        reader = layout.edges[first_reader + wait - INPUT]
        writer = layout.writer_of[reader.stream]
        owner = layout.owners[writer]
        if reader.edge is None or owner is None:
            return deadlock.AwaitedWorkspace(), writer
        return deadlock.AwaitedToken(reader.input, owner.name), writer
    if OUTPUT <= wait < BUFFER:
        r = full[p]
        edge = layout.edges[r].edge
        if edge is None:
            return deadlock.AwaitedWorkspace(), layout.edges[r].part
        return deadlock.AwaitedSlot(edge, int(layout.readers[r]["depth"] - layout.added[r])), layout.edges[r].part
    if wait == TOUCH:
        return deadlock.AwaitedWorkspace(), p - 1  # the part that fetches ahead
    return deadlock.AwaitedWorkspace(), p + 1


def full_readers(layout: NetworkLayout) -> dict[int, int]:
    """Return, for every part that waits for a slot, the number of the reader whose FIFO is full."""
    waits = layout.nodes["waits"]
    parts = np.flatnonzero((waits >= OUTPUT) & (waits < BUFFER))
    streams = stream_numbers(layout, parts, waits[parts] - OUTPUT)
    positions = layout.streams["blocked"][streams].tolist()
    return {p: layout.readers_of[k][position] for p, k, position in zip(parts.tolist(), streams.tolist(), positions, strict=True)}


def fault_error(layout: NetworkLayout) -> SimulationError:
    """Return the error for the first node with a fault, such as inputs that do not fit together."""
    p = int(np.flatnonzero(layout.nodes["fault"])[0])
    node, record = layout.owners[p], layout.nodes[p]
    assert node is not None
    match record["fault"]:
        case node_firing.REFUSED:
            reason = "got the empty token `N`, which it refuses: put an `alu copy` with the implicit value before it"
        case node_firing.TWICE:
            reason = "got two values at the same coordinates, which it refuses: the entries of a tensor are unique"
        case node_firing.LARGE:
            room = int(layout.arrays[int(layout.parts[p].state[0]["array"])][0]["length"]) // 8
            reason = f"writes more than the {room:,} bytes that the memory has for it"
        case node_firing.OUTSIDE:
            reason = f"a reference is outside its tensor after {record['firings']} firings"
        case node_firing.MISALIGNED:
            reason = f"its inputs differ in structure after {record['firings']} firings"
        case fault:
            raise AssertionError(f"a kernel set the unknown fault {fault}")
    return SimulationError(f"node `{node.name}` ({node.op}): {reason}")
