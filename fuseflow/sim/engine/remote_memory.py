"""How a node that reads or writes is laid out at a memory that takes time: its parts, the links between them, its ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.ask_remote import run_ask, run_fetch
from fuseflow.sim.engine.kernels.gate_remote import GATE, run_gate
from fuseflow.sim.engine.kernels.load import values_of
from fuseflow.sim.engine.kernels.load_remote import REMOTE_LOAD, run_load_answered
from fuseflow.sim.engine.kernels.locate import STORED
from fuseflow.sim.engine.kernels.locate import fibers_of as located_in
from fuseflow.sim.engine.kernels.locate_remote import run_point
from fuseflow.sim.engine.kernels.scan import SCAN, fibers_of, run_scan
from fuseflow.sim.engine.kernels.scan_remote import REMOTE_SCAN, run_give, run_walk
from fuseflow.sim.engine.kernels.write import level_buffers, value_buffers
from fuseflow.sim.engine.kernels.write_remote import REMOTE_WRITE, run_write_remote
from fuseflow.sim.engine.memory_ports import REQUESTER
from fuseflow.sim.engine.node_layout import Array, Link, NodeLayout, Part, Rule, Stream
from fuseflow.sim.engine.stream_rings import MANY
from fuseflow.sim.memory.controller import Controller
from fuseflow.sim.memory.layout import AddressRange as Bytes
from fuseflow.sim.memory.layout import ArrayName as Name
from fuseflow.sim.native.records import address
from fuseflow.tensors.levels import Level
from fuseflow.tensors.levels.base import Kind, Listed, StoredArray

HANDED_ON = 1
"""Cycles from a firing of an asker until its responder sees what it asked for."""


class RemoteLayout:
    """Lays out the nodes that read and write, on one memory. `requesters`: with the numbers of their ports."""

    def __init__(self, controller: Controller, places: Mapping[Name, Bytes], sequential: set[str]) -> None:
        """`sequential`: names of the nodes that read their arrays from the first element to the last."""
        self.controller, self.places, self.sequential = controller, places, sequential
        self.requesters: list[tuple[Array, int]] = []

    def rules(self, local: Mapping[type[n.Node], Rule]) -> dict[type[n.Node], Rule]:
        def scan(node: n.Scan, place: NodeLayout) -> list[Part]:
            level = place.level(node)
            return self.scan(node, place, level) if level.stored else local[n.Scan](node, place)

        def locate(node: n.Locate, place: NodeLayout) -> list[Part]:
            level = place.level(node)
            return self.locate(node, place, level) if level.stored else local[n.Locate](node, place)

        def write_level(node: n.WriteLevel, place: NodeLayout) -> list[Part]:
            level = place.level(node)
            return self.write_level(node, place, level) if level.stored else local[n.WriteLevel](node, place)

        own: dict[type[n.Node], Rule] = {
            n.Scan: scan,
            n.Locate: locate,
            n.Load: self.load,
            n.WriteLevel: write_level,
            n.WriteValues: self.write_values,
        }
        return {**local, **own}

    def open(self) -> None:
        """All ports are known: make the memory, and tell the requesters where theirs are."""
        self.controller.open()
        for record, port in self.requesters:
            record["port"] = self.controller.memory.port(port)

    def load(self, node: n.Load, place: NodeLayout) -> list[Part]:
        fields = values_of(node, place)
        port = self._reader(node, place, (node.tensor, -1, "val"), int(fields["count"]))
        state = place.state(REMOTE_LOAD, **fields, val=address(port))
        asker, links = self._asker(run_ask, port, port, node.inputs, 1)
        return [asker, *_fetcher(port), Part(run_load_answered, state, links, place.outputs)]

    def scan(self, node: n.Scan, place: NodeLayout, level: Level) -> list[Part]:
        reads = level.reads(place.size(node.tensor, node.level))
        if reads.entries is None:
            return self._looked_up(node, place, reads.scanned)
        return self._walked(node, place, reads.entries, reads.scanned)

    def _walked(self, node: n.Scan, place: NodeLayout, entries: StoredArray, scanned: Sequence[StoredArray]) -> list[Part]:
        """A scan that learns at a reference where the entries of its fiber are, if it does not know that, and then asks for these."""
        walk = place.tensors[node.tensor].levels[node.level].walk()
        assert isinstance(walk, Listed), "what has entries is listed"
        crd, pos = self._reader(node, place, (node.tensor, node.level, entries.kind), 0), None
        made: list[Part] = []
        inputs: tuple[Any, ...] = tuple(node.inputs)
        for array in scanned:
            pos = self._piece(node, place, array.kind, walk.parents, array.bytes * array.fiber, array.bytes * array.scanned)
            asker, inputs = self._asker(run_ask, pos, pos, node.inputs, 1)
            made = [asker, *_fetcher(pos)]
        stops = walk.highs if walk.stops is None else walk.stops
        state = place.state(
            REMOTE_SCAN,
            **fibers_of(node, place),
            stops=place.array(stops),
            crd=address(crd),
            pos=0 if pos is None else address(pos),
        )
        walker, links = self._asker(run_walk, state, crd, inputs, 2)
        return [*made, walker, *_fetcher(crd), Part(run_give, state, links, place.outputs, computes=False)]

    def _looked_up(self, node: n.Scan, place: NodeLayout, arrays: Sequence[StoredArray]) -> list[Part]:
        """A scan that asks for all of a fiber at its reference, and goes through it once that is there."""
        state = place.state(SCAN, **fibers_of(node, place))
        count = int(state["parents"][0])
        pieces = [
            self._piece(node, place, array.kind, count, array.bytes * array.fiber, array.bytes * array.scanned)
            for array in arrays
        ]
        asking, tokens, requests = self._pieces(pieces, tuple(node.inputs))
        depth = min(self.controller.elements_in_flight(int(piece["size"][0])) for piece in pieces)
        last = Link(HANDED_ON, depth=depth)
        gates = _gates(place, pieces, tokens, requests, last, own=False)
        return [*asking, *gates, Part(run_scan, state, (last,), place.outputs, computes=False)]

    def locate(self, node: n.Locate, place: NodeLayout, level: Level) -> list[Part]:
        """Asks for the elements that tell of a coordinate, and gives its reference once they are there."""
        arrays = level.points(place.size(node.tensor, node.level))
        pieces = [self._piece(node, place, array.kind, MANY, array.bytes, array.bytes) for array in arrays]
        depth = min(self.controller.elements_in_flight(int(piece["size"][0])) for piece in pieces)
        elements, targets = Link(HANDED_ON), Link(HANDED_ON, depth=depth)
        state = place.state(STORED, **located_in(node, place), fiber=arrays[0].fiber, told=arrays[0].told)
        pointer = Part(run_point, state, node.inputs, (elements, targets), helper=True)
        asking, _, requests = self._pieces(pieces, (elements,))
        return [pointer, *asking, *_gates(place, pieces, targets, requests, place.outputs[0], own=True)]

    def _piece(self, node: n.Scan | n.Locate, place: NodeLayout, kind: Kind, count: int, stride: int, size: int) -> Array:
        """A requester that reads so many bytes at a stride."""
        found = self._reader(node, place, (node.tensor, node.level, kind), count)
        found["stride"], found["size"] = stride, size
        return found

    def _pieces(self, pieces: Sequence[Array], inputs: tuple[Stream, ...]) -> tuple[list[Part], Link, list[Link]]:
        """Parts, one after the other, that each ask for a piece of an array at every token; the tokens that the last hands on, and the
        requests of each."""
        parts: list[Part] = []
        requests: list[Link] = []
        for piece in pieces:
            asker, (tokens, asked) = self._asker(run_ask, piece, piece, inputs, 1)
            parts += [asker, *_fetcher(piece)]
            requests.append(asked)
            inputs = (tokens,)
        return parts, tokens, requests

    def write_level(self, node: n.WriteLevel, place: NodeLayout, level: Level) -> list[Part]:
        arrays = sorted(level.arrays(place.size(node.tensor, node.level)), key=lambda array: array.entry == 0)
        entry, ends = 0, list[int]()
        for array in arrays:
            port = self._writer(node, place, (node.tensor, node.level, array.kind))
            port["filled"], port["size"] = array.first * array.bytes, (array.entry or array.fiber) * array.bytes
            if array.entry:
                entry = address(port)
            else:
                ends.append(address(port))
        state = place.state(
            REMOTE_WRITE, **level_buffers(node, place), array=entry, ports=place.array(np.array(ends)), closing=len(ends)
        )
        return place.part(run_write_remote, state)

    def write_values(self, node: n.WriteValues, place: NodeLayout) -> list[Part]:
        array = self._writer(node, place, (node.tensor, -1, "val"))
        return place.part(run_write_remote, place.state(REMOTE_WRITE, **value_buffers(node, place), array=address(array)))

    def _reader(self, node: n.Scan | n.Locate | n.Load, place: NodeLayout, name: Name, count: int) -> Array:
        found = self._requester(node, place, name, write=False)
        found["count"] = count
        if node.name in self.sequential and self.controller.prefetch:
            found["ahead"], found["lines"] = self.controller.prefetch, -(-self.places[name].length // self.controller.line)
            found["touched"] = place.buffer(np.int64, int(found["lines"][0]))
        return found

    def _writer(self, node: n.WriteLevel | n.WriteValues, place: NodeLayout, name: Name) -> Array:
        found = self._requester(node, place, name, write=True)
        found["wanted"] = MANY
        return found

    def _requester(self, node: n.Node, place: NodeLayout, name: Name, write: bool) -> Array:
        at = self.places[name]
        made = place.state(
            REQUESTER, base=at.base, stride=at.width, size=at.width, outstanding=self.controller.outstanding, line=-1, next=-1,
            length=at.length, bits=self.controller.line.bit_length() - 1,
        )  # fmt: skip
        place.keep[address(made)] = made
        self.requesters.append((made, self.controller.join(node.name, name, write)))
        return made

    def _asker(
        self, kernel: Callable[[int], int], state: Array, port: Array, inputs: Any, links: int
    ) -> tuple[Part, tuple[Link, ...]]:
        """A part that asks through a port, and its links: of tokens, and of the requests that answer them. As many tokens are in each;
        only the last bounds them."""
        requests = Link(HANDED_ON, stored=False, depth=self.controller.elements_in_flight(int(port["stride"][0])))
        made = (*(Link(HANDED_ON) for _ in range(links)), requests)
        return Part(kernel, state, inputs, made, computes=kernel is run_ask, helper=True), made


def _gates(
    place: NodeLayout, pieces: Sequence[Array], tokens: Link, requests: Sequence[Link], last: Stream, own: bool
) -> list[Part]:  # fmt: skip
    """Parts, one after the other, that let tokens through once an answer is there; `own`: the firings of the last are the node's."""
    gates: list[Part] = []
    for k, (piece, asked) in enumerate(zip(pieces, requests, strict=True)):
        inner = k < len(pieces) - 1
        out = Link(HANDED_ON) if inner else last
        gates.append(Part(run_gate, place.state(GATE, array=address(piece)), (tokens, asked), (out,), helper=inner or not own))
        if isinstance(out, Link):
            tokens = out
    return gates


def _fetcher(port: Array) -> list[Part]:
    """The part that reads ahead; none where nothing is read in order."""
    return [Part(run_fetch, port, (), (), helper=True)] if port["ahead"][0] else []
