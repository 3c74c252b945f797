"""Scan, load and write at a memory that takes time. Their meaning is that of `scan`, `pointwise` and `write`; see `ports` for the rest."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Sequence
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.memory.controller import Controller
from fuseflow.sim.memory.layout import AddressRange as Bytes
from fuseflow.sim.memory.layout import Array, Kind
from fuseflow.sim.reference.fibers import reader
from fuseflow.sim.reference.memory_ports import Answer, DemandPort, PrefetchPort, WritePort
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import BoundedFifo, Fifo, Output, Process, Steps, Wait, output, room
from fuseflow.sim.reference.write import Tiles
from fuseflow.tensors.levels.base import POS_BYTES, Fibers
from fuseflow.tensors.levels.compressed import CompressedFibers
from fuseflow.tensors.levels.singleton import SingletonFibers
from fuseflow.tile_ops import filled

Reading: TypeAlias = DemandPort | PrefetchPort
HANDED_ON = 1
"""Cycles from a firing of an asker until its responder sees what it asked for."""
END = stop(0, 0)


class RemoteProcesses:
    """Builds the processes of the nodes that read and write, on one memory."""

    def __init__(self, controller: Controller, places: dict[Array, Bytes], sequential: set[str]) -> None:
        """`sequential`: names of the nodes that read their arrays from the first element to the last."""
        self.controller, self.places, self.sequential = controller, places, sequential

    def rules(self, local: dict[type[n.Node], Rule]) -> dict[type[n.Node], Rule]:
        def scan(node: n.Scan, place: NodeContext) -> Sequence[Process]:
            level = place.tensors[node.tensor].levels[node.level]
            stored = isinstance(level, CompressedFibers | SingletonFibers)
            return self.scan(node, place, level) if stored else local[n.Scan](node, place)

        def write_level(node: n.WriteLevel, place: NodeContext) -> Sequence[Process]:
            full = place.declared[node.tensor].format.levels[node.level].full
            return local[n.WriteLevel](node, place) if full else self.write_level(node, place)

        return {n.Scan: scan, n.Load: self.load, n.WriteLevel: write_level, n.WriteValues: self.write_values}

    def read(self, node: n.Scan | n.Load, name: Array) -> tuple[Reading, list[Process]]:
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
        fill = filled(decl.tile, decl.fill)
        port, fetching = self.read(node, (node.tensor, -1, "val"))
        asker, link = self._asker(node, place.inputs, port)
        width, words = self.places[node.tensor, -1, "val"].width, prod(decl.tile)
        asker.steps = _ask(asker, port, width, width, len(values), words)
        responder = _responder(node, place, link)
        responder.steps = _respond(responder, port, lambda ref: (fill if ref is N else values[ref],))
        return [asker, *fetching, responder]

    def scan(self, node: n.Scan, place: NodeContext, level: Fibers) -> Sequence[Process]:
        fiber = reader(level)
        crds, fetching = self.read(node, (node.tensor, node.level, "crd"))
        made: list[Process] = []
        source, pos = place.inputs[0], None
        if isinstance(level, CompressedFibers):
            pos, more = self.read(node, (node.tensor, node.level, "pos"))
            asker, source = self._asker(node, place.inputs, pos)
            asker.steps = _ask(asker, pos, POS_BYTES, 2 * POS_BYTES, int(fiber.parents))
            made = [asker, *more]
        walker, link = self._asker(node, (source,), crds)
        if isinstance(source, BoundedFifo):  # of the asker, or of the graph
            source.slots.reader = walker
        walker.steps = _walk(walker, _heads(walker, pos), fiber, _ends(level), crds, fiber.parents)
        (made[0] if made else walker).elements = fiber.requested
        responder = _responder(node, place, link)
        responder.steps = _respond(responder, crds, lambda pair: pair)
        return [*made, walker, *fetching, responder]

    def write_level(self, node: n.WriteLevel, place: NodeContext) -> Sequence[Process]:
        written = place.written[node.tensor]
        crd = written.crd[node.level] = array("q")
        pos = written.pos[node.level] = array("q", [0])
        crds, ends = self._posted(node, node.level, "crd"), self._posted(node, node.level, "pos")
        ends.filled = POS_BYTES
        made = place.process(_write, crd, pos, crds, ends)
        crds.sender = ends.sender = made[0]
        return made

    def write_values(self, node: n.WriteValues, place: NodeContext) -> Sequence[Process]:
        values = place.written[node.tensor].values = array("d")
        elements = Tiles(values) if place.declared[node.tensor].tile else values
        port = self._posted(node, -1, "val")
        made = place.process(_write, elements, None, port, None)
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


def _ask(p: Process, port: Reading, stride: int, size: int, count: int, words: int = 0) -> Steps:
    """Ask for `size` bytes at `stride` times every reference; what goes on is the token and the request that answers it."""
    (source,), (link,) = p.inputs, p.outputs
    asked = 0
    while True:
        while not source:
            yield source
        token, seen = source[0]
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


def _ends(level: Fibers) -> Callable[[int], int]:
    """Where the coordinates below a reference end."""
    if isinstance(level, CompressedFibers):
        return lambda ref: int(level.pos[ref + 1])
    assert isinstance(level, SingletonFibers)
    return lambda ref: int(level.stop[ref])


def _walk(
    p: Process, heads: tuple[Head, Head], fiber: Callable[[Any], Any], ends: Callable[[int], int], port: Reading, parents: float
) -> Steps:
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
        if token is not N and not 0 <= token < parents:
            raise p.outside()
        crds, refs = fiber(token)
        pending = True
        bounds = [*refs, ends(token)] if refs else []
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


def _write(p: Process, elements: Any, ends: Any, port: WritePort, stops: WritePort | None) -> Steps:
    """Append every value; a stop that ends a fiber appends the number of values so far."""
    (source,) = p.inputs
    while True:
        while not source:
            yield source
        token, seen = source[0]
        if token is N:
            raise p.refused()
        if token.__class__ is Stop:
            if token.low == 0 and stops is not None:
                ends.append(len(elements))
                source.take((yield from stops.put(p, POS_BYTES, seen)))
            else:
                source.take(p.close(seen))
        elif token is D:
            source.take(p.close(seen))
            yield from port.flush(p, seen)
            if stops is not None:
                yield from stops.flush(p, seen)
            return
        else:
            source.take((yield from port.put(p, port.place.width, seen)))
            elements.append(token)
