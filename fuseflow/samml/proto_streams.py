"""The streams of an operation of a protobuf message: what it makes, and which member of a choice is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.proto_wire import BY_OPERATION, stored_streams
from fuseflow.samml.proto_writer import StreamMessage

KINDS: dict[type, str] = {pb.CrdStream: "crd", pb.RefStream: "ref", pb.ValStream: "val", pb.RepSigStream: "signal"}

StreamKey: TypeAlias = tuple[str, int]
"""The kind and the id of a stream of a message. Readers number the streams of each kind separately."""


def public_operation(kind: str) -> str:
    """Return the public name of an operation: `joiner_ext` is a `joiner` that other readers would take for another function."""
    return kind.removesuffix("_ext")


def stream_key(stream: StreamMessage) -> StreamKey:
    return KINDS[type(stream)], stream.id.id


def chosen(message: Any, group: str) -> Any:
    """Return the member of a oneof that is set, else its first."""
    descriptor = message.DESCRIPTOR.oneofs_by_name[group]
    return getattr(message, message.WhichOneof(group) or descriptor.fields[0].name)


def bundle(message: Any) -> Any:
    """The streams of one kind that a broadcast, fork or join connects."""
    return getattr(message, message.WhichOneof("conn") or "crd")


def output_streams(kind: str, message: Any) -> Iterable[StreamMessage]:
    """The streams that an operation makes."""
    if kind == "primitive":
        return stored_streams(message, ("outputs",))
    if wire := BY_OPERATION.get(kind):
        return stored_streams(message, wire.outputs)
    return OUTPUTS[kind](message)


OUTPUTS: dict[str, Callable[[Any], list[StreamMessage]]] = {
    "fiber_lookup": lambda m: [m.output_crd, m.output_ref],
    "locate": lambda m: [m.output_ref1],
    "joiner": lambda m: [m.output_crd, *(chosen(payload, "stream") for payload in m.output_refs)],
    "repeat": lambda m: [chosen(m, "output_ref")],
    "array": lambda m: [m.output_val],
    "alu": lambda m: [m.vals.output],
    "reduce": lambda m: [m.output_val],
    "spacc": lambda m: [*reversed(m.output_outer_crds), m.output_inner_crd, m.output_val],
    "coord_drop": lambda m: [m.output_outer_crd, m.output_inner_crd],
    "drop": lambda m: [*m.output_crds, chosen(m.output, "stream")],
    "fork": lambda m: list(bundle(m).outputs),
    "join": lambda m: [bundle(m).output],
    "fiber_write": lambda m: [],
}
