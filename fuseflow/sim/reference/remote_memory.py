"""Scan, load and write at a memory that takes time. Their meaning is that of `scan`, `pointwise` and `write`; see `ports` for the rest."""

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
from fuseflow.sim.memory.layout import AddressRange as Bytes
from fuseflow.sim.memory.layout import Array, Kind
from fuseflow.sim.reference.fibers import FiberReader
from fuseflow.sim.reference.memory_ports import Answer, DemandPort, PrefetchPort, WritePort
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.pointwise import located
from fuseflow.sim.reference.process import BoundedFifo, Fifo, Output, Process, Steps, Wait, look, output, room
from fuseflow.sim.reference.scan import scan_steps
from fuseflow.sim.reference.write import Tiles
from fuseflow.tensors.levels import Level
from fuseflow.tensors.levels.base import StoredArray
from fuseflow.tile_ops import constant_tile

Reading: TypeAlias = DemandPort | PrefetchPort
HANDED_ON = 1
"""Cycles from a firing of an asker until its responder sees what it asked for."""
END = stop(0, 0)


@dataclass(frozen=True, slots=True)
class Piece:
    """What is asked for at every token: so many bytes of an array, at a stride."""

    array: StoredArray
    stride: int
    size: int


@dataclass(frozen=True, slots=True)
class Asking:
    """Processes that ask for pieces, the tokens that the last hands on, and of each piece the port and who waits for its answers."""

    processes: list[Process]
    tokens: Fifo
    gates: list[tuple[Reading, BoundedFifo]]


