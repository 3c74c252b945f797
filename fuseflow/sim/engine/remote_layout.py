"""At a memory that takes time, a node that reads or writes has several parts, links between them, and ports. This module lays
them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fuseflow.memory.layout import ArrayName as Name
from fuseflow.memory.memory_interface import BEHIND, LOADED, MOVED, TRANSFER_PORTS, Controller
from fuseflow.native.records import address
from fuseflow.samml import nodes as n
from fuseflow.samml.writers import lane_part
from fuseflow.sim.engine.kernels.levels import LOADED_ROOT, SCAN, run_root_loaded, run_scan, scan_fields
from fuseflow.sim.engine.kernels.load import LOAD, load_fields, run_load_answered
from fuseflow.sim.engine.kernels.locate import STORED, kept_fields, locate_fields, run_point, run_point_kept
from fuseflow.sim.engine.kernels.remote import (
    GATE,
    REMOTE_SCAN,
    run_ask,
    run_fetch,
    run_gate,
    run_give,
    run_give_narrow,
    run_preload,
    run_store,
    run_walk,
)
from fuseflow.sim.engine.kernels.write import WRITE, level_buffers, run_write_remote, value_buffers
from fuseflow.sim.engine.memory_ports import REQUESTER
from fuseflow.sim.engine.node_layout import Array, LayoutRule, Link, NodeLayout, Part, StreamKey
from fuseflow.sim.engine.stream_rings import MANY
from fuseflow.sim.rule_selection import RemoteRules
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Kind, Listed, StoredArray

LINK_LATENCY = 1
"""The cycles from the firing that requests until its token is visible to the part that waits for the answer."""


class RemoteLayout(RemoteRules[list[Part]]):
    """Layout rules for the nodes that read and write, at one memory. `requesters` holds each requester record with the number of
    its port."""

    def __init__(self, controller: Controller, graph: n.Graph, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(controller, graph, tensors)
        self.loads = 0  # the address of the requester of what is loaded
        self.preloads: dict[str, int] = {}  # the first port of each tensor that is preloaded
        self.requesters: list[tuple[Array, int]] = []

    def root(self, local: LayoutRule, node: n.Root, layout: NodeLayout) -> list[Part]:
        transfers = {
            name: self._banks(node, layout, name, TRANSFER_PORTS, name == BEHIND) for name in MOVED if name in self.places
        }
        moving = [part for _, parts, _ in transfers.values() for part in parts]
        if LOADED not in transfers:
            return [*moving, *local(node, layout)]
        self.loads = address(transfers[LOADED][0])
        state = layout.state(LOADED_ROOT, loads=self.loads)
        waiting = Part(run_root_loaded, state, (), layout.node.ports, computes=False, requesters={"answers": self.loads})
        return [*moving, waiting]

    def open(self) -> None:
        """Create the memory, once all ports are known, and put the address of its port into every requester."""
        self.controller.open()
        for record, port in self.requesters:
            record["port"] = self.controller.memory.port(port)

    def load(self, node: n.Load, layout: NodeLayout) -> list[Part]:
        fields = load_fields(node, layout)
        name: Name = (node.tensor, -1, "val")
        count = int(fields["count"])
        if node.name in self.preloaded:
            port, fetching = self._preload(node, layout, name, count)
        else:
            port = self._reader(node, layout, name, count)
            fetching = _fetcher(port)
        port["data"], port["width"] = fields["values"], (4 if fields["single"] else 8) * fields["words"]
        state = layout.state(LOAD, **fields, val=address(port))
        asker, links = self._asker(port, node.inputs, name)
        return [asker, *fetching, Part(run_load_answered, state, links, layout.node.ports, requesters={"answers": address(port)})]

    def scan(self, node: n.Scan, layout: NodeLayout) -> list[Part]:
        reads = layout.level(node).reads(layout.size(node.tensor, node.level))
        if reads.entries is None:
            return self._gate_fibers(node, layout, reads.scanned)
        return self._walk_entries(node, layout, reads.entries, reads.scanned)

    def _walk_entries(self, node: n.Scan, layout: NodeLayout, entries: StoredArray, scanned: Sequence[StoredArray]) -> list[Part]:
        """Return the parts of a scan of stored entries. At a reference, the scan first requests the positions of the fiber's
        entries (`scanned`), if they are stored, and then the entries."""
        walk = layout.tensors[node.tensor].levels[node.level].walk()
        assert isinstance(walk, Listed), "what has entries is listed"
        crd, pos = self._reader(node, layout, (node.tensor, node.level, entries.kind), 0), None
        parts: list[Part] = []
        inputs: tuple[Any, ...] = tuple(node.inputs)
        for array in scanned:
            pos = self._piece(node, layout, array.kind, walk.parents, array.bits * array.fiber, array.bits * array.scanned)
            asker, inputs = self._asker(pos, node.inputs, (node.tensor, node.level, array.kind))
            parts = [asker, *_fetcher(pos)]
        narrow = walk.crds.dtype == np.int32 and walk.refs is None  # its coordinates stay in 32 bits
        if narrow:
            fields = layout.fiber_arrays(walk, "lows", "highs")
            fields |= {"crds": layout.tensor_array(walk.crds, widened=False), "parents": walk.parents}
        else:
            fields = scan_fields(node, layout)
        state = layout.state(
            REMOTE_SCAN,
            **fields,
            stops=layout.tensor_array(walk.highs if walk.stops is None else walk.stops),
            crd=address(crd),
            pos=0 if pos is None else address(pos),
        )
        crd["data"], crd["width"] = fields["crds"], 4 if narrow else 8
        if pos is not None:
            pos["data"], pos["width"] = fields["lows"], 8
        links = self._links(crd, 2, (node.tensor, node.level, entries.kind))
        requesters = {"answers": int(state["pos"][0]), "sends": address(crd)}
        walker = Part(run_walk, state, inputs, links, computes=False, helper=True, asks=True, requesters=requesters)
        give = run_give_narrow if narrow else run_give
        giver = Part(give, state, links, layout.node.ports, computes=narrow, requesters={"answers": address(crd)})
        return [*parts, walker, *_fetcher(crd), giver]

    def _gate_fibers(self, node: n.Scan, layout: NodeLayout, arrays: Sequence[StoredArray]) -> list[Part]:
        """Return the parts of a scan that requests a whole fiber at its reference, and walks it once the answer has come."""
        state = layout.state(SCAN, **scan_fields(node, layout))
        count = int(state["parents"][0])
        pieces = [
            self._piece(node, layout, array.kind, count, array.bits * array.fiber, array.bits * array.scanned) for array in arrays
        ]
        names: list[Name] = [(node.tensor, node.level, array.kind) for array in arrays]
        asking, tokens, requests = self._pieces(pieces, names, tuple(node.inputs))
        depth = self._in_flight(pieces, names)
        last = Link(LINK_LATENCY, depth=depth)
        gates = _gates(layout, pieces, tokens, requests, last, counts_firings=False)
        return [*asking, *gates, Part(run_scan, state, (last,), layout.node.ports, computes=False)]

    def locate(self, node: n.Locate, layout: NodeLayout) -> list[Part]:
        level, size = layout.level(node), layout.size(node.tensor, node.level)
        kept = level.reads(size).entries if level.kept else None
        arrays = level.points(size) if kept is None else (kept,)
        pieces = [self._piece(node, layout, array.kind, MANY, array.bits, array.bits) for array in arrays]
        names: list[Name] = [(node.tensor, node.level, array.kind) for array in arrays]
        depth = self._in_flight(pieces, names)
        elements, targets = Link(LINK_LATENCY), Link(LINK_LATENCY, depth=depth)
        fields = (
            {**locate_fields(node, layout), "fiber": arrays[0].fiber, "told": arrays[0].told}
            if kept is None
            else kept_fields(node, layout)
        )
        kernel, loads = (run_point, 0) if kept is None else (run_point_kept, self._awaited_loads(node))
        state = layout.state(STORED, **fields, loads=loads)
        pointer = Part(kernel, state, node.inputs, (elements, targets), helper=True, requesters={"answers": loads})
        asking, _, requests = self._pieces(pieces, names, (elements,))
        gates = _gates(layout, pieces, targets, requests, layout.node.ports[0], counts_firings=True)
        if kept is not None:
            gates[0].state["entries"] = fields["entries"]
        return [pointer, *asking, *gates]

    def _piece(self, node: n.Scan | n.Locate, layout: NodeLayout, kind: Kind, count: int, stride: int, size: int) -> Array:
        """Return a requester that reads `count` elements of `size` bits, `stride` bits apart, of the array `kind` of a level."""
        requester = self._reader(node, layout, (node.tensor, node.level, kind), count)
        requester["stride"], requester["size"] = stride, size
        return requester

    def _in_flight(self, pieces: Sequence[Array], names: Sequence[Name]) -> int:
        """Return how many elements of each array, one of `names` for each requester of `pieces`, may be requested ahead."""
        pairs = zip(pieces, names, strict=True)
        return min(self.controller.elements_in_flight(int(piece["size"][0]), name) for piece, name in pairs)

    def _pieces(
        self, pieces: Sequence[Array], names: Sequence[Name], inputs: tuple[StreamKey, ...]
    ) -> tuple[list[Part], Link, list[Link]]:
        """Return parts in series, each of which requests an element of one array (a requester of `pieces`, and its name) at every
        token; the link of tokens after the last part; and the links of request numbers."""
        parts: list[Part] = []
        requests: list[Link] = []
        for piece, name in zip(pieces, names, strict=True):
            asker, (tokens, asked) = self._asker(piece, inputs, name)
            parts += [asker, *_fetcher(piece)]
            requests.append(asked)
            inputs = (tokens,)
        return parts, tokens, requests

    def write_level(self, node: n.WriteLevel, layout: NodeLayout) -> list[Part]:
        arrays = sorted(layout.declared[node.tensor].stored_arrays(node.level), key=lambda array: array.entry == 0)
        entry, ends = 0, list[int]()
        for array in arrays:
            port = self._writer(node, layout, (node.tensor, node.level, array.kind))
            port["filled"], port["size"] = array.first * array.bits, (array.entry or array.fiber) * array.bits
            port["begun"] = port["filled"] % (1 << int(port["bits"][0])) > 0
            if array.entry:
                entry = address(port)
            else:
                ends.append(address(port))
        return _writer(layout, entry, ends, level_buffers(node, layout))

    def write_values(self, node: n.WriteValues, layout: NodeLayout) -> list[Part]:
        array = self._writer(node, layout, (node.tensor, -1, "val"))
        if isinstance(node, n.WriteLaneValues):
            part = lane_part(node, layout.declared[node.tensor])
            array["run"] = array["left"] = part.run
            array["filled"], array["gap"] = part.first * array["size"], part.gap * array["size"]
        return _writer(layout, address(array), [], value_buffers(node, layout))

    def _reader(self, node: n.Scan | n.Locate | n.Load, layout: NodeLayout, name: Name, count: int) -> Array:
        requester = self._requester(node, layout, name, write=False)
        requester["count"] = count
        if node.name in self.sequential and self.controller.prefetch:
            requester["lines"] = -(-self.places[name].length // self.controller.line_of(name))
            requester["ahead"] = self.controller.prefetch
            requester["touched"] = layout.buffer(np.int64, int(requester["lines"][0]))
            requester["loads"] = self._awaited_loads(node)
        return requester

    def _awaited_loads(self, node: n.Scan | n.Locate | n.Load) -> int:
        """Return the address of the requester of the loads that a node waits for before it asks ahead of its tokens; 0: none."""
        return self.loads if node.name in self.early else 0

    def _preload(self, node: n.Load, layout: NodeLayout, name: Name, count: int) -> tuple[Array, list[Part]]:
        """Return the requester of a node that needs preloaded values, and the parts that preload them (none but for the first
        such node)."""
        ports = layout.declared[node.tensor].preload
        if node.tensor not in self.preloads:
            reader, parts, self.preloads[node.tensor] = self._banks(node, layout, name, ports)
        else:
            reader, parts = self._banked(layout, name, ports), []
            self.requesters.append((reader, self.preloads[node.tensor]))
        reader["count"] = count
        return reader, parts

    def _banks(
        self, node: n.Node, layout: NodeLayout, name: Name, ports: int, write: bool = False
    ) -> tuple[Array, list[Part], int]:
        """Return a requester that waits for lines of an array, the parts that read (or write) all of them once through `ports` ports,
        and the first of these ports."""
        banks = [self._banked(layout, name, ports, bank=bank) for bank in range(ports)]
        first, *_ = numbers = [self.controller.join(node.name, name, write) for _ in banks]
        kernel = run_store if write else run_preload
        self.requesters += zip(banks, numbers, strict=True)
        parts = [Part(kernel, bank, (), (), helper=True, asks=True, requesters={"sends": address(bank)}) for bank in banks]
        reader = self._banked(layout, name, ports)
        self.requesters.append((reader, first))
        return reader, parts, first

    def _banked(self, layout: NodeLayout, name: Name, ports: int, **fields: int) -> Array:
        """Return the record of a requester of an array that `ports` ports read once."""
        lines = -(-self.places[name].length // self.controller.line_of(name))
        return self._state(layout, name, lines=lines, banks=ports, **fields)

    def _writer(self, node: n.WriteLevel | n.WriteValues, layout: NodeLayout, name: Name) -> Array:
        requester = self._requester(node, layout, name, write=True)
        requester["wanted"] = MANY
        return requester

    def _requester(self, node: n.Node, layout: NodeLayout, name: Name, write: bool, **fields: int) -> Array:
        requester = self._state(layout, name, **fields)
        self.requesters.append((requester, self.controller.join(node.name, name, write)))
        return requester

    def _state(self, layout: NodeLayout, name: Name, **fields: int) -> Array:
        span, line = self.places[name], 8 * self.controller.line_of(name)
        requester = layout.state(
            REQUESTER, base=span.base, stride=span.bits, size=span.bits, outstanding=self.controller.outstanding, line=-1, next=-1,
            length=8 * span.length, bits=line.bit_length() - 1, **fields,
        )  # fmt: skip
        layout.arrays[address(requester)] = requester
        requester["data"] = address(requester)
        return requester

    def _links(self, port: Array, count: int, name: Name) -> tuple[Link, ...]:
        """Return the links of a part that requests elements of the array `name`: `count` links of tokens and one of request numbers.
        All hold equally many tokens; only the last has a bound."""
        requests = Link(LINK_LATENCY, stored=False, depth=self.controller.elements_in_flight(int(port["stride"][0]), name))
        return (*(Link(LINK_LATENCY) for _ in range(count)), requests)

    def _asker(self, port: Array, inputs: Any, name: Name) -> tuple[Part, tuple[Link, ...]]:
        """Return a part that requests elements of an array through a port, and its links: of tokens and of request numbers."""
        links, requesters = self._links(port, 1, name), {} if port["lines"][0] else {"sends": address(port)}
        return Part(run_ask, port, inputs, links, helper=True, asks=True, requesters=requesters), links


def _writer(layout: NodeLayout, entry: int, ends: list[int], buffers: Mapping[str, int]) -> list[Part]:
    """Return the part of a writer with these buffers. It writes through the requester `entry` (0: none) with every element, and
    through the requesters `ends` at the end of a fiber. All are given by address."""
    closing = layout.array(np.array(ends, np.int64))
    state = layout.state(WRITE, **buffers, array=entry, ports=closing, closing=len(ends))
    (part,) = layout.part(run_write_remote, state, asks=True)
    return [replace(part, requesters=dict(zip(("sends", "positions"), [*([entry] if entry else []), *ends], strict=False)))]


def _gates(
    layout: NodeLayout, pieces: Sequence[Array], tokens: Link, requests: Sequence[Link], last: StreamKey, counts_firings: bool
) -> list[Part]:  # fmt: skip
    """Return parts in series, one for each requester of `pieces`, that let tokens through once an answer has come. With
    `counts_firings`, the firings of the last part count as the node's."""
    gates: list[Part] = []
    for k, (piece, asked) in enumerate(zip(pieces, requests, strict=True)):
        inner = k < len(pieces) - 1
        out = Link(LINK_LATENCY) if inner else last
        state, helper = layout.state(GATE, array=address(piece)), inner or not counts_firings
        gates.append(Part(run_gate, state, (tokens, asked), (out,), helper=helper, requesters={"answers": address(piece)}))
        if isinstance(out, Link):
            tokens = out
    return gates


def _fetcher(port: Array) -> list[Part]:
    """Return the part that fetches ahead through a requester, in a list, which is empty if the requester does not fetch ahead."""
    requesters = {"sends": address(port), "fetches": address(port), "answers": int(port["loads"][0])}
    return [Part(run_fetch, port, (), (), helper=True, asks=True, requesters=requesters)] if port["ahead"][0] else []
