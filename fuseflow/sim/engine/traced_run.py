"""A traced run of the engine repeats a run and reports every firing to a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fuseflow.machine.machine import Machine
from fuseflow.memory.memory_interface import ControllerFactory
from fuseflow.memory.ports import PORT_SIZE
from fuseflow.native.kernel_library import Library, library
from fuseflow.native.records import address
from fuseflow.native.signatures import NOTE, SWEEP
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.buffer_growth import PartOutput
from fuseflow.sim.engine.execute import DEFAULT_LIMITS, run
from fuseflow.sim.engine.network_layout import NetworkLayout, lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.engine.outcome import describe_deadlock, statistics
from fuseflow.sim.engine.stream_rings import READER_SIZE, STREAM_SIZE
from fuseflow.sim.engine.tracer import (
    DELAYED_STOP,
    EVENT,
    EVENT_BUFFER,
    POP,
    PUSH,
    RELAY,
    TRACER,
    TRACER_SIZE,
    note_firings,
    settle_all,
)
from fuseflow.sim.events import log
from fuseflow.sim.events.log import Ints, LastEvent, Sink, Topology, Track, last_event, process_tracks
from fuseflow.sim.outcome.deadlock import deadlock_error
from fuseflow.tensors import Tensor

EVENT_CAPACITY = 1 << 17
"""The number of events that the buffer holds. If one round of the loop makes more, the run begins again with a larger buffer."""

CHECK_INTERVAL = 4096
"""The number of firings after which the run checks whether the buffer of events is to be emptied."""


class EventOverflow(Exception):
    """A round of the loop made more events than there was room for."""


def trace(
    graph: n.Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    sink: Callable[[], Sink],
    progress: Callable[[int], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    attach: ControllerFactory | None = None,
    room: int = EVENT_CAPACITY,
) -> tuple[Sink, LastEvent]:
    """Run a verified graph and report its events to a new sink; the buffer has `room` events. Return the sink and the last event.
    Raise `SimulationError` at a deadlock: only a graph that has run is traced."""
    functions, attach = library(), attach or machine.controller
    while True:
        layout = lay_out(graph, tensors, machine, functions, limits, controller=attach())
        collector = EventCollector(layout, functions, sink(), room, machine.rules == "comal")

        def report(firings: int, listen: Callable[[], None] = collector.listen) -> None:
            listen()
            if progress is not None:
                progress(firings)

        try:
            finished = run(layout, PartOutput(), functions, report, budget=1 if collector.sink.tokens else CHECK_INTERVAL)
            collector.drain()
        except EventOverflow:
            room *= 4
            continue
        if not finished:
            raise deadlock_error(describe_deadlock(layout, statistics(layout), lambda edges: None, lambda depths: None), graph)
        lasts = {p: int(layout.nodes[p]["last"]) for p in collector.parts if not layout.parts[p].helper}
        ops = [owner.op for owner in layout.owners if owner is not None]
        ending = last_event(lasts, ops, machine, layout.controller, collector.sender)
        collector.drain()  # the last acknowledgements
        return collector.sink, ending


class EventCollector:
    """The tracers of all parts of a layout, their buffer, and the sink into which it is emptied."""

    def __init__(self, layout: NetworkLayout, functions: Library, sink: Sink, capacity: int, comal: bool) -> None:
        self.layout, self.sink, self.comal = layout, sink, comal
        self.parts = [p for p, owner in enumerate(layout.owners) if owner is not None]
        controller = layout.controller
        self.edges = tuple(reader.edge for reader in layout.edges if reader.edge is not None)
        number = {edge: k for k, edge in enumerate(self.edges)}
        self.edge_of = np.array([-1 if reader.edge is None else number[reader.edge] for reader in layout.edges], np.int64)
        self.writer_of = np.array([layout.writer_of[reader.stream] for reader in layout.edges], np.int64)
        self.reader_part = np.array([reader.part for reader in layout.edges], np.int64)
        self.stream_of = np.array([reader.stream for reader in layout.edges], np.int64)
        self.events = EVENT.array(capacity)
        self.buffer = EVENT_BUFFER.array(1)
        self.buffer["events"], self.buffer["limit"] = address(self.events), capacity
        self.buffer["start"], self.buffer["end"], self.buffer["flows"] = sink.span.start, sink.span.end, int(sink.tokens)
        self.tracers = TRACER.array(len(self.parts))
        self.arrays: list[Any] = []
        self.answers: list[Ints] = []  # answers since the last drain
        self.senders: dict[int, int] = {}
        self.answered_counts = np.zeros(0 if controller is None else len(controller.ports), np.int64)
        delayed_streams = [k for k, lag in enumerate(layout.streams["lag"][: len(layout.keys)].tolist()) if lag]
        self.relay_of = np.zeros(len(layout.keys), np.int64)  # of each stream the track of its stops, where these wait for values
        self.relay_of[delayed_streams] = len(self.parts) + np.arange(len(delayed_streams))
        function = functions.address(note_firings, NOTE)
        for p in self.parts:
            self._attach(p, function)
        self.settle = functions.compiled(settle_all, SWEEP)
        ports = () if controller is None else tuple(controller.ports)
        if controller is not None and sink.tokens:
            for port in range(len(ports)):  # so that answered requests are still there at the next drain
                while controller.memory.ports[port]["mask"] < 4 * controller.outstanding:
                    controller.memory.make_room(port)
        names = [owner.name for owner in layout.owners if owner is not None]
        tracks = process_tracks([layout.parts[p].helper for p in self.parts], names)
        relays = tuple(Track(names[layout.writer_of[k]], "stops", relay=True) for k in delayed_streams)
        sink.open(Topology(tracks + relays, self.edges, ports))

    def _attach(self, p: int, function: int) -> None:
        layout, part = self.layout, self.layout.parts[p]
        owner, tracer = layout.owners[p], self.tracers[p : p + 1]
        inputs, outputs = len(part.inputs), len(part.outputs)
        marks, candidates, always, relays = (np.zeros(max(inputs + outputs, 1), np.int64) for _ in range(4))
        self.arrays += [marks, candidates, always, relays]
        streams = [k for k, writer in enumerate(layout.writer_of) if writer == p]
        relays[:outputs] = [self.relay_of[k] for k in streams]
        tracer["relays"] = address(relays)
        always[watched_inputs(owner, inputs, self.comal)] = 1
        tracer["note"], tracer["buffer"] = function, address(self.buffer)
        tracer["node"], tracer["part"] = address(layout.nodes[p : p + 1]), p
        tracer["marks"], tracer["candidates"], tracer["always"] = address(marks), address(candidates), address(always)
        tracer["unless"] = 3 if isinstance(owner, n.Align) else 0
        tracer["merges"] = int(isinstance(owner, n.Merge))
        tracer["behind"] = int(self.comal)
        tracer["passed"] = -1
        for use, requester in part.requesters.items():
            tracer[use] = requester
            if use in ("sends", "positions"):
                self.senders[int(layout.arrays[requester][0]["port"])] = p
        if special := int(layout.nodes[p]["special"]):
            tracer["turns"], tracer["turn"] = (layout.arrays[special][name] for name in ("turns", "turn"))
        layout.nodes[p]["special"] = address(tracer)

    def sender(self, port: int) -> int:
        """Return the part that makes the requests of a port, given by its number."""
        assert self.layout.controller is not None
        return self.senders[self.layout.controller.memory.port(port)]

    def listen(self) -> None:
        """Empty the buffer of events, between two rounds of the loop, if it is more than a quarter full."""
        if self.buffer["count"][0] > len(self.events) // 4:
            self.drain()
        elif self.sink.tokens:
            self._answers()

    def drain(self) -> None:
        """Report all events of the buffer to the sink and empty it. Raise `EventOverflow` if events were lost."""
        self.settle(address(self.tracers), len(self.parts), TRACER_SIZE)
        if self.buffer["lost"][0]:
            raise EventOverflow
        rows = self.events[: int(self.buffer["count"][0])]
        self.buffer["count"], self.tracers["entry"] = 0, 0
        firings = rows[rows["part"] >= 0]
        if len(firings):
            self.sink.events(self._events(firings))
        if self.sink.tokens:
            self._tokens(rows)
            self._answers()
            if self.answers:
                self.sink.answers(*np.concatenate(self.answers, axis=1))
                self.answers.clear()

    def _events(self, rows: Any) -> Ints:
        """Return the firings `rows` as the sink takes them, with the numbers of tracks, edges and ports in place of addresses."""
        table: Ints = np.stack(
            [rows[name] for name in ("part", "time", "count", "step", "cause", "part", "back", "detail", "due")], axis=1
        )
        cause, detail = rows["cause"], rows["detail"]
        readers = (detail - address(self.layout.readers)) // READER_SIZE
        table[:, 7] = -1
        kinds = log.TOKEN, log.SLOT, log.MEMORY, log.INSIDE, DELAYED_STOP, RELAY
        token, slot, memory, inside, delayed_stop, relay = (cause == kind for kind in kinds)
        table[delayed_stop, 5] = self.relay_of[self.stream_of[readers[delayed_stop]]]
        table[relay, 5] = detail[relay]
        table[delayed_stop | relay, 4] = log.TOKEN
        table[delayed_stop, 7] = self.edge_of[readers[delayed_stop]]
        table[token, 5], table[slot, 5] = self.writer_of[readers[token]], self.reader_part[readers[slot]]
        table[token | slot, 7] = self.edge_of[readers[token | slot]]
        table[inside, 5] += np.where(self.tracers["fetches"][rows["part"][inside]] != 0, -1, 1)
        if self.layout.controller is not None and memory.any():
            table[memory, 7] = (detail[memory] - self.layout.controller.memory.port(0)) // PORT_SIZE
            table[memory, 5] = [self.senders[at] for at in detail[memory].tolist()]
        return table

    def _tokens(self, rows: Any) -> None:
        """Report to the sink the tokens that were taken from FIFOs and put into them."""
        pops, pushes = rows[rows["part"] == POP], rows[rows["part"] == PUSH]
        reader = (pops["detail"] - address(self.layout.readers)) // READER_SIZE
        edge = self.edge_of[reader]
        edge_pops = np.stack([edge, pops["time"], pops["count"], pops["step"]], axis=1)[edge >= 0]
        if len(edge_pops):
            self.sink.pops(edge_pops)
        stream = (pushes["detail"] - address(self.layout.streams)) // STREAM_SIZE
        for r in np.flatnonzero(self.edge_of >= 0):
            edge_pushes = pushes[stream == self.stream_of[r]]
            if len(edge_pushes):
                columns = (
                    np.full(len(edge_pushes), self.edge_of[r]),
                    edge_pushes["time"],
                    edge_pushes["count"],
                    edge_pushes["step"],
                )
                self.sink.pushes(np.stack(columns, axis=1))

    def _answers(self) -> None:
        """Collect the requests that the memory answered since the last call; their slots may soon be reused."""
        if self.layout.controller is None:
            return
        memory: Any = self.layout.controller.memory
        answer_counts = memory.ports["answered"].copy()[: len(self.answered_counts)]
        for k in np.flatnonzero(answer_counts > self.answered_counts).tolist():
            numbers = np.arange(self.answered_counts[k], answer_counts[k])
            requests = memory.rings[k][numbers & int(memory.ports[k]["mask"])]
            self.answers.append(np.stack([np.full(len(requests), k), requests["visible"], requests["bytes"], requests["write"]]))
        self.answered_counts = answer_counts


def watched_inputs(node: n.Node | None, inputs: int, comal: bool) -> list[int]:
    """Return the inputs that every firing of a part of `node` inspects, whether or not it takes tokens from them."""
    if node is None:
        return []
    if comal and isinstance(node, n.Repeat):
        return list(range(inputs))
    if comal and isinstance(node, n.Accumulate):
        return []
    return list(node.watched(inputs))