class RemoteProcesses:
    """Builds the processes of the nodes that read and write, on one memory."""

    def __init__(self, controller: Controller, places: dict[Array, Bytes], sequential: set[str]) -> None:
        """`sequential`: names of the nodes that read their arrays from the first element to the last."""
        self.controller, self.places, self.sequential = controller, places, sequential

    def rules(self, local: dict[type[n.Node], Rule]) -> dict[type[n.Node], Rule]:
        def scan(node: n.Scan, place: NodeContext) -> Sequence[Process]:
            level = place.level(node)
            return self.scan(node, place, level) if level.stored else local[n.Scan](node, place)

        def locate(node: n.Locate, place: NodeContext) -> Sequence[Process]:
            level = place.level(node)
            return self.locate(node, place, level) if level.stored else local[n.Locate](node, place)

        def write_level(node: n.WriteLevel, place: NodeContext) -> Sequence[Process]:
            level = place.level(node)
            return self.write_level(node, place, level) if level.stored else local[n.WriteLevel](node, place)

        return {n.Scan: scan, n.Locate: locate, n.Load: self.load, n.WriteLevel: write_level, n.WriteValues: self.write_values}

    def read(self, node: n.Scan | n.Locate | n.Load, name: Array) -> tuple[Reading, list[Process]]:
        """A port that reads, with the process that fetches ahead."""
        if node.name in self.sequential and self.controller.ahead:
            fetched = PrefetchPort(self.controller, self.places[name], node, name)
            return fetched, [fetched.fetch(node)]
        return DemandPort(self.controller, self.places[name], node, name), []

    def load(self, node: n.Load, place: NodeContext) -> Sequence[Process]:
        decl = place.declared[node.tensor]
        tensor = place.tensors[node.tensor].values.astype(float)
        tensor.flags.writeable = False
        values: list[Any] = list(tensor) if decl.tile else tensor.tolist()
        fill = constant_tile(decl.tile, decl.fill)
        port, fetching = self.read(node, (node.tensor, -1, "val"))
        asker, link = self._asker(node, place.inputs, port)
        width, words = self.places[node.tensor, -1, "val"].width, prod(decl.tile)
        asker.steps = _ask(asker, port, width, width, len(values), words)
        responder = _responder(node, place, link)
        responder.steps = _respond(responder, port, lambda ref: (fill if ref is N else values[ref],))
        return [asker, *fetching, responder]

    def scan(self, node: n.Scan, place: NodeContext, level: Level) -> Sequence[Process]:
        fiber = FiberReader(place.tensors[node.tensor], node.level)
        reads = level.reads(place.size(node.tensor, node.level))
        if reads.entries is None:
            made = self._looked_up(node, place, reads.scanned, fiber)
        else:
            made = self._walked(node, place, reads.entries, reads.scanned, fiber)
        made[0].elements = fiber.requested
        return made

    def _walked(
        self, node: n.Scan, place: NodeContext, entries: StoredArray, scanned: Sequence[StoredArray], fiber: FiberReader
    ) -> list[Process]:
        """A scan that learns at a reference where the entries of its fiber are, if it does not know that, and then asks for these."""
        crds, fetching = self.read(node, (node.tensor, node.level, entries.kind))
        made: list[Process] = []
        source, pos = place.inputs[0], None
        for stored in scanned:
            pos, more = self.read(node, (node.tensor, node.level, stored.kind))
            asker, source = self._asker(node, place.inputs, pos)
            asker.steps = _ask(asker, pos, stored.bytes * stored.fiber, stored.bytes * stored.scanned, fiber.parents)
            made = [asker, *more]
        walker, link = self._asker(node, (source,), crds)
        if isinstance(source, BoundedFifo):  # of the asker, or of the graph
            source.slots.reader = walker
        walker.steps = _walk(walker, _heads(walker, pos), fiber, crds)
        responder = _responder(node, place, link)
        responder.steps = _respond(responder, crds, lambda pair: pair)
        return [*made, walker, *fetching, responder]

    def _looked_up(self, node: n.Scan, place: NodeContext, arrays: Sequence[StoredArray], fiber: FiberReader) -> list[Process]:
        """A scan that asks for all of a fiber at its reference, and goes through it once that is there."""
        pieces = [Piece(array, array.bytes * array.fiber, array.bytes * array.scanned) for array in arrays]
        asked = self._pieces(node, place.inputs, pieces, fiber.parents)
        link = BoundedFifo(None, min(self.controller.held(piece.size) for piece in pieces))
        gates = self._gates(node, asked.tokens, 0, asked.gates, output(HANDED_ON, (link,)), 1)
        link.writer = gates[-1]
        walker = link.slots.reader = Process(node, (link,), place.outputs, place.interval)
        walker.steps = scan_steps(walker, fiber, fiber.parents)
        for gate in gates:
            gate.helper = True
        return [*asked.processes, *gates, walker]

    def locate(self, node: n.Locate, place: NodeContext, level: Level) -> Sequence[Process]:
        """Asks for the elements that tell of a coordinate, and gives its reference once they are there."""
        size = place.size(node.tensor, node.level)
        arrays = level.points(size)
        pieces = [Piece(array, array.bytes, array.bytes) for array in arrays]
        elements, targets = Fifo(None), BoundedFifo(None, min(self.controller.held(piece.size) for piece in pieces))
        pointer = elements.writer = targets.writer = Process(node, place.inputs, (output(HANDED_ON, (elements, targets)),), 1)
        pointer.helper = True
        pointer.steps = _point(pointer, arrays, located(pointer, place.fibers(node)))
        asked = self._pieces(node, (elements,), pieces, inf, paired=True)
        gates = self._gates(node, targets, 1, asked.gates, place.outputs[0], place.interval)
        return [pointer, *asked.processes, *gates]

    def _pieces(
        self, node: n.Scan | n.Locate, inputs: Sequence[Fifo], pieces: Sequence[Piece], count: float, paired: bool = False
    ) -> Asking:
        """Processes, one after the other, that each ask for a piece of an array at every token."""
        processes: list[Process] = []
        gates: list[tuple[Reading, BoundedFifo]] = []
        for piece in pieces:
            port, fetching = self.read(node, (node.tensor, node.level, piece.array.kind))
            asker, link = self._asker(node, inputs, port)
            tokens = Fifo(None)
            tokens.writer = asker
            asker.outputs = (output(HANDED_ON, (tokens, link)),)
            asker.steps = _ask(asker, port, piece.stride, piece.size, count, paired=paired)
            processes += [asker, *fetching]
            gates.append((port, link))
            inputs, paired = (tokens,), True
        return Asking(processes, tokens, gates)

    def _gates(
        self,
        node: n.Node,
        tokens: Fifo,
        part: int | None,
        asked: Sequence[tuple[Reading, BoundedFifo]],
        last: Output,
        interval: int,
    ) -> list[Process]:
        """Processes, one after the other, that let tokens through once an answer is there. The first gets them as a part of pairs."""
        gates: list[Process] = []
        for k, (port, requests) in enumerate(asked):
            inner = k < len(asked) - 1
            link = Fifo(None)
            out = output(HANDED_ON, (link,)) if inner else last
            gate = Process(node, (tokens, requests), (out,), 1 if inner else interval)
            gate.helper = inner
            link.writer = requests.slots.reader = gate
            if tokens.slots is not None:
                tokens.slots.reader = gate
            gate.steps = _gate(gate, port, part)
            gates.append(gate)
            tokens, part = link, None
        return gates

    def write_level(self, node: n.WriteLevel, place: NodeContext, level: Level) -> Sequence[Process]:
        written = place.written[node.tensor]
        crd = written.crd[node.level] = array("q")
        pos = written.pos[node.level] = array("q", [0])
        arrays = level.arrays(place.size(node.tensor, node.level))
        entry, ends = None, list[Put]()
        for stored in sorted(arrays, key=lambda stored: stored.entry == 0):
            port = self._posted(node, node.level, stored.kind)
            port.filled = stored.first * stored.bytes
            if stored.entry:
                entry = port, stored.entry * stored.bytes
            if stored.fiber:
                ends.append((port, stored.fiber * stored.bytes))
        made = place.process(_write, crd, pos, entry, ends)
        for port, _ in (*([entry] if entry else []), *ends):
            port.sender = made[0]
        return made

    def write_values(self, node: n.WriteValues, place: NodeContext) -> Sequence[Process]:
        values = place.written[node.tensor].values = array("d")
        elements = Tiles(values) if place.declared[node.tensor].tile else values
        port = self._posted(node, -1, "val")
        made = place.process(_write, elements, None, (port, port.place.width), [])
        port.sender = made[0]
        return made

    def _posted(self, node: n.WriteLevel | n.WriteValues, level: int, kind: Kind) -> WritePort:
        name = (node.tensor, level, kind)
        return WritePort(self.controller, self.places[name], node, name)

    def _asker(self, node: n.Node, inputs: Sequence[Fifo], port: Reading) -> tuple[Process, BoundedFifo]:
        """The process that asks through a port, and its link to who gets the answers."""
        link = BoundedFifo(None, self.controller.held(port.place.width))
        process = Process(node, inputs, (output(HANDED_ON, (link,)),), 1)
        link.writer = process
        process.helper = True
        if isinstance(port, PrefetchPort):
            port.asker = process
        else:
            port.sender = process
        return process, link


