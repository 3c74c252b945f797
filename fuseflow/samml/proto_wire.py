"""The table of primitives whose protobuf message says field by field what the node says, for the writer and the reader.

The other primitives have messages of the public schema, which group streams in ways of their own: those are in `proto_write` and
`proto_read`. A primitive that neither knows travels as a message `Primitive`, its attributes as the text form writes them. So a new
primitive needs nothing in this format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb


@dataclass(frozen=True, slots=True)
class WireFormat:
    """The message `operation` of a primitive.

    `inputs` and `outputs` name the fields of its streams, in order. A repeated field holds all streams that the others leave. Attributes
    are in fields of their own names. Other readers know a `public` message.
    """

    operation: str
    primitive: type[n.Primitive]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    public: bool = False


WIRE_FORMATS: tuple[WireFormat, ...] = (
    WireFormat("root", n.Root, (), ("output_ref",), public=True),
    WireFormat("range", n.Range, ("input_ref",), ("output_crd",)),
    WireFormat("align", n.Align, ("old_crd", "new_crd", "input"), ("output",)),
    WireFormat("permute", n.Permute, ("input_crds", "input_val"), ("output_crds", "output_val")),
    WireFormat("select", n.Select, ("input_crds", "input_val"), ("output_crds", "output_val")),
    WireFormat("flatten", n.Flatten, ("outer_crd", "inner_crd"), ("output_crd",)),
    WireFormat("split", n.SplitLevel, ("input_crd",), ("outer_crd", "inner_crd")),
    WireFormat("val_write", n.WriteValues, ("input_val",), (), public=True),
)
BY_PRIMITIVE: Mapping[type[n.Node], WireFormat] = {wire.primitive: wire for wire in WIRE_FORMATS}
BY_OPERATION: Mapping[str, WireFormat] = {wire.operation: wire for wire in WIRE_FORMATS}


def new_streams(message: Any, names: Sequence[str], kinds: Sequence[n.Kind]) -> Iterator[Any]:
    """Yield the stream messages to fill in for streams of these kinds, in order."""
    left = list(kinds)
    for k, name in enumerate(names):
        field = getattr(message, name)
        repeated = message.DESCRIPTOR.fields_by_name[name].is_repeated
        for _ in range(len(left) - (len(names) - k - 1) if repeated else 1):
            kind = left.pop(0)
            stream = field.add() if repeated else field
            yield getattr(stream, kind) if isinstance(stream, pb.AnyStream) else stream


def stored_streams(message: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield the stream messages that these fields hold, in order."""
    for name in names:
        field = getattr(message, name)
        for stream in field if message.DESCRIPTOR.fields_by_name[name].is_repeated else (field,):
            yield getattr(stream, stream.WhichOneof("stream") or "crd") if isinstance(stream, pb.AnyStream) else stream
