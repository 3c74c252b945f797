"""The writer of the protobuf message of a graph: its operations, their streams, and warnings about what public readers cannot
do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.node_check import StreamFacts
from fuseflow.samml.proto_format import KINDS, StreamMessage, WireFormat, new_streams
from fuseflow.samml.public_streams import PublicStreams

CHANNEL_SIZE = 1024
"""The FIFO depth in published graphs. fuseflow's reader ignores it, because the machine chooses depths."""

PLACED = (
    ("like", "has the levels of `{}`: other readers take it for a tensor with levels of its own"),
    ("buffer", "has reuse buffers: other readers read every line of it from memory"),
    ("preload", "is preloaded: other readers read it from memory wherever they need it"),
    ("scratchpad", "lies in the scratchpad: other readers take it for a tensor in memory"),
    ("resident", "is resident: other readers take it for a tensor in memory"),
)
"""What other readers do not know of a tensor."""


class ProtoWriter:
    """A writer that fills in the message of each node in the format that `format_of` returns, and then numbers the streams. A stream with
    several readers becomes an explicit broadcast, one without readers id 0. The graph is verified: `facts` has what is known of its
    streams.
    """

    def __init__(
        self,
        graph: n.Graph,
        format_of: Callable[[ProtoWriter, n.Primitive], WireFormat | None],
        facts: Mapping[n.Port, StreamFacts],
    ) -> None:
        self.graph, self.format_of = graph, format_of
        self.declared = graph.declared
        self.facts = facts
        self.public = PublicStreams(graph, self.facts)
        self.by_name = graph.by_name
        self.operations: dict[str, list[pb.Operation]] = {}
        self.makers: dict[n.Port, StreamMessage] = {}
        self.reads: dict[n.Port, list[StreamMessage]] = {}
        self.warnings: list[str] = []

    def run(self) -> pb.ComalGraph:
        for node in self.graph.nodes:
            self.operations[node.name] = []
            if wire := self.format_of(self, node):
                self._write(node, wire)
        self._number()
        message = pb.ComalGraph(name=self.graph.name, channel_size=CHANNEL_SIZE)
        message.graph.name = self.graph.name
        operations = (op for node in self.graph.nodes for op in self.operations[node.name])
        for k, operation in enumerate(operations, 1):
            operation.id = k
            message.graph.operators.append(operation)
        self._declare(message)
        return message

    def _write(self, node: n.Primitive, wire: WireFormat) -> None:
        beyond = wire.beyond_public(self, node)
        if beyond:
            self.warn(node.name, f"other readers {beyond}")
        operation = pb.Operation(name=node.name)
        self.operations[node.name].append(operation)
        message = getattr(operation, wire.extension if beyond else wire.operation)
        wire.fill_attributes(node, message, bool(beyond))
        outputs = node.ports
        if "blocked" in message.DESCRIPTOR.fields_by_name:
            self._block(node, message, outputs[-1])
        for port, stream in zip(
            node.inputs, new_streams(message, wire.inputs, [self.kind(p) for p in node.inputs]), strict=False
        ):
            self.reading(port, stream)
        for k, stream in enumerate(new_streams(message, wire.outputs, [self.kind(p) for p in outputs])):
            self.making(node, k, stream)
        wire.fill(self, node, message)

    def _block(self, node: n.Node, message: Any, stream: n.Port) -> None:
        """Set in a message whether its stream carries tiles, and of which size. Other readers know square tiles only."""
        tile = self.facts[stream].type.tile
        message.blocked = bool(tile)
        if tile and tile[0] == tile[1]:
            message.stream_shape = tile[0]
        elif tile:
            self.warn(node.name, f"other readers have square tiles only, not {n.show_tile(tile)}")

    def _declare(self, message: pb.ComalGraph) -> None:
        for t in self.graph.tensors:
            message.tensors.add(
                name=t.standalone().name,
                shape=t.shape,
                levels=t.format.words,
                order=t.format.order,
                dtype=t.dtype,
                fill=t.fill,
                tile=t.tile,
                resident=t.resident,
                buffer=t.buffer,
                preload=t.preload,
                scratchpad=t.scratchpad,
                like=t.like,
            )
            for placement, warning in PLACED:
                if value := getattr(t, placement):
                    self.warn(t.name, f"it {warning.format(value)}")
        message.outputs.extend(self.graph.outputs)
        for edge in self.graph.fiber_fifos:
            message.fiber_fifos.add(node=edge.node, input=edge.input)
        for edge, depth in self.graph.depths:
            message.depths.add(edge=pb.Edge(node=edge.node, input=edge.input), depth=depth)
            self.warn(edge.node, f"the FIFO depth {depth} of input {edge.input}: other readers give every edge the same")
        for edge, hops in self.graph.hops:
            message.hops.add(edge=pb.Edge(node=edge.node, input=edge.input), count=hops.count, slots=hops.slots)
            self.warn(edge.node, f"the {hops.count} hops of input {edge.input}: other readers know none")
        for node, turn in self.graph.turns:
            message.turns.add(node=node, number=turn.number, of=turn.of)
            self.warn(node, f"turn {turn.number} of {turn.of} at a port: other readers know none")
        for node, inside in self.graph.node_hops:
            message.node_hops.add(node=node, inner=inside.inner, loop=inside.loop, port=inside.port)
            self.warn(node, "the hops between its tiles: other readers know none")

    def _number(self) -> None:
        """Number each stream, and each reader of a stream with several readers, which gets a broadcast."""
        last = 0
        for port, maker in self.makers.items():
            readers = self.reads.get(port, [])
            if not readers:
                maker.id.id = 0
                continue
            last += 1
            maker.id.id = last
            if len(readers) == 1:
                readers[0].id.id = last
                continue
            for k, reader in enumerate(readers, last + 1):
                reader.id.id = k
            self.operations[port.node].append(_broadcast(maker, readers))
            last += len(readers)

    # What formats use -----------------------------------------------------------------------------------------------------------

    def reading(self, port: n.Port, stream: StreamMessage) -> None:
        stream.name = n.stream_name(self.by_name[port.node], port.output)
        self.reads.setdefault(port, []).append(stream)

    def making(self, node: n.Node, output: int, stream: StreamMessage) -> None:
        stream.name = n.stream_name(node, output)
        self.makers[n.Port(node.name, output)] = stream

    def kind(self, port: n.Port) -> n.Kind:
        return self.facts[port].type.kind

    def warn(self, name: str, warning: str) -> None:
        self.warnings.append(f"`{name}`: {warning}")


def _broadcast(maker: StreamMessage, readers: list[StreamMessage]) -> Any:
    operation = pb.Operation(name="broadcast")
    bundle = getattr(operation.broadcast, KINDS[type(maker)])
    bundle.input.CopyFrom(maker)
    for reader in readers:
        bundle.outputs.add(name=reader.name).id.id = reader.id.id
    return operation