def _responder(node: n.Node, place: NodeContext, link: BoundedFifo) -> Process:
    link.slots.reader = process = Process(node, (link,), place.outputs, place.interval)
    return process


def _ask(p: Process, port: Reading, stride: int, size: int, count: float, words: int = 0, paired: bool = False) -> Steps:
    """Ask for `size` bytes at `stride` times every reference; what goes on is the token and the request that answers it. `paired`: what
    comes is the token and something else."""
    (source,), (link,) = p.inputs, p.outputs
    asked = 0
    while True:
        while not source:
            yield source
        token, seen = source[0]
        if paired:
            token, _ = token
        free = yield from room(*p.outputs)
        request: int | None = None
        if token is D or token.__class__ is Stop:
            t = p.close(seen, free)
        elif token is N:
            t = p.fire(seen, free)
        else:
            if not 0 <= token < count:
                raise p.outside()
            asked += 1
            t, request = yield from port.ask(p, stride * token, stride * token + size, seen, free)
        source.take(t)
        link.push((token, request), t)
        if token is D:
            if words:
                p.elements = {"val": asked * words}
            return


Head: TypeAlias = Callable[[Fifo], Generator[Wait, None, tuple[Any, int]]]


def _heads(p: Process, pos: Reading | None) -> tuple[Head, Head]:
    """How a scan looks at its next reference: at the token alone, and with the answer that says where its fiber lies."""

    def token(source: Fifo) -> Generator[Wait, None, tuple[Any, int]]:
        while not source:
            yield source
        item, seen = source[0]
        return (item if pos is None else item[0]), seen

    def answered(source: Fifo) -> Generator[Wait, None, tuple[Any, int]]:
        found, seen = yield from token(source)
        request = None if pos is None else source[0][0][1]
        if pos is not None and request is not None:
            answer = Answer(pos, request)
            while not answer:
                yield answer
            seen = p.answered(seen, answer.cycle)
        return found, seen

    return token, answered


