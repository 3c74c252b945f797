"""Scan, locate, load and write with a memory that takes time. Their meaning is the same as in `scan`, `pointwise` and `write`;
`memory_ports` describes their requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import assert_never

from fuseflow.memory.layout import AddressRange as AddressRange
from fuseflow.memory.layout import ArrayName
from fuseflow.memory.memory_interface import BEHIND, LOADED, MOVED, TRANSFER_PORTS, Controller
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import N
from fuseflow.samml.writers import lane_part
from fuseflow.sim.reference.memory_ports import DemandPort, PrefetchPort, PreloadPort, ReadPort, RequestPort, StorePort, WritePort
from fuseflow.sim.reference.node_context import NodeContext, Rule, written_by
from fuseflow.sim.reference.remote_steps import PortWrite, ask, gate, point, point_kept, respond, start_loaded, walk, write
from fuseflow.sim.reference.rule_processes import FiberReader, kept_references, loaded_values, reference_lookup, walk_steps
from fuseflow.sim.reference.timed_process import BoundedFifo, Fifo, Output, Process, make_output
from fuseflow.sim.rule_selection import RemoteRules
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import StoredArray

HANDOFF_CYCLES = 1
"""The cycles from a firing of an asker until its token is visible to the responder."""


@dataclass(frozen=True, slots=True)
class FiberPiece:
    """The bits requested for every reference: `size` bits of an array, from bit reference * `stride` on."""

    array: StoredArray
    stride: int
    size: int


class RemoteProcesses(RemoteRules[Sequence[Process]]):
    """A builder of the processes of the nodes that read and write, on one memory."""

    def __init__(self, controller: Controller, graph: n.Graph, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(controller, graph, tensors)
        self.preloads: dict[str, PreloadPort] = {}
        self.loads: PreloadPort | None = None

    def root(self, local: Rule, node: n.Root, context: NodeContext) -> Sequence[Process]:
        transfers = {name: self._transfer(node, name) for name in MOVED if name in self.places}
        moving = [process for ports in transfers.values() for process in ports.fetch(node)]
        if LOADED not in transfers:
            return [*moving, *local(node, context)]
        self.loads = transfers[LOADED]
        process = Process(node, (), context.outputs, context.interval)
        process.steps = start_loaded(process, self.loads)
        return [*moving, process]

    def _transfer(self, node: n.Root, name: ArrayName) -> PreloadPort:
        kind = StorePort if name == BEHIND else RequestPort
        return PreloadPort(self.controller, self.places[name], node, name, TRANSFER_PORTS, kind)

    def read(self, node: n.Scan | n.Locate | n.Load, name: ArrayName) -> tuple[ReadPort, list[Process]]:
        """Return a port that reads an array, and a list with the process that fetches ahead (empty if there is none)."""
        if node.name in self.sequential and self.controller.prefetch:
            port = PrefetchPort(self.controller, self.places[name], node, name)
            return port, [port.fetch(node, self._awaited_loads(node))]
        return DemandPort(self.controller, self.places[name], node, name), []

    def _awaited_loads(self, node: n.Scan | n.Locate | n.Load) -> PreloadPort | None:
        """Return the ports of the loads that a node waits for before it asks ahead of its tokens."""
        return self.loads if node.name in self.early else None

    def _preload(self, node: n.Load, context: NodeContext, name: ArrayName) -> tuple[PreloadPort, list[Process]]:
        """Return the ports of preloaded values, and the processes that read them (none but for the first node that needs them)."""
        if node.tensor in self.preloads:
            return self.preloads[node.tensor], []
        ports = context.declared[node.tensor].preload
        port = self.preloads[node.tensor] = PreloadPort(self.controller, self.places[name], node, name, ports)
        return port, port.fetch(node)

    def load(self, node: n.Load, context: NodeContext) -> Sequence[Process]:
        values, fill = loaded_values(node, context)
        name: ArrayName = (node.tensor, -1, "val")
        port, fetching = self._preload(node, context, name) if node.name in self.preloaded else self.read(node, name)
        asker, link = self._asker(node, context.inputs, port)
        bits, words = self.places[name].bits, prod(context.declared[node.tensor].tile)
        asker.steps = ask(asker, port, bits, bits, len(values), words)
        responder = _responder(node, context, link)
        responder.steps = respond(responder, port, lambda ref: (fill if ref is N else values[ref],))
        return [asker, *fetching, responder]

    def scan(self, node: n.Scan, context: NodeContext) -> Sequence[Process]:
        fiber = FiberReader(context.tensors[node.tensor], node.level)
        reads = context.level(node).reads(context.size(node.tensor, node.level))
        if reads.entries is None:
            processes = self._looked_up(node, context, reads.scanned, fiber)
        else:
            processes = self._walked(node, context, reads.entries, reads.scanned, fiber)
        processes[0].elements = fiber.requested
        return processes

    def _walked(
        self, node: n.Scan, context: NodeContext, entries: StoredArray, scanned: Sequence[StoredArray], fiber: FiberReader
    ) -> list[Process]:
        """Return the processes of a scan that first requests the positions of the fiber's entries (`scanned`), if they are
        stored, and then the entries."""
        crds, fetching = self.read(node, (node.tensor, node.level, entries.kind))
        askers: list[Process] = []
        source, pos = context.inputs[0], None
        for stored in scanned:
            pos, more = self.read(node, (node.tensor, node.level, stored.kind))
            asker, source = self._asker(node, context.inputs, pos)
            asker.steps = ask(asker, pos, stored.bits * stored.fiber, stored.bits * stored.scanned, fiber.parents)
            askers = [asker, *more]
        walker, link = self._asker(node, (source,), crds)
        if isinstance(source, BoundedFifo):  # of the asker, or of the graph
            source.slots.reader = walker
        walker.steps = walk(walker, pos, fiber, crds)
        responder = _responder(node, context, link)
        responder.steps = respond(responder, crds, lambda pair: pair)
        return [*askers, walker, *fetching, responder]

    def _looked_up(self, node: n.Scan, context: NodeContext, arrays: Sequence[StoredArray], fiber: FiberReader) -> list[Process]:
        """Return the processes of a scan that requests a whole fiber at its reference, and walks it once the answer has come."""
        pieces = [FiberPiece(array, array.bits * array.fiber, array.bits * array.scanned) for array in arrays]
        askers, tokens, gated = self._pieces(node, context.inputs, pieces, fiber.parents)
        link = BoundedFifo(None, self._in_flight(node, pieces))
        gates = self._gates(node, tokens, 0, gated, make_output(HANDOFF_CYCLES, (link,)), 1)
        link.writer = gates[-1]
        walker = link.slots.reader = Process(node, (link,), context.outputs, context.interval)
        walker.steps = walk_steps(walker, fiber)
        for process in gates:
            process.helper = True
        return [*askers, *gates, walker]

    def locate(self, node: n.Locate, context: NodeContext) -> Sequence[Process]:
        level, size, fibers = context.level(node), context.size(node.tensor, node.level), context.fibers(node)
        entries = level.reads(size).entries if level.kept else None
        arrays = level.points(size) if entries is None else (entries,)
        pieces = [FiberPiece(array, array.bits, array.bits) for array in arrays]
        elements, targets = Fifo(None), BoundedFifo(None, self._in_flight(node, pieces))
        pointer = elements.writer = targets.writer = Process(
            node, context.inputs, (make_output(HANDOFF_CYCLES, (elements, targets)),), 1
        )
        pointer.helper = True
        askers, _, gated = self._pieces(node, (elements,), pieces, inf, paired=True)
        gates = self._gates(node, targets, 1, gated, context.outputs[0], context.interval)
        if entries is None:
            pointer.steps = point(pointer, arrays, reference_lookup(pointer, fibers))
        else:
            pointer.steps = point_kept(pointer, fibers.entries, kept_references(fibers), self._awaited_loads(node))
            pointer.elements = {entries.kind: fibers.entries}
            gates[0].steps = gate(gates[0], gated[0][0], 1, fibers.entries)
        return [pointer, *askers, *gates]

    def _in_flight(self, node: n.Scan | n.Locate, pieces: Sequence[FiberPiece]) -> int:
        """Return how many pieces of each kind may be requested ahead."""
        names = ((piece, (node.tensor, node.level, piece.array.kind)) for piece in pieces)
        return min(self.controller.elements_in_flight(piece.size, name) for piece, name in names)

    def _pieces(
        self, node: n.Scan | n.Locate, inputs: Sequence[Fifo], pieces: Sequence[FiberPiece], count: float, paired: bool = False
    ) -> tuple[list[Process], Fifo, list[tuple[ReadPort, BoundedFifo]]]:
        """Return processes in series, each of which requests one of `pieces` for every token; the tokens that the last process
        passes on; and for each piece its port and the link to the process that waits for its answers. References are below
        `count`. With `paired` the input tokens come in pairs, and nothing reads the tokens after the last process."""
        processes: list[Process] = []
        gates: list[tuple[ReadPort, BoundedFifo]] = []
        for k, piece in enumerate(pieces, start=1):
            port, fetching = self.read(node, (node.tensor, node.level, piece.array.kind))
            asker, link = self._asker(node, inputs, port)
            tokens = Fifo(None)
            tokens.writer = asker
            is_read = k < len(pieces) or not paired
            asker.outputs = (make_output(HANDOFF_CYCLES, (tokens, link) if is_read else (link,)),)
            asker.steps = ask(asker, port, piece.stride, piece.size, count, paired=paired or k > 1)
            processes += [asker, *fetching]
            gates.append((port, link))
            inputs = (tokens,)
        return processes, tokens, gates

    def _gates(
        self,
        node: n.Node,
        tokens: Fifo,
        part: int | None,
        requests_by_port: Sequence[tuple[ReadPort, BoundedFifo]],
        last: Output,
        interval: int,
    ) -> list[Process]:
        """Return processes in series, each of which passes a token on once its answer has come. The first gets the tokens as
        element `part` of pairs (None: alone). `last` is the output of the last process."""
        gates: list[Process] = []
        for k, (port, requests) in enumerate(requests_by_port):
            inner = k < len(requests_by_port) - 1
            link = Fifo(None)
            out = make_output(HANDOFF_CYCLES, (link,)) if inner else last
            process = Process(node, (tokens, requests), (out,), 1 if inner else interval)
            process.helper = inner
            link.writer = requests.slots.reader = process
            if tokens.slots is not None:
                tokens.slots.reader = process
            process.steps = gate(process, port, part)
            gates.append(process)
            tokens, part = link, None
        return gates

    def write_level(self, node: n.WriteLevel, context: NodeContext) -> Sequence[Process]:
        arrays = context.level(node).arrays(context.size(node.tensor, node.level))
        entry, closing = None, list[PortWrite]()
        for stored in sorted(arrays, key=lambda stored: stored.entry == 0):
            name = (node.tensor, node.level, stored.kind)
            port = WritePort(self.controller, self.places[name], node, name, stored.first * stored.bits)
            if stored.entry:
                entry = port, stored.entry * stored.bits
            if stored.fiber:
                closing.append((port, stored.fiber * stored.bits))
        return _writer(node, context, entry, closing)

    def write_values(self, node: n.WriteValues, context: NodeContext) -> Sequence[Process]:
        name: ArrayName = (node.tensor, -1, "val")
        part = lane_part(node, context.declared[node.tensor]) if isinstance(node, n.WriteLaneValues) else None
        port = WritePort(self.controller, self.places[name], node, name, part=part)
        return _writer(node, context, (port, port.place.bits), [])

    def _asker(self, node: n.Node, inputs: Sequence[Fifo], port: ReadPort) -> tuple[Process, BoundedFifo]:
        """Return a process that makes requests through a port, and its link to the process that waits for the answers."""
        link = BoundedFifo(None, self.controller.elements_in_flight(port.place.bits, port.array))
        process = Process(node, inputs, (make_output(HANDOFF_CYCLES, (link,)),), 1)
        link.writer = process
        process.helper = True
        match port:
            case PrefetchPort():
                port.asker = process
            case DemandPort():
                port.sender = process
            case PreloadPort():
                pass  # which has processes of its own
            case unknown:
                assert_never(unknown)
        return process, link


def _responder(node: n.Node, context: NodeContext, link: BoundedFifo) -> Process:
    link.slots.reader = process = Process(node, (link,), context.outputs, context.interval)
    return process


def _writer(
    node: n.WriteLevel | n.WriteValues, context: NodeContext, entry: PortWrite | None, closing: list[PortWrite]
) -> Sequence[Process]:
    processes = context.process(write, written_by(node, context), entry, closing, context.room(node))
    for port, _ in (*([entry] if entry else []), *closing):
        port.sender = processes[0]
    return processes
