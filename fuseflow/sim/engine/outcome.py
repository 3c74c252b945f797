"""What the engine hands over when it stops: statistics, written elements, recorded streams, or who waits for whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fuseflow.errors import SimulationError
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Token, stop
from fuseflow.sim.engine.network_layout import NetworkLayout
from fuseflow.sim.engine.node_layout import Array, words
from fuseflow.sim.engine.node_records import BUFFER, ENDED, INPUT, LARGE, OUTPUT, OUTSIDE, REFUSED, TOUCH, TWICE
from fuseflow.sim.engine.service import PartOutput, gather_all, input_of, output_of
from fuseflow.sim.engine.stream_rings import CONTROL, DONE, EMPTY, high_of, low_of
from fuseflow.sim.machine.comal import region_cycles
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.memory.layout import ArrayKind
from fuseflow.sim.outcome import deadlock as dead
from fuseflow.sim.outcome.statistics import EdgeStatistics, NodeStatistics, Outcome, Recording, edges, node_statistics
from fuseflow.sim.outcome.writer_streams import WriterStream
from fuseflow.tensors.levels.base import StoredArray


def outcome(layout: NetworkLayout, machine: Machine, gathered: PartOutput) -> Outcome:
    """Of a run that came to its end."""
    gather_all(layout, gathered)
    nodes = statistics(layout)
    acknowledged = -1 if layout.controller is None else layout.controller.acknowledged()
    reader = {r.edge: k for k, r in enumerate(layout.edges) if r.edge is not None}
    pushed = dict(zip(layout.keys, layout.streams["pushed"].tolist(), strict=True))
    return Outcome(
        cycles=region_cycles(nodes) if machine.rules == "comal" else 1 + max(acknowledged, *(node.last for node in nodes)),
        nodes=nodes,
        edges=tuple(
            EdgeStatistics(
                edge.node,
                edge.input,
                int(layout.streams[layout.edges[reader[edge]].stream]["pushed"]),
                int(layout.readers[reader[edge]]["peak"]),
            )
            for edge in edges(layout.graph)
        ),
        tokens={key: pushed[key] for key in layout.keys if isinstance(key, n.Port)},
        values=_values(layout),
        elements=_elements(layout),
        written=_written(layout, gathered),
        memory=None if layout.controller is None else layout.controller.statistics(),
        streams=_recordings(layout, gathered),
    )


def statistics(layout: NetworkLayout) -> tuple[NodeStatistics, ...]:
    """Of every node, in graph order."""
    found = []
    for node in layout.graph.nodes:
        parts = [p for p, owner in enumerate(layout.owners) if owner is node]
        waited = int(layout.nodes["waited"][parts].sum())
        of = layout.nodes[[p for p in parts if not layout.parts[p].helper]]
        began = of["first"][of["firings"] > 0]
        found.append(
            node_statistics(
                node,
                waited,
                firings=int(of["firings"].sum()),
                starved=int(of["starved"].sum()),
                blocked=int(of["blocked"].sum()),
                first=int(began.min()) if len(began) else -1,
                last=int(of["last"].max()),
                occupied=int(((of["firings"] - of["closings"]) * of["interval"] + of["closings"] * of["pause"]).max()),
            )
        )
    return tuple(found)


def _values(layout: NetworkLayout) -> dict[str, int]:
    found: dict[str, int] = {}
    for node, record, part in zip(layout.owners, layout.nodes, layout.parts, strict=True):
        if node is None or not node.operator:
            continue
        if isinstance(node, n.Workspace):  # of two parts, which share their state
            found[node.name] = int(part.state[0]["values"])
        else:
            found[node.name] = int(record["firings"] - record["closings"])
    return found


def _elements(layout: NetworkLayout) -> dict[tuple[str, ArrayKind], int]:
    found: dict[tuple[str, ArrayKind], int] = {}
    declared = layout.graph.declared
    for p, node in enumerate(layout.owners):
        state, record = layout.parts[p].state[0], layout.nodes[p]
        if layout.parts[p].helper:
            continue
        if isinstance(node, n.Load):
            found[node.name, "val"] = int(record["firings"] - record["closings"] - state["absent"]) * words(
                declared[node.tensor].tile
            )
        elif isinstance(node, n.Scan):
            for array in _arrays(declared[node.tensor], node.level):
                entries = int(state["entries"]) if array.entry else 0
                found[node.name, array.kind] = array.scanned * int(state["references"]) + array.entry * entries
        elif isinstance(node, n.Locate):
            for array in _arrays(declared[node.tensor], node.level):
                if array.told:
                    found[node.name, array.kind] = int(state["asked"])
    return found


def _arrays(decl: n.TensorDecl, level: int) -> tuple[StoredArray, ...]:
    return decl.format.levels[level].arrays(decl.shape[decl.format.order[level]])


def _written(layout: NetworkLayout, gathered: PartOutput) -> dict[str, WriterStream]:
    """The pieces in one, which are let go one after the other."""
    written = {name: WriterStream() for name in layout.graph.outputs}
    for p, node in enumerate(layout.owners):
        if isinstance(node, n.WriteLevel):
            written[node.tensor].crd[node.level] = np.concatenate(gathered.elements.pop(p))
            written[node.tensor].pos[node.level] = np.concatenate([[0], *gathered.ends.pop(p)])
        elif isinstance(node, n.WriteValues):
            written[node.tensor].values = np.concatenate(gathered.elements.pop(p))
    return written


def _recordings(layout: NetworkLayout, gathered: PartOutput) -> dict[n.Port, Recording]:
    return {
        part.inputs[0]: _recording(np.concatenate(gathered.elements[p]), layout.types[part.inputs[0]])
        for p, part in enumerate(layout.parts)
        if layout.owners[p] is None and isinstance(part.inputs[0], n.Port)
    }


def _recording(rows: Array, type_: n.StreamType) -> Recording:
    tokens = [
        _control(word) if kind == CONTROL else N if kind == EMPTY else element
        for kind, word, element in zip(rows[:, 0].tolist(), rows[:, 2].tolist(), _elements_in(rows[:, 2:], type_), strict=True)
    ]
    return Recording(tokens, tuple(rows[:, 1].tolist()))


def _elements_in(rows: Array, type_: n.StreamType) -> list[Any]:
    """Of rows of words: numbers, or tiles."""
    if type_.kind != "val":
        return list(rows[:, 0].tolist())
    values = rows.copy().view(np.float64)
    return list(values.reshape(-1, *type_.tile)) if type_.tile else list(values[:, 0].tolist())


def _control(word: int) -> Token:
    return D if word == DONE else stop(low_of(word), high_of(word))


def deadlock(
    layout: NetworkLayout,
    smallest_depth: Callable[[Sequence[n.Edge]], int | None],
    deepened: Callable[[Mapping[n.Edge, int]], dead.Deadlock | None],
) -> dead.Deadlock:
    """Of a run in which no firing is possible before its end."""
    stuck = [p for p, node in enumerate(layout.nodes) if node["waits"] != ENDED and layout.owners[p] is not None]
    place = {p: k for k, p in enumerate(stuck)}
    waiting = []
    for p in stuck:
        owner = layout.owners[p]
        assert owner is not None
        awaits, other = _awaited(layout, p)
        waiting.append(dead.WaitingProcess(owner.name, awaits, place.get(other)))
    return dead.Deadlock(tuple(waiting), statistics(layout), smallest_depth, deepened)


def _awaited(layout: NetworkLayout, p: int) -> tuple[dead.AwaitedResource, int]:
    """What a stuck part waits for, and the part that would have to fire first."""
    wait = int(layout.nodes[p]["waits"])
    if INPUT <= wait < OUTPUT:
        reader = layout.edges[input_of(layout, p, wait - INPUT)]
        writer = layout.writer_of[reader.stream]
        owner = layout.owners[writer]
        if reader.edge is None or owner is None:
            return dead.AwaitedWorkspace(), writer
        return dead.AwaitedToken(reader.input, owner.name), writer
    if OUTPUT <= wait < BUFFER:
        r = full_reader(layout, p)
        edge = layout.edges[r].edge
        if edge is None:
            return dead.AwaitedWorkspace(), layout.edges[r].part
        return dead.AwaitedSlot(edge, int(layout.readers[r]["depth"])), layout.edges[r].part
    if wait == TOUCH:
        return dead.AwaitedWorkspace(), p - 1  # who asks for what is fetched ahead
    return dead.AwaitedWorkspace(), p + 1


def full_reader(layout: NetworkLayout, p: int) -> int:
    """The reader whose FIFO is full, of a part that waits for a slot."""
    k = output_of(layout, p, int(layout.nodes[p]["waits"]) - OUTPUT)
    return layout.readers_of[k][int(layout.streams[k]["blocked"])]


def fault(layout: NetworkLayout) -> SimulationError:
    """The error of the node that found its inputs wrong."""
    p = int(np.flatnonzero(layout.nodes["fault"])[0])
    node, record = layout.owners[p], layout.nodes[p]
    assert node is not None
    what = f"node `{node.name}` ({node.op})"
    if record["fault"] == REFUSED:
        return SimulationError(
            f"{what}: got the empty token `N`, which it refuses: put an `alu copy` with the implicit value before it"
        )
    if record["fault"] == TWICE:
        return SimulationError(
            f"{what}: got two values at the same coordinates, which it refuses: the entries of a tensor are unique"
        )
    if record["fault"] == LARGE:
        room = int(layout.keep[int(layout.parts[p].state[0]["array"])][0]["length"])
        return SimulationError(f"{what}: writes more than the {room:,} bytes that the memory has for it")
    if record["fault"] == OUTSIDE:
        return SimulationError(f"{what}: a reference is outside its tensor after {record['firings']} firings")
    return SimulationError(f"{what}: its inputs differ in structure after {record['firings']} firings")
