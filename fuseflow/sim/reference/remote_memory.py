"""Scan, locate, load and write with a memory that takes time. Their meaning is that of `scan`, `pointwise` and `write`; how they make
requests is described in `memory_ports`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, prod
from typing import Any, TypeAlias

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.memory.controller import Controller
from fuseflow.sim.memory.layout import AddressRange as AddressRange
from fuseflow.sim.memory.layout import ArrayKind, ArrayName
from fuseflow.sim.reference.fibers import FiberReader
from fuseflow.sim.reference.memory_ports import Answer, DemandPort, PrefetchPort, WritePort
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.pointwise import kept_references, reference_lookup
from fuseflow.sim.reference.process import BoundedFifo, Fifo, Output, Process, Steps, Wait, await_slots, await_tokens, make_output
from fuseflow.sim.reference.scan import scan_steps
from fuseflow.sim.reference.write import Tiles
from fuseflow.tensors.levels import Level
from fuseflow.tensors.levels.base import StoredArray
from fuseflow.tile_ops import constant_tile

ReadPort: TypeAlias = DemandPort | PrefetchPort
HANDOFF_CYCLES = 1
"""The cycles from a firing of an asker until its responder sees what was requested."""
END = stop(0, 0)


@dataclass(frozen=True, slots=True)
class FiberPiece:
    """What is requested for every token: `size` bytes of an array, at a multiple of `stride`."""

    array: StoredArray
    stride: int
    size: int


@dataclass(frozen=True, slots=True)
class AskerChain:
    """Processes that request pieces, the tokens that the last of them hands on, and for each piece its port and the link to the process
    that waits for its answers."""

    processes: list[Process]
    tokens: Fifo
    gates: list[tuple[ReadPort, BoundedFifo]]


class RemoteProcesses:
    """A builder of the processes of the nodes that read and write, on one memory."""

    def __init__(self, controller: Controller, places: dict[ArrayName, AddressRange], sequential: set[str]) -> None:
        """Make a builder. `sequential` has the names of the nodes that read their arrays from the first element to the last."""
        self.controller, self.places, self.sequential = controller, places, sequential

    def rules(self, local: dict[type[n.Node], Rule]) -> dict[type[n.Node], Rule]:
        """Return the rules of nodes at this memory. A level that is not stored keeps its rule in `local`."""

        def scan(node: n.Scan, context: NodeContext) -> Sequence[Process]:
            level = context.level(node)
            return self.scan(node, context, level) if level.stored else local[n.Scan](node, context)

        def locate(node: n.Locate, context: NodeContext) -> Sequence[Process]:
            level = context.level(node)
            return self.locate(node, context, level) if level.stored else local[n.Locate](node, context)

        def write_level(node: n.WriteLevel, context: NodeContext) -> Sequence[Process]:
            level = context.level(node)
            return self.write_level(node, context, level) if level.stored else local[n.WriteLevel](node, context)

        return {n.Scan: scan, n.Locate: locate, n.Load: self.load, n.WriteLevel: write_level, n.WriteValues: self.write_values}

    def read(self, node: n.Scan | n.Locate | n.Load, name: ArrayName) -> tuple[ReadPort, list[Process]]:
        """Return a port that reads an array, with the process that fetches ahead if there is one."""
        if node.name in self.sequential and self.controller.prefetch:
            port = PrefetchPort(self.controller, self.places[name], node, name)
            return port, [port.fetch(node)]
        return DemandPort(self.controller, self.places[name], node, name), []

    def load(self, node: n.Load, context: NodeContext) -> Sequence[Process]:
        decl = context.declared[node.tensor]
        tensor = context.tensors[node.tensor].values.astype(float)
        tensor.flags.writeable = False
        values: list[Any] = list(tensor) if decl.tile else tensor.tolist()
        fill = constant_tile(decl.tile, decl.fill)
        port, fetching = self.read(node, (node.tensor, -1, "val"))
        asker, link = self._asker(node, context.inputs, port)
        width, words = self.places[node.tensor, -1, "val"].width, prod(decl.tile)
        asker.steps = _ask(asker, port, width, width, len(values), words)
        responder = _responder(node, context, link)
        responder.steps = _respond(responder, port, lambda ref: (fill if ref is N else values[ref],))
        return [asker, *fetching, responder]

    def scan(self, node: n.Scan, context: NodeContext, level: Level) -> Sequence[Process]:
        fiber = FiberReader(context.tensors[node.tensor], node.level)
        reads = level.reads(context.size(node.tensor, node.level))
        if reads.entries is None:
            processes = self._looked_up(node, context, reads.scanned, fiber)
        else:
            processes = self._walked(node, context, reads.entries, reads.scanned, fiber)
        processes[0].elements = fiber.requested
        return processes

    def _walked(
        self, node: n.Scan, context: NodeContext, entries: StoredArray, scanned: Sequence[StoredArray], fiber: FiberReader
    ) -> list[Process]:
        """Return the processes of a scan that learns at a reference where the entries of its fiber are, if it does not know that, and
        then requests these."""
        crds, fetching = self.read(node, (node.tensor, node.level, entries.kind))
        askers: list[Process] = []
        source, pos = context.inputs[0], None
        for stored in scanned:
            pos, more = self.read(node, (node.tensor, node.level, stored.kind))
            asker, source = self._asker(node, context.inputs, pos)
            asker.steps = _ask(asker, pos, stored.bytes * stored.fiber, stored.bytes * stored.scanned, fiber.parents)
            askers = [asker, *more]
        walker, link = self._asker(node, (source,), crds)
        if isinstance(source, BoundedFifo):  # of the asker, or of the graph
            source.slots.reader = walker
        walker.steps = _walk(walker, _heads(walker, pos), fiber, crds)
        responder = _responder(node, context, link)
        responder.steps = _respond(responder, crds, lambda pair: pair)
        return [*askers, walker, *fetching, responder]

    def _looked_up(self, node: n.Scan, context: NodeContext, arrays: Sequence[StoredArray], fiber: FiberReader) -> list[Process]:
        """Return the processes of a scan that requests all of a fiber at its reference, and goes through it once that is there."""
        pieces = [FiberPiece(array, array.bytes * array.fiber, array.bytes * array.scanned) for array in arrays]
        chain = self._pieces(node, context.inputs, pieces, fiber.parents)
        link = BoundedFifo(None, min(self.controller.elements_in_flight(piece.size) for piece in pieces))
        gates = self._gates(node, chain.tokens, 0, chain.gates, make_output(HANDOFF_CYCLES, (link,)), 1)
        link.writer = gates[-1]
        walker = link.slots.reader = Process(node, (link,), context.outputs, context.interval)
        walker.steps = scan_steps(walker, fiber, fiber.parents)
        for gate in gates:
            gate.helper = True
        return [*chain.processes, *gates, walker]

    def locate(self, node: n.Locate, context: NodeContext, level: Level) -> Sequence[Process]:
        """Return the processes of a locate. It requests the elements that tell of a coordinate, and gives its reference once they are
        there. If it keeps the coordinates of its level, it requests these first, and nothing after that."""
        size = context.size(node.tensor, node.level)
        if level.kept:
            return self._locate_kept(node, context, level.reads(size).entries)
        arrays = level.points(size)
        pieces = [FiberPiece(array, array.bytes, array.bytes) for array in arrays]
        elements, targets = Fifo(None), BoundedFifo(None, min(self.controller.elements_in_flight(piece.size) for piece in pieces))
        pointer = elements.writer = targets.writer = Process(
            node, context.inputs, (make_output(HANDOFF_CYCLES, (elements, targets)),), 1
        )
        pointer.helper = True
        pointer.steps = _point(pointer, arrays, reference_lookup(pointer, context.fibers(node)))
        chain = self._pieces(node, (elements,), pieces, inf, paired=True)
        gates = self._gates(node, targets, 1, chain.gates, context.outputs[0], context.interval)
        return [pointer, *chain.processes, *gates]

    def _locate_kept(self, node: n.Locate, context: NodeContext, entries: StoredArray | None) -> Sequence[Process]:
        """Return the processes of a locate that keeps its level: one looks coordinates up, one requests the level, and one waits for it."""
        assert entries is not None, "what is kept has entries"
        fibers, piece = context.fibers(node), FiberPiece(entries, entries.bytes, entries.bytes)
        elements, targets = Fifo(None), BoundedFifo(None, self.controller.elements_in_flight(piece.size))
        pointer = elements.writer = targets.writer = Process(
            node, context.inputs, (make_output(HANDOFF_CYCLES, (elements, targets)),), 1
        )
        pointer.helper = True
        pointer.steps = _point_kept(pointer, fibers.entries, kept_references(fibers))
        pointer.elements = {entries.kind: fibers.entries}
        chain = self._pieces(node, (elements,), [piece], inf, paired=True)
        (gate,) = self._gates(node, targets, 1, chain.gates, context.outputs[0], context.interval)
        gate.steps = _gate(gate, chain.gates[0][0], 1, fibers.entries)
        return [pointer, *chain.processes, gate]

    def _pieces(
        self, node: n.Scan | n.Locate, inputs: Sequence[Fifo], pieces: Sequence[FiberPiece], count: float, paired: bool = False
    ) -> AskerChain:
        """Return processes, one after the other, that each request a piece of an array for every token. With `paired` the input tokens
        come in pairs."""
        processes: list[Process] = []
        gates: list[tuple[ReadPort, BoundedFifo]] = []
        for piece in pieces:
            port, fetching = self.read(node, (node.tensor, node.level, piece.array.kind))
            asker, link = self._asker(node, inputs, port)
            tokens = Fifo(None)
            tokens.writer = asker
            asker.outputs = (make_output(HANDOFF_CYCLES, (tokens, link)),)
            asker.steps = _ask(asker, port, piece.stride, piece.size, count, paired=paired)
            processes += [asker, *fetching]
            gates.append((port, link))
            inputs, paired = (tokens,), True
        return AskerChain(processes, tokens, gates)

    def _gates(
        self,
        node: n.Node,
        tokens: Fifo,
        part: int | None,
        requests_by_port: Sequence[tuple[ReadPort, BoundedFifo]],
        last: Output,
        interval: int,
    ) -> list[Process]:
        """Return processes, one after the other, that each let a token through once its answer is there. The first gets the tokens as a
        part of pairs."""
        gates: list[Process] = []
        for k, (port, requests) in enumerate(requests_by_port):
            inner = k < len(requests_by_port) - 1
            link = Fifo(None)
            out = make_output(HANDOFF_CYCLES, (link,)) if inner else last
            gate = Process(node, (tokens, requests), (out,), 1 if inner else interval)
            gate.helper = inner
            link.writer = requests.slots.reader = gate
            if tokens.slots is not None:
                tokens.slots.reader = gate
            gate.steps = _gate(gate, port, part)
            gates.append(gate)
            tokens, part = link, None
        return gates

    def write_level(self, node: n.WriteLevel, context: NodeContext, level: Level) -> Sequence[Process]:
        written = context.written[node.tensor]
        crd = written.crd[node.level] = array("q")
        pos = written.pos[node.level] = array("q", [0])
        arrays = level.arrays(context.size(node.tensor, node.level))
        entry, closing = None, list[PortWrite]()
        for stored in sorted(arrays, key=lambda stored: stored.entry == 0):
            port = self._write_port(node, node.level, stored.kind)
            port.filled = stored.first * stored.bytes
            if stored.entry:
                entry = port, stored.entry * stored.bytes
            if stored.fiber:
                closing.append((port, stored.fiber * stored.bytes))
        processes = context.process(_write, crd, pos, entry, closing)
        for port, _ in (*([entry] if entry else []), *closing):
            port.sender = processes[0]
        return processes

    def write_values(self, node: n.WriteValues, context: NodeContext) -> Sequence[Process]:
        values = context.written[node.tensor].values = array("d")
        elements = Tiles(values) if context.declared[node.tensor].tile else values
        port = self._write_port(node, -1, "val")
        processes = context.process(_write, elements, None, (port, port.place.width), [])
        port.sender = processes[0]
        return processes

    def _write_port(self, node: n.WriteLevel | n.WriteValues, level: int, kind: ArrayKind) -> WritePort:
        name = (node.tensor, level, kind)
        return WritePort(self.controller, self.places[name], node, name)

    def _asker(self, node: n.Node, inputs: Sequence[Fifo], port: ReadPort) -> tuple[Process, BoundedFifo]:
        """Return a process that makes requests through a port, and its link to the process that gets the answers."""
        link = BoundedFifo(None, self.controller.elements_in_flight(port.place.width))
        process = Process(node, inputs, (make_output(HANDOFF_CYCLES, (link,)),), 1)
        link.writer = process
        process.helper = True
        if isinstance(port, PrefetchPort):
            port.asker = process
        else:
            port.sender = process
        return process, link


def _responder(node: n.Node, context: NodeContext, link: BoundedFifo) -> Process:
    link.slots.reader = process = Process(node, (link,), context.outputs, context.interval)
    return process


def _ask(p: Process, port: ReadPort, stride: int, size: int, count: float, words: int = 0, paired: bool = False) -> Steps:
    """Request `size` bytes at `stride` times every reference, and hand on the token with the request that answers it. With `paired` the
    input is pairs of the token and something else."""
    (source,), (link,) = p.inputs, p.outputs
    requested = 0
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if paired:
            token, _ = token
        free = yield from await_slots(*p.outputs)
        request: int | None = None
        if token is D or token.__class__ is Stop:
            t = p.close(visible, free)
        elif token is N:
            t = p.fire(visible, free)
        else:
            if not 0 <= token < count:
                raise p.outside()
            requested += 1
            t, request = yield from port.ask(p, stride * token, stride * token + size, visible, free)
        source.take(t)
        link.push((token, request), t)
        if token is D:
            if words:
                p.elements = {"val": requested * words}
            return


HeadReader: TypeAlias = Callable[[Fifo], Generator[Wait, None, tuple[Any, int]]]


def _heads(p: Process, pos: ReadPort | None) -> tuple[HeadReader, HeadReader]:
    """Return how a scan looks at its next reference: at the token alone, and at the token with the answer that says where its fiber
    lies."""

    def token(source: Fifo) -> Generator[Wait, None, tuple[Any, int]]:
        while not source:
            yield source
        item, visible = source[0]
        return (item if pos is None else item[0]), visible

    def answered(source: Fifo) -> Generator[Wait, None, tuple[Any, int]]:
        head, visible = yield from token(source)
        request = None if pos is None else source[0][0][1]
        if pos is not None and request is not None:
            answer = Answer(pos, request)
            while not answer:
                yield answer
            visible = p.answered(visible, answer.cycle)
        return head, visible

    return token, answered


def _walk(p: Process, heads: tuple[HeadReader, HeadReader], fiber: FiberReader, port: ReadPort) -> Steps:
    """A scan that requests its coordinates has the firings of `scan`, and one more for every further line."""
    (source,), (link,) = p.inputs, p.outputs
    token_of, answered = heads
    while True:
        token, visible = yield from answered(source)
        if token is D or token.__class__ is Stop:
            t = p.close(visible, (yield from await_slots(*p.outputs)))
            source.take(t)
            link.push((token.raised() if token.__class__ is Stop else D, None), t)
            if token is D:
                return
            continue
        if token is not N and not 0 <= token < fiber.parents:
            raise p.outside()
        crds, refs = fiber(token)
        pending = True
        bounds = [*refs, fiber.end] if refs else []
        for crd, (low, high) in zip(crds, pairwise(bounds), strict=True):
            free = yield from await_slots(*p.outputs)
            t, request = yield from port.ask(p, port.place.width * low, port.place.width * high, visible, free)
            if pending:
                source.take(t)
                pending = False
            link.push(((crd, low), request), t)
        if pending:
            source.take(p.fire(visible))
        token, visible = yield from token_of(source)
        t = p.close(visible, (yield from await_slots(*p.outputs)))
        end = END
        if token.__class__ is Stop:
            if token.low != 0:
                raise p.error(f"stop {token} does not end a fiber of references")
            source.take(t)
            end = stop(0, token.high + 1)
        link.push((end, None), t)


def _respond(p: Process, port: ReadPort, values: Callable[[Any], tuple[Any, ...]]) -> Steps:
    """Give what was requested once it is there, with one firing for each token."""
    (link,) = p.inputs
    outputs: tuple[Output, ...] = p.outputs
    while True:
        while not link:
            yield link
        (token, request), visible = link[0]
        answer_cycle = 0
        if request is not None:
            answer = Answer(port, request)
            while not answer:
                yield answer
            answer_cycle = answer.cycle
        free = (yield from await_slots(*outputs)) if p.bounded else 0
        visible = p.answered(visible, answer_cycle)
        is_control = token is D or token.__class__ is Stop
        t = p.close(visible, free) if is_control else p.fire(visible, free)
        link.take(t)
        for out, item in zip(outputs, [token] * len(outputs) if is_control else values(token), strict=True):
            out.push(item, t)
        if token is D:
            return


def _point(p: Process, arrays: Sequence[StoredArray], reference: Callable[[int, int], Any]) -> Steps:
    """Give for each coordinate below a reference the element of the arrays that tells of it, and its own reference, which the locate
    will give."""
    (out,), (stored, *_) = p.outputs, arrays
    lookups = 0
    while True:
        visible = yield from await_tokens(0, p.inputs)
        crd, *ref = (source[0][0] for source in p.inputs)
        free = yield from await_slots(out)
        control = crd is D or crd.__class__ is Stop
        if any((x is D or x.__class__ is Stop) != control or (control and x is not crd) for x in ref):
            raise p.misaligned(crd, *ref)
        target = (crd, crd)
        if not control:
            target = (N, N)
            if crd is not N and N not in ref:
                (parent,) = ref or [0]  # the outermost level has one
                target = parent * stored.fiber + crd // stored.told, reference(crd, parent)
                lookups += 1
        t = p.close(visible, free) if control else p.fire(visible, free)
        for source in p.inputs:
            source.take(t)
        out.push(target, t)
        if crd is D:
            p.elements = {array.kind: lookups for array in arrays}
            return


def _point_kept(p: Process, entries: int, reference: Callable[[Any], Any]) -> Steps:
    """Give the elements of a level that is kept, with nothing beside them. Then give for each coordinate its reference, without an element
    to ask for."""
    (source,), (out,) = p.inputs, p.outputs
    for element in range(entries):
        free = yield from await_slots(out)
        out.push((element, N), p.fire(0, free))
    while True:
        visible = yield from await_tokens(0, p.inputs)
        crd = source[0][0]
        free = yield from await_slots(out)
        control = crd is D or crd.__class__ is Stop
        t = p.close(visible, free) if control else p.fire(visible, free)
        source.take(t)
        out.push((crd, crd) if control else (N, reference(crd)), t)
        if crd is D:
            return


def _gate(p: Process, port: ReadPort, part: int | None, kept: int = 0) -> Steps:
    """Let every token through once what was requested with it is there, but for the first `kept`, which end here. The token is the element
    `part` of a pair, or comes alone if `part` is None."""
    (tokens, requests), (out,) = p.inputs, p.outputs
    while True:
        visible = yield from await_tokens(0, p.inputs)
        (item, _), ((_, request), _) = tokens[0], requests[0]
        token, answer_cycle = item if part is None else item[part], 0
        if request is not None:
            answer = Answer(port, request)
            while not answer:
                yield answer
            answer_cycle = answer.cycle
        free = 0 if kept else (yield from await_slots(out))
        visible = p.answered(visible, answer_cycle)
        is_control = token is D or token.__class__ is Stop
        t = p.close(visible, free) if is_control else p.fire(visible, free)
        tokens.take(t)
        requests.take(t)
        if kept:
            kept -= 1
            continue
        out.push(token, t)
        if token is D:
            return


PortWrite: TypeAlias = tuple[WritePort, int]
"""A port that writes, and how many bytes it writes at a time."""


def _write(p: Process, elements: Any, positions: Any, entry: PortWrite | None, closing: Sequence[PortWrite]) -> Steps:
    """Append every value. A stop that ends a fiber appends the number of values so far."""
    (source,) = p.inputs
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if token is N:
            raise p.refused()
        if token.__class__ is Stop:
            if token.low == 0 and positions is not None:
                positions.append(len(elements))
                for port, size in closing:
                    t = yield from port.put(p, size, visible)
                source.take(t if closing else p.close(visible))
            else:
                source.take(p.close(visible))
        elif token is D:
            source.take(p.close(visible))
            for port, _ in (*([entry] if entry else []), *closing):
                yield from port.flush(p, visible)
            return
        else:
            source.take(p.fire(visible) if entry is None else (yield from entry[0].put(p, entry[1], visible)))
            elements.append(token)
