"""The form of the protobuf message of a primitive, for the writer and the reader (`proto_formats` has the table), and its streams, by the
paths of the fields that hold them.

A path names a field, or a choice (a `oneof`), which means its member for the kind of stream. A field of a nested message is
written after a dot. A repeated field holds all streams that the other paths leave, in order, or from the last to the first if the
path begins with `~`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from google.protobuf.message import Message

from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb

OPERATIONS: Mapping[str, Any] = pb.Operation.DESCRIPTOR.fields_by_name
FIRST_OWN = 210
"""The number of the first operation in `tortilla.proto` that the public schema does not have."""


@dataclass(frozen=True, slots=True)
class WireFormat:
    """The message of a primitive.

    `operation` names the message, `inputs` and `outputs` the paths of its streams. An attribute is in the field of its
    name, or of another name (`renamed`), if the message has that field. Those that are `extra` are said only if `beyond` says something.

    `beyond` says what readers of the public schema cannot do that a node does, as in "have no left join", and is "" if they can do all of
    it. What they would take for something else is said in another message, the `extension`, which they refuse. By default they can do what
    has a public message.

    `fill` fills in what the fields of the node do not say, and `complete` returns the fields of the node that the message does not say.
    """

    operation: str
    primitive: type[n.Primitive]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    beyond: Callable[[Any, Any], str] | None = None
    fill: Callable[[Any, Any, Any], None] = lambda writer, node, message: None
    complete: Callable[[Any, str, Any, tuple[n.Port, ...]], Mapping[str, Any]] = lambda reader, name, message, inputs: {}

    def beyond_public(self, writer: Any, node: n.Primitive) -> str:
        """Return, as text, the part of a node's work that readers of the public schema cannot do, or ""."""
        if self.beyond is not None:
            return self.beyond(writer, node)
        return f"have no {node.op}" if OPERATIONS[self.operation].number >= FIRST_OWN else ""

    @property
    def extension(self) -> str:
        """The name of the message for nodes that other readers would misunderstand in the message of this format."""
        extension = f"{self.operation}_ext"
        return extension if extension in OPERATIONS else self.operation

    def fill_attributes(self, node: n.Primitive, message: Any, beyond: bool) -> None:
        """Fill in the fields of a message with a node's attributes; `beyond`: other readers cannot do its work."""
        for attribute, name in self._fields(message):
            value = getattr(node, attribute.field)
            if value is None or (attribute.field in self.extra and not beyond):
                continue
            if attribute.type == "integers":
                getattr(message, name).extend(value)
            elif attribute.type == "slots":
                getattr(message, name).extend(pb.Operand(value=slot.value, constant=slot.constant) for slot in value)
            else:
                setattr(message, name, value)

    def attributes(self, message: Any) -> dict[str, Any]:
        """Return the attributes of a node that are fields of the message."""
        values: dict[str, Any] = {}
        for attribute, name in self._fields(message):
            value = getattr(message, name)
            if attribute.type == "integers":
                values[attribute.field] = tuple(value)
            elif attribute.type == "slots":
                values[attribute.field] = tuple(n.Operand(slot.value, slot.constant) for slot in value)
            elif not message.DESCRIPTOR.fields_by_name[name].has_presence or message.HasField(name):
                values[attribute.field] = value
        return values

    def _fields(self, message: Any) -> list[tuple[n.Attribute, str]]:
        """Return the attributes that have a field in the message, with the names of these fields."""
        named = [(attribute, self.renamed.get(attribute.field, attribute.field)) for attribute in n.ATTRIBUTES[self.primitive]]
        return [(attribute, name) for attribute, name in named if name in message.DESCRIPTOR.fields_by_name]


# Streams --------------------------------------------------------------------------------------------------------------------

StreamMessage: TypeAlias = Any
"""A `CrdStream`, `RefStream`, `ValStream` or `RepSigStream`."""

StreamKey: TypeAlias = tuple[str, int]
"""The kind and the id of a stream of a message. Readers number the streams of each kind separately."""

KINDS: dict[type, str] = {pb.CrdStream: "crd", pb.RefStream: "ref", pb.ValStream: "val", pb.RepSigStream: "signal"}


def stream_key(stream: StreamMessage) -> StreamKey:
    return KINDS[type(stream)], stream.id.id


def member(message: Any, name: str, kind: n.Kind | None = None) -> Any:
    """Return the field `name` of a message. If that is a choice, return its member for a `kind` of stream, else the member that
    is set, else the first member."""
    choice = message.DESCRIPTOR.oneofs_by_name.get(name)
    if choice is None:
        return getattr(message, name)
    fitting = [f.name for f in choice.fields if kind is not None and f.message_type.name.startswith(kind.capitalize())]
    return getattr(message, fitting[0] if fitting else message.WhichOneof(name) or choice.fields[0].name)


def stored_streams(message: Any, paths: Sequence[str]) -> Iterator[StreamMessage]:
    """Yield the streams of a message at these paths, in order."""
    for path in paths:
        found = _at(message, path)
        streams = [found] if isinstance(found, Message) else found[::-1] if path.startswith("~") else found
        yield from map(_stream, streams)


def new_streams(message: Any, paths: Sequence[str], kinds: Sequence[n.Kind]) -> Iterator[StreamMessage]:
    """Yield new streams of a message at these paths, to be filled in, for each of `kinds` while there are paths."""
    left = list(kinds)
    for paths_left, path in zip(range(len(paths) - 1, -1, -1), paths, strict=True):
        found = _at(message, path, *left[:1])
        streams = [found] if isinstance(found, Message) else [found.add() for _ in range(len(left) - paths_left)]
        for stream in reversed(streams) if path.startswith("~") else streams:
            yield _stream(stream, left.pop(0))


def _at(message: Any, path: str, kind: n.Kind | None = None) -> Any:
    for name in path.removeprefix("~").split("."):
        message = member(message, name, kind)
    return message


def _stream(message: Any, kind: n.Kind | None = None) -> StreamMessage:
    """Return a message that is a stream unchanged, or the stream that it holds in a choice."""
    return message if type(message) in KINDS else member(message, "stream", kind)