def _walk(p: Process, heads: tuple[Head, Head], fiber: FiberReader, port: Reading) -> Steps:
    """A scan that asks for its coordinates: the firings of `scan`, and one more for every further line."""
    (source,), (link,) = p.inputs, p.outputs
    token_of, answered = heads
    while True:
        token, seen = yield from answered(source)
        if token is D or token.__class__ is Stop:
            t = p.close(seen, (yield from room(*p.outputs)))
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
            free = yield from room(*p.outputs)
            t, request = yield from port.ask(p, port.place.width * low, port.place.width * high, seen, free)
            if pending:
                source.take(t)
                pending = False
            link.push(((crd, low), request), t)
        if pending:
            source.take(p.fire(seen))
        token, seen = yield from token_of(source)
        t = p.close(seen, (yield from room(*p.outputs)))
        end = END
        if token.__class__ is Stop:
            if token.low != 0:
                raise p.error(f"stop {token} does not end a fiber of references")
            source.take(t)
            end = stop(0, token.high + 1)
        link.push((end, None), t)


def _respond(p: Process, port: Reading, values: Callable[[Any], tuple[Any, ...]]) -> Steps:
    """Give what was asked for once it is there: one firing a token."""
    (link,) = p.inputs
    outputs: tuple[Output, ...] = p.outputs
    while True:
        while not link:
            yield link
        (token, request), seen = link[0]
        told = 0
        if request is not None:
            answer = Answer(port, request)
            while not answer:
                yield answer
            told = answer.cycle
        free = (yield from room(*outputs)) if p.bounded else 0
        seen = p.answered(seen, told)
        ends = token is D or token.__class__ is Stop
        t = p.close(seen, free) if ends else p.fire(seen, free)
        link.take(t)
        for out, item in zip(outputs, [token] * len(outputs) if ends else values(token), strict=True):
            out.push(item, t)
        if token is D:
            return


def _point(p: Process, arrays: Sequence[StoredArray], reference: Callable[[int, int], Any]) -> Steps:
    """Which element of the arrays tells of a coordinate below a reference, and the reference that a locate gives."""
    (out,), (stored, *_) = p.outputs, arrays
    asked = 0
    while True:
        seen = yield from look(0, p.inputs)
        crd, *ref = (source[0][0] for source in p.inputs)
        free = yield from room(out)
        control = crd is D or crd.__class__ is Stop
        if any((x is D or x.__class__ is Stop) != control or (control and x is not crd) for x in ref):
            raise p.misaligned(crd, *ref)
        made = (crd, crd)
        if not control:
            made = (N, N)
            if crd is not N and N not in ref:
                (parent,) = ref or [0]  # the outermost level has one
                made = parent * stored.fiber + crd // stored.told, reference(crd, parent)
                asked += 1
        t = p.close(seen, free) if control else p.fire(seen, free)
        for source in p.inputs:
            source.take(t)
        out.push(made, t)
        if crd is D:
            p.elements = {array.kind: asked for array in arrays}
            return


def _gate(p: Process, port: Reading, part: int | None) -> Steps:
    """Let every token through once what was asked for with it is there. It is this part of a pair, or comes alone."""
    (tokens, requests), (out,) = p.inputs, p.outputs
    while True:
        seen = yield from look(0, p.inputs)
        (item, _), ((_, request), _) = tokens[0], requests[0]
        token, told = item if part is None else item[part], 0
        if request is not None:
            answer = Answer(port, request)
            while not answer:
                yield answer
            told = answer.cycle
        free = yield from room(out)
        seen = p.answered(seen, told)
        ends = token is D or token.__class__ is Stop
        t = p.close(seen, free) if ends else p.fire(seen, free)
        tokens.take(t)
        requests.take(t)
        out.push(token, t)
        if token is D:
            return


Put: TypeAlias = tuple[WritePort, int]
"""A port that writes, and how many bytes at a time."""


def _write(p: Process, elements: Any, ends: Any, entry: Put | None, closing: Sequence[Put]) -> Steps:
    """Append every value; a stop that ends a fiber appends the number of values so far."""
    (source,) = p.inputs
    while True:
        while not source:
            yield source
        token, seen = source[0]
        if token is N:
            raise p.refused()
        if token.__class__ is Stop:
            if token.low == 0 and ends is not None:
                ends.append(len(elements))
                for port, size in closing:
                    t = yield from port.put(p, size, seen)
                source.take(t if closing else p.close(seen))
            else:
                source.take(p.close(seen))
        elif token is D:
            source.take(p.close(seen))
            for port, _ in (*([entry] if entry else []), *closing):
                yield from port.flush(p, seen)
            return
        else:
            source.take(p.fire(seen) if entry is None else (yield from entry[0].put(p, entry[1], seen)))
            elements.append(token)
