"""The reader that makes nodes of a graph from a protobuf message of fuseflow or of another tool (`protobuf` has the API).

Broadcasts become fan-out, and repeat signals become the streams from which they are made; operations may be in any order. A
public `Locate` also passes its inputs on. Where these outputs are read, a join with one side replaces them, which takes as long.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Any, NoReturn

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.proto_format import StreamKey, StreamMessage, WireFormat, member, stored_streams, stream_key
from fuseflow.samml.public_streams import THROUGH
from fuseflow.tensors import Format

FOLDED_OPERATIONS = ("broadcast", "repeatsig")
UNSUPPORTED = ("coord_hold", "coord_mask", "gen_ref", "concat", "func")


class ProtoReader:
    """A reader that makes nodes from operations. `messages` holds the operations by the names of their nodes. `format_of` returns the
    format of a message, given the public name of its operation."""

    def __init__(self, message: pb.ComalGraph, format_of: Callable[[str, Any], WireFormat]) -> None:
        self.format_of = format_of
        self.name = message.name or message.graph.name or "graph"
        self.operations = list(message.graph.operators)
        self.declares = bool(message.tensors)
        self.ports_by_stream: dict[StreamKey, n.Port] = {}
        self.aliases: dict[StreamKey, StreamKey] = {}  # a stream that is another one: broadcasts, repeat signals
        self.by_id: dict[int, list[StreamKey]] = {}
        self.root: n.Root | None = None
        self.messages: dict[str, Any] = {}
        self.formats: dict[str, WireFormat] = {}

    def run(self) -> tuple[n.Primitive, ...]:
        """Return the nodes, inputs first, otherwise in the order of the operations."""
        for operation, name in zip(self.operations, self._names(), strict=True):
            self._announce(operation, name)
        nodes = [node for name in self.messages for node in self._read(name)]
        return self._sorted(_checked(self.name, [self.root, *nodes] if self.root else nodes))

    def _read(self, name: str) -> Iterator[n.Primitive]:
        """Yield the nodes of an operation, given by name: one, or a locate with a join that passes its inputs on."""
        wire, message = self.formats[name], self.messages[name]
        if "blocked" in message.DESCRIPTOR.fields_by_name:
            self._require_sizes(name, message)
        root = getattr(message, "root", False)
        streams = stored_streams(message, wire.inputs)
        inputs = tuple(self._root() if root and not stream.id.id else self.port(name, stream) for stream in streams)
        yield wire.primitive(name, **{"inputs": inputs, **wire.attributes(message), **wire.complete(self, name, message, inputs)})
        if wire.primitive is n.Locate and (message.output_ref2.id.id or message.output_crd.id.id):
            yield n.Join(name + THROUGH, (inputs[0], self.port(name, message.input_ref)), "intersect", (1,))

    def _root(self) -> n.Port:
        """Return the port of an implicit root, which feeds unconnected inputs that are marked as reading the root."""
        self.root = self.root or n.Root("implicit_root", ())
        return n.Port(self.root.name)

    def _require_sizes(self, name: str, message: Any) -> None:
        """Refuse an operation whose elements have an unknown shape: tiles without a declared size, or vectors of another tool."""
        if self.declares or message.stream_shape == 1:
            return
        if message.blocked and not message.stream_shape:
            self.refuse(name, "is `blocked`, and `stream_shape` does not say how large the tiles are")
        if message.stream_shape and not message.blocked:
            self.refuse(name, f"streams of vectors of {message.stream_shape} are not executed; tiles are `blocked`")

    def _names(self) -> list[str]:
        """Return each operation's name: that of the message, with the id appended if it is not unique. Folded ones make no node."""
        names = [re.sub(r"[\s()\[\],;#=]", "_", op.name or op.WhichOneof("op") or "operation") for op in self.operations]
        nodes = [k for k, op in enumerate(self.operations) if op.WhichOneof("op") not in FOLDED_OPERATIONS]
        shared = Counter(names[k] for k in nodes)
        used = {name for name, count in shared.items() if count == 1}
        for k in nodes:
            if shared[names[k]] > 1:
                names[k] += f"_{self.operations[k].id}"
                while names[k] in used:
                    names[k] += "'"
                used.add(names[k])
        return names

    def _announce(self, operation: pb.Operation, name: str) -> None:
        """Record the streams and the message of an operation. Raises `GraphError` for an unknown or unsupported one."""
        kind = operation.WhichOneof("op")
        if kind is None:
            raise GraphError(f"graph `{self.name}`, operation `{name}`: not an operation of the schema")
        if kind in UNSUPPORTED:
            raise GraphError(f"graph `{self.name}`, operation `{name}`: {kind} is not executed", hint=_INSTEAD.get(kind, ""))
        message = getattr(operation, kind)
        if kind == "broadcast":
            connected = member(message, "conn")
            for stream in connected.outputs:
                self._alias(stream, connected.input)
        elif kind == "repeatsig":
            self._alias(message.output_rep_sig, message.input_crd)
        else:
            # `joiner_ext` is a `joiner` that other readers would take for another function.
            self.formats[name] = self.format_of(kind.removesuffix("_ext"), message)
            for output, stream in enumerate(stored_streams(message, self.formats[name].outputs)):
                self._make(stream, name, output)
            if kind == "locate":
                self._make(message.output_crd, name + THROUGH, 0)
                self._make(message.output_ref2, name + THROUGH, 1)
            self.messages[name] = message

    def _alias(self, stream: StreamMessage, source: StreamMessage) -> None:
        self.aliases[stream_key(stream)] = stream_key(source)
        self.by_id.setdefault(stream.id.id, []).append(stream_key(stream))

    def _make(self, stream: StreamMessage, name: str, output: int) -> None:
        key = stream_key(stream)
        if key[1] == 0:
            return
        if key in self.ports_by_stream:
            raise GraphError(f"graph `{self.name}`: `{self.ports_by_stream[key].node}` and `{name}` both make stream {key[1]}")
        self.ports_by_stream[key] = n.Port(name, output)
        self.by_id.setdefault(key[1], []).append(key)

    def _sorted(self, nodes: Sequence[n.Primitive]) -> tuple[n.Primitive, ...]:
        by_name = {node.name: node for node in nodes}
        position = {name: k for k, name in enumerate(by_name)}
        sorter = TopologicalSorter({node.name: [port.node for port in node.inputs] for node in nodes})
        with suppress(CycleError):  # the nodes before a circle are sorted all the same
            sorter.prepare()
        names, ordered = list(by_name), list[n.Primitive]()
        ready = sorted(position[name] for name in sorter.get_ready())
        while ready:
            name = names[heappop(ready)]
            ordered.append(by_name[name])
            sorter.done(name)
            for reader in sorter.get_ready():
                heappush(ready, position[reader])
        if len(ordered) < len(nodes):
            self._refuse_circles(nodes, position)
        return tuple(ordered)

    def _refuse_circles(self, nodes: Sequence[n.Primitive], position: Mapping[str, int]) -> NoReturn:
        import networkx as nx  # takes long to load, and only a graph that is refused needs it

        reads: nx.DiGraph[str] = nx.DiGraph((port.node, node.name) for node in nodes for port in node.inputs)
        circles = [c for c in nx.strongly_connected_components(reads) if len(c) > 1 or reads.has_edge(*c, *c)]
        names = ", ".join(f"`{name}`" for name in sorted(set().union(*circles), key=position.__getitem__))
        raise GraphError(f"graph `{self.name}`: streams run in a circle through {names}")

    # What formats use -----------------------------------------------------------------------------------------------------------

    def port(self, name: str, stream: StreamMessage) -> n.Port:
        """Return the port that makes a stream, which the operation `name` reads. A stream of another kind is taken where none of
        the right kind has the id."""
        key = stream_key(stream)
        for _ in range(len(self.aliases) + 2):
            if key not in self.aliases and key not in self.ports_by_stream:
                others = self.by_id.get(key[1], [])
                if key[1] == 0 or len(others) != 1:
                    self.refuse(name, f"reads stream {key[1]}, which nothing makes" if key[1] else "an input is not connected")
                key = others[0]
            if key in self.ports_by_stream:
                return self.ports_by_stream[key]
            key = self.aliases[key]
        self.refuse(name, f"stream {key[1]} is a broadcast of itself")

    def refuse(self, name: str, why: str) -> NoReturn:
        raise GraphError(f"graph `{self.name}`, operation `{name}`: {why}")


