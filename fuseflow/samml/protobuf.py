"""A graph in the SAMML wire format (schema: `tortilla.proto`), and back.

Everything of the graph is in the message: `from_proto(to_proto(graph)) == graph`, and equal graphs give equal bytes. Graphs that
other tools wrote load too, as far as fuseflow executes their primitives; `compatibility` names what other tools will miss in a
graph of fuseflow.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from fuseflow.errors import GraphError, TensorError
from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.node_check import StreamFacts
from fuseflow.samml.proto_foreign import ForeignGraph
from fuseflow.samml.proto_messages import message_format, node_format
from fuseflow.samml.proto_reader import ProtoReader, declared_graph
from fuseflow.samml.proto_writer import ProtoWriter
from fuseflow.samml.verify import verify


def to_proto(graph: n.Graph) -> bytes:
    """Return the graph as a binary `ComalGraph`. Raises `GraphError` if the graph does not verify."""
    data: bytes = _message(graph).run().SerializeToString(deterministic=True)
    return data


def to_text(graph: n.Graph) -> str:
    """Return the graph as a `ComalGraph` in text form. Raises `GraphError` if the graph does not verify."""
    return text_format.MessageToString(_message(graph).run())


def compatibility(graph: n.Graph, facts: Mapping[n.Port, StreamFacts] | None = None) -> tuple[str, ...]:
    """Return a sentence for each gap that readers of the public schema will have with a graph, in the order of the nodes. The
    graph is verified first, unless the `facts` of its streams are given. Raises `GraphError` if it does not verify.
    """
    writer = ProtoWriter(graph, node_format, verify(graph) if facts is None else facts)
    writer.run()
    return tuple(writer.warnings)


def from_proto(data: bytes, sizes: Mapping[str, int] | None = None) -> n.Graph:
    """Return the graph in a binary `ComalGraph`, written by fuseflow or by another tool.

    Graphs of other tools declare no tensors: see `proto_foreign` for the declarations made then. `sizes` has the sizes of their
    indices. Raises `GraphError`, naming the operation, if fuseflow does not execute an operation, or if the graph does not
    verify.
    """
    return _graph(_parsed(data), sizes or {})


def from_text(text: str, sizes: Mapping[str, int] | None = None) -> n.Graph:
    """Return the graph in the text form of a `ComalGraph`; see `from_proto` for `sizes` and errors."""
    return _graph(_parsed(text), sizes or {})


def stored_indices(data: bytes | str) -> dict[str, tuple[str, ...]]:
    """Return the indices of the storage levels, outermost first, of every tensor of another tool's graph, in binary or text form.

    An index that the graph does not name is "". The result is empty for a graph that declares its tensors.
    """
    message = _parsed(data)
    if message.tensors:
        return {}
    reader = ProtoReader(message, message_format)
    foreign = ForeignGraph(declared_graph(reader.name, message, reader.run()), reader.messages, {})
    foreign.complete()
    return foreign.indices()


def _parsed(data: bytes | str) -> pb.ComalGraph:
    try:
        return pb.ComalGraph.FromString(data) if isinstance(data, bytes) else text_format.Parse(data, pb.ComalGraph())
    except (DecodeError, text_format.ParseError) as error:
        raise GraphError(f"not a `ComalGraph` message: {error}") from None


def _message(graph: n.Graph) -> ProtoWriter:
    return ProtoWriter(graph, node_format, verify(graph))


def _graph(message: pb.ComalGraph, sizes: Mapping[str, int]) -> n.Graph:
    reader = ProtoReader(message, message_format)
    try:
        graph = declared_graph(reader.name, message, reader.run())
        if not message.tensors:
            graph = ForeignGraph(graph, reader.messages, sizes).complete()
    except TensorError as error:
        raise GraphError(f"graph `{reader.name}`: {error.message}", hint=error.hint) from None
    verify(graph)
    return graph
