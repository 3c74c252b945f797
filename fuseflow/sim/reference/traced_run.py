"""A traced run of the reference simulator. It repeats a run, but the cycles of tokens and slots carry their causes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fuseflow.machine.machine import Machine
from fuseflow.memory.memory_interface import ControllerFactory
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, Stop
from fuseflow.sim.events import log
from fuseflow.sim.events.log import LastEvent, Sink, Topology, last_event, process_tracks
from fuseflow.sim.outcome.deadlock import Deadlock, deadlock_error
from fuseflow.sim.outcome.statistics import edges
from fuseflow.sim.reference.execute import Network, build_network, network_statistics, run_network, waiting_processes
from fuseflow.sim.reference.timed_process import (
    BoundedFifo,
    DelayedFifo,
    Fifo,
    Item,
    LaggedOutput,
    LinkFifo,
    Process,
    Slots,
    TurnProcess,
)
from fuseflow.tensors import Tensor


class CausedCycle(int):
    """A cycle that carries its cause, as the columns of an event in `events/log.py`. Of equal cycles, one of a token counts as the
    larger, then one of the first input or output (`rank`), so that a maximum finds the cause that counts."""

    cause: int
    source: int
    back: int
    detail: int
    rank: tuple[int, ...]

    def __new__(cls, cycle: int, cause: int, source: int, back: int, detail: int, rank: tuple[int, ...]) -> CausedCycle:
        caused = super().__new__(cls, cycle)
        caused.cause, caused.source, caused.back, caused.detail, caused.rank = cause, source, back, detail, rank
        return caused

    def __gt__(self, other: int) -> bool:
        if int(self) != int(other):
            return int(self) > int(other)
        return isinstance(other, CausedCycle) and self.rank < other.rank


class Journal:
    """A journal holds the firings of one process (number `track`) as rows of events."""

    __slots__ = ("events", "listener", "track")

    def __init__(self, track: int, listener: Listener) -> None:
        self.track, self.listener = track, listener
        self.events: list[list[int]] = []

    def note(self, p: Process, cycle: int, due: int, at: int) -> None:
        """Add a firing of `p` in cycle `at` to the journal. It might have been in `cycle`, but for its turn. That cycle carries its
        cause unless the cause is the process itself. With all slots free, it would have been cycle `due`."""
        self.listener.current = self.track
        t = int(cycle)
        own = p.firings > 0 and not isinstance(cycle, CausedCycle) and t == p.ready
        if own:
            event, gap = self.events[-1], at - p.last
            if event[log.COUNT] == 1 or event[log.STEP] == gap:
                event[log.STEP], event[log.COUNT] = gap, event[log.COUNT] + 1
                return
        if isinstance(cycle, CausedCycle):
            why = [cycle.cause, cycle.source, cycle.back, cycle.detail]
        elif own:
            why = [log.OWN, self.track, p.last, -1]
        elif t == 0:
            why = [log.START, self.track, 0, -1]
        else:  # without inputs it fetches ahead, and a line is needed; else a workspace
            why = [log.INSIDE, self.track + (1 if p.inputs else -1), t - 1, -1]
        self.events.append([self.track, at, 1, 1, *why, int(due)])


class TracedProcess(Process):
    __slots__ = ()
    journal: Journal

    def fire(self, visible: int, free: int = 0) -> int:
        _note_firing(self, visible, free)
        return super().fire(int(visible), int(free))


class TracedTurnProcess(TurnProcess):
    __slots__ = ()
    journal: Journal

    def fire(self, visible: int, free: int = 0) -> int:
        _note_firing(self, visible, free, self.turn)
        return super().fire(int(visible), int(free))

    def close(self, visible: int, free: int = 0) -> int:
        _note_firing(self, visible, free)
        return super().close(int(visible), int(free))


def _note_firing(p: Process, visible: int, free: int, turn: n.Turn | None = None) -> None:
    """Note a firing of a process, in its `turn` if any, in its journal. Other arguments are as in `Process.fire`."""
    cycle = p.ready
    if visible > cycle:
        cycle = visible
    due = cycle
    if free > cycle:
        cycle = free
    p.journal.note(p, cycle, due, int(cycle) if turn is None else turn.next(int(cycle)))
    p.ready, p.after = int(p.ready), int(p.after)


class TracedSlots(Slots):
    __slots__ = ()

    def append(self, cycle: int) -> None:
        listener, reader = self.reader.journal.listener, self.reader.journal.track
        edge, rank = listener.places[id(self)]
        super().append(CausedCycle(cycle, log.SLOT, reader, cycle - 1 - self.back, edge, rank))


def _append(fifo: Fifo, item: Item, append: Callable[[Fifo, Item], None]) -> None:
    token, visible = item
    writer = fifo.writer.journal
    edge, rank = writer.listener.places[id(fifo)]
    produced = visible - fifo.latency + fifo.delay  # in its slot
    fired = fifo.writer.last
    if produced > fired:  # a value that comes late, or a stop behind one
        late = token is D or token.__class__ is Stop
        fired = produced - writer.listener.lags[id(fifo)] if late else fired
    if edge >= 0:
        writer.listener.pushes.append((edge, produced, 1, 1))
    append(fifo, (token, visible))
    token, visible = fifo.pop()
    deque.append(fifo, (token, CausedCycle(visible, log.TOKEN, writer.track, fired, edge, rank)))


def _take(fifo: Fifo, t: int, take: Callable[[Fifo, int], None]) -> None:
    listener = fifo.writer.journal.listener
    edge, _ = listener.places[id(fifo)]
    if edge >= 0:
        listener.pops.append((edge, int(t), 1, 1))
    take(fifo, int(t))


def _traced(kind: type[Fifo]) -> type[Fifo]:
    def append(self: Fifo, item: Item) -> None:
        _append(self, item, kind.append)

    def take(self: Fifo, t: int) -> None:
        _take(self, t, kind.take)

    return type(f"Traced{kind.__name__}", (kind,), {"__slots__": (), "append": append, "take": take})


TRACED_PROCESSES: dict[type[Process], type[Process]] = {Process: TracedProcess, TurnProcess: TracedTurnProcess}
TRACED: dict[type, type] = {kind: _traced(kind) for kind in (Fifo, BoundedFifo, DelayedFifo, LinkFifo)}


class Listener:
    """A listener is attached to a network before it runs. It replaces the classes of processes, FIFOs and slots by classes that
    report events."""

    def __init__(self, network: Network, edges: Sequence[n.Edge]) -> None:
        self.network = network
        self.current = -1  # the process that fired last
        self.pushes: list[tuple[int, int, int, int]] = []
        self.pops: list[tuple[int, int, int, int]] = []
        self.lags: dict[int, int] = {}
        self.places: dict[int, tuple[int, tuple[int, ...]]] = {}
        number = {id(network.fifos[edge]): k for k, edge in enumerate(edges)}
        for track, p in enumerate(network.processes):
            p.journal = Journal(track, self)
            p.__class__ = TRACED_PROCESSES[type(p)]
            for k, fifo in enumerate(p.inputs):
                self.places[id(fifo)] = number.get(id(fifo), -1), (0, k)
        for p in network.processes:
            for k, out in enumerate(p.outputs):
                for j, fifo in enumerate(out.fifos):
                    if isinstance(out, LaggedOutput):
                        self.lags[id(fifo)] = out.lag
                    fifo.__class__ = TRACED[type(fifo)]
                    if fifo.slots is not None:
                        self.places[id(fifo.slots)] = number.get(id(fifo), -1), (1, k, j)
                        fifo.slots.__class__ = TracedSlots
                out.appends = tuple(fifo.append for fifo in out.fifos)
        if network.controller is not None:
            self._listen_to(network.controller.memory)

    def _listen_to(self, memory: Any) -> None:
        issue, answer_cycle = memory.issue, memory.answer_cycle
        self.senders: dict[int, int] = {}

        def traced_issue(port: int, address: int, size: int, write: bool, cycle: int) -> int:
            self.senders[port] = self.current
            return int(issue(port, address, size, write, cycle))

        def traced_answer_cycle(port: int, request: int) -> int:
            cycle = int(answer_cycle(port, request))
            if cycle < 0:
                return cycle
            return CausedCycle(cycle, log.MEMORY, self.senders[port], memory.issue_cycle(port, request), port, (2, 0))

        memory.issue, memory.answer_cycle = traced_issue, traced_answer_cycle


def trace(
    graph: n.Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    sink: Callable[[], Sink],
    progress: Callable[[int], None] | None = None,
    attach: ControllerFactory | None = None,
) -> tuple[Sink, LastEvent]:
    """Run a verified graph and report the run to a new sink. Returns the sink and the last event. A deadlock raises a `SimulationError`:
    only graphs that have run before are traced."""
    controller = (attach or machine.controller)()
    network = build_network(graph, tensors, machine, controller=controller)
    order = tuple(edges(graph))
    listener, listening = Listener(network, order), sink()
    processes = network.processes
    listening.open(
        Topology(
            process_tracks([p.helper for p in processes], [p.node.name for p in processes]),
            order,
            () if controller is None else tuple(controller.ports),
        )
    )
    stuck = run_network(network, progress)
    if stuck:
        nodes = network_statistics(network)
        raise deadlock_error(Deadlock(waiting_processes(stuck), nodes, lambda edges: None, lambda depths: None), graph)
    lasts = {track: p.last for track, p in enumerate(processes) if not p.helper}
    ending = last_event(lasts, [p.node.op for p in processes], machine, controller, lambda port: listener.senders[port])
    _tell(listener, listening)
    return listening, ending


def _tell(listener: Listener, sink: Sink) -> None:
    rows = [row for p in listener.network.processes for row in p.journal.events]
    sink.events(np.array(rows, np.int64))
    if not sink.tokens:
        return
    for report, records in ((sink.pushes, listener.pushes), (sink.pops, listener.pops)):
        if records:
            report(np.array(records, np.int64))
    controller = listener.network.controller
    memory: Any = None if controller is None else controller.memory
    for port in range(0 if controller is None else len(controller.ports)):
        records = memory.requests(port)
        if len(records):
            sink.answers(np.full(len(records), port), records["visible"], records["bytes"], records["write"])