def _checked(graph: str, nodes: list[n.Primitive]) -> list[n.Primitive]:
    """Return the nodes. Raises `GraphError` if one reads an output that another does not have, as where a `signal` is wrong."""
    output_counts = {node.name: len(node.port_names()) for node in nodes}
    for node in nodes:
        for port in node.inputs:
            if not 0 <= port.output < output_counts.get(port.node, 0):
                raise GraphError(
                    f"graph `{graph}`, operation `{node.name}`: reads output {port.output} of `{port.node}`, which has none"
                )
    return nodes


def declared_graph(name: str, message: pb.ComalGraph, nodes: tuple[n.Primitive, ...]) -> n.Graph:
    """Return the graph called `name` of `nodes`, with the declarations in the extension fields of a message."""
    return n.Graph(
        name,
        tuple(map(_declared_tensor, message.tensors)),
        nodes,
        tuple(message.outputs),
        tuple(n.Edge(edge.node, edge.input) for edge in message.fiber_fifos),
        tuple((n.Edge(d.edge.node, d.edge.input), d.depth) for d in message.depths),
        tuple((n.Edge(h.edge.node, h.edge.input), n.Hops(h.count, h.slots)) for h in message.hops),
        tuple((t.node, n.Turn(t.number, t.of)) for t in message.turns),
        tuple((h.node, n.NodeHops(h.inner, h.loop, h.port)) for h in message.node_hops),
    )


def _declared_tensor(t: pb.Tensor) -> n.TensorDecl:
    format = Format.of(*t.levels, order=tuple(t.order))
    decl = n.TensorDecl(t.name, tuple(t.shape), format, t.dtype, t.fill, tuple(t.tile))
    placed = replace(decl, resident=t.resident, buffer=t.buffer, preload=t.preload, scratchpad=n.transfer(t.scratchpad))
    return placed.with_structure_of(t.like)


_INSTEAD = {"func": "name the operators that the intrinsic stands for"}
