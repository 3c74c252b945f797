"""How a node that reads or writes is laid out at a memory that takes time: its parts, the links between them, its ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.ask_remote import run_ask, run_fetch
from fuseflow.sim.engine.kernels.load import values_of
from fuseflow.sim.engine.kernels.load_remote import REMOTE_LOAD, run_load_answered
from fuseflow.sim.engine.kernels.scan import fibers_of
from fuseflow.sim.engine.kernels.scan_remote import REMOTE_SCAN, run_give, run_walk
from fuseflow.sim.engine.kernels.write import level_buffers, value_buffers
from fuseflow.sim.engine.kernels.write_remote import REMOTE_WRITE, run_write_remote
from fuseflow.sim.engine.memory_ports import REQUESTER
from fuseflow.sim.engine.node_layout import Array, Link, NodeLayout, Part, Rule
from fuseflow.sim.engine.stream_rings import MANY
from fuseflow.sim.memory.controller import Controller
from fuseflow.sim.memory.layout import AddressRange as Bytes
from fuseflow.sim.memory.layout import Array as Name
from fuseflow.sim.native.records import address
from fuseflow.tensors.levels.base import POS_BYTES, Fibers
from fuseflow.tensors.levels.compressed import CompressedFibers
from fuseflow.tensors.levels.singleton import SingletonFibers

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
            level = place.tensors[node.tensor].levels[node.level]
            stored = isinstance(level, CompressedFibers | SingletonFibers)
            return self.scan(node, place, level) if stored else local[n.Scan](node, place)

        def write_level(node: n.WriteLevel, place: NodeLayout) -> list[Part]:
            full = place.declared[node.tensor].format.levels[node.level].full
            return local[n.WriteLevel](node, place) if full else self.write_level(node, place)

        return {**local, n.Scan: scan, n.Load: self.load, n.WriteLevel: write_level, n.WriteValues: self.write_values}

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

    def scan(self, node: n.Scan, place: NodeLayout, level: Fibers) -> list[Part]:
        crd, pos = self._reader(node, place, (node.tensor, node.level, "crd"), 0), None
        made: list[Part] = []
        inputs: tuple[Any, ...] = tuple(node.inputs)
        stops = getattr(level, "stop", None)
        if isinstance(level, CompressedFibers):
            stops = level.pos[1:]
            pos = self._reader(node, place, (node.tensor, node.level, "pos"), len(level.pos) - 1)
            pos["size"] = 2 * POS_BYTES
            asker, inputs = self._asker(run_ask, pos, pos, node.inputs, 1)
            made = [asker, *_fetcher(pos)]
        state = place.state(
            REMOTE_SCAN, **fibers_of(node, place), stops=place.array(np.asarray(stops)), crd=address(crd),
            pos=0 if pos is None else address(pos),
        )  # fmt: skip
        walker, links = self._asker(run_walk, state, crd, inputs, 2)
        return [*made, walker, *_fetcher(crd), Part(run_give, state, links, place.outputs, computes=False)]

    def write_level(self, node: n.WriteLevel, place: NodeLayout) -> list[Part]:
        array = self._writer(node, place, (node.tensor, node.level, "crd"))
        pos = self._writer(node, place, (node.tensor, node.level, "pos"))
        pos["filled"] = POS_BYTES
        fields = level_buffers(node, place)
        return place.part(run_write_remote, place.state(REMOTE_WRITE, **fields, array=address(array), pos=address(pos)))

    def write_values(self, node: n.WriteValues, place: NodeLayout) -> list[Part]:
        array = self._writer(node, place, (node.tensor, -1, "val"))
        return place.part(run_write_remote, place.state(REMOTE_WRITE, **value_buffers(node, place), array=address(array)))

    def _reader(self, node: n.Scan | n.Load, place: NodeLayout, name: Name, count: int) -> Array:
        found = self._requester(node, place, name, write=False)
        found["count"] = count
        if node.name in self.sequential and self.controller.ahead:
            found["ahead"], found["lines"] = self.controller.ahead, -(-self.places[name].length // self.controller.line)
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
        requests = Link(HANDED_ON, stored=False, depth=self.controller.held(int(port["stride"][0])))
        made = (*(Link(HANDED_ON) for _ in range(links)), requests)
        return Part(kernel, state, inputs, made, computes=kernel is run_ask, helper=True), made


def _fetcher(port: Array) -> list[Part]:
    """The part that reads ahead; none where nothing is read in order."""
    return [Part(run_fetch, port, (), (), helper=True)] if port["ahead"][0] else []
