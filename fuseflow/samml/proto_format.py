"""The form of the protobuf message of a primitive, for the writer and the reader (`proto_formats` has the table)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb

OPERATIONS: Mapping[str, Any] = pb.Operation.DESCRIPTOR.fields_by_name
FIRST_OWN = 210
"""The number of the first operation in `tortilla.proto` that the public schema does not have."""


@dataclass(frozen=True, slots=True)
class WireFormat:
    """The message of a primitive.

    `operation` names the message, `inputs` and `outputs` the paths of its streams (`proto_streams`). An attribute is in the field of its
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
        """Fill in the fields of the message that hold attributes of the node. `beyond` says whether other readers cannot do its
        work."""
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
