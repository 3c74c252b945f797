"""The streams of an operation of a protobuf message, by the paths of the fields that hold them.

A path names a field, or a choice (a `oneof`), which means its member for the kind of stream. A field of a nested message is
written after a dot. A repeated field holds all streams that the other paths leave, in order, or from the last to the first if the
path begins with `~`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from google.protobuf.message import Message

from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.declarations import Kind

StreamMessage: TypeAlias = Any
"""A `CrdStream`, `RefStream`, `ValStream` or `RepSigStream`."""

StreamKey: TypeAlias = tuple[str, int]
"""The kind and the id of a stream of a message. Readers number the streams of each kind separately."""

KINDS: dict[type, str] = {pb.CrdStream: "crd", pb.RefStream: "ref", pb.ValStream: "val", pb.RepSigStream: "signal"}


def stream_key(stream: StreamMessage) -> StreamKey:
    return KINDS[type(stream)], stream.id.id


def member(message: Any, name: str, kind: Kind | None = None) -> Any:
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


def new_streams(message: Any, paths: Sequence[str], kinds: Sequence[Kind]) -> Iterator[StreamMessage]:
    """Yield new streams of a message at these paths, to be filled in, one for each of `kinds` in order, as far as there are
    paths."""
    left = list(kinds)
    for paths_left, path in zip(range(len(paths) - 1, -1, -1), paths, strict=True):
        found = _at(message, path, *left[:1])
        streams = [found] if isinstance(found, Message) else [found.add() for _ in range(len(left) - paths_left)]
        for stream in reversed(streams) if path.startswith("~") else streams:
            yield _stream(stream, left.pop(0))


def _at(message: Any, path: str, kind: Kind | None = None) -> Any:
    for name in path.removeprefix("~").split("."):
        message = member(message, name, kind)
    return message


def _stream(message: Any, kind: Kind | None = None) -> StreamMessage:
    """Return a message that is a stream unchanged, or the stream that it holds in a choice."""
    return message if type(message) in KINDS else member(message, "stream", kind)
