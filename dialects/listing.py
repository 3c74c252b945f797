"""A list, for readers, of the definitions of a dialect: its types, attributes and operations, with their operands and parameters.

Everything is read from the declaration of the dialect. The comment above a definition is its description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from torch_mlir import ir

from fuseflow.dialects import declaration

_COMMENTED = re.compile(r"((?:^ *//.*\n)*)^ *irdl\.(?:type|attribute|operation) @(\w+)", re.MULTILINE)
_NAMES = {"operands": "names", "results": "names", "parameters": "names", "attributes": "attributeValueNames"}
_SIGILS = {"type": "!", "attribute": "#", "operation": ""}


@dataclass(frozen=True, slots=True)
class Member:
    """An operand, a result, an attribute or a parameter of a definition. `count` is `single`, `optional` or `variadic`."""

    name: str
    kind: str
    count: str = "single"

    def __str__(self) -> str:
        suffixes = {"single": "", "optional": ", or nothing", "variadic": ", any number"}
        return f"`{self.name}`: {self.kind}{suffixes[self.count]}"


@dataclass(frozen=True, slots=True)
class Definition:
    """A type, an attribute or an operation that a dialect defines. `category` is `type`, `attribute` or `operation`."""

    category: str
    name: str
    text: str
    operands: tuple[Member, ...] = ()
    results: tuple[Member, ...] = ()
    attributes: tuple[Member, ...] = ()
    parameters: tuple[Member, ...] = ()


def definitions(dialect: str) -> tuple[Definition, ...]:
    """Return the types, attributes and operations that a dialect defines, in the order of its declaration."""
    text = declaration(dialect).read_text(encoding="utf-8")
    comments = {name: " ".join(re.findall(r"// ?(.*)", comment)) for comment, name in _COMMENTED.findall(text)}
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        declarations = module.body.operations[0].operation.regions[0].blocks[0].operations
        sigils = {f"@{dialect}::@{_name(op)}": _SIGILS[_category(op)] for op in declarations}
        return tuple(_definition(op.operation, comments, sigils) for op in declarations)


def markdown(dialect: str) -> str:
    """Return the list of the definitions of a dialect as a part of a Markdown page."""
    lines: list[str] = []
    for entry in definitions(dialect):
        lines += [f"### `{_SIGILS[entry.category]}{dialect}.{entry.name}`", "", entry.text, ""]
        groups = {
            "parameters": entry.parameters,
            "operands": entry.operands,
            "results": entry.results,
            "attributes": entry.attributes,
        }
        told = [f"- {group}: {'; '.join(_together(members))}" for group, members in groups.items() if members]
        lines += [*told, ""] if told else []
    return "\n".join(lines)


def _together(members: tuple[Member, ...]) -> Iterator[str]:
    """Yield the members in words. Optional members with numbers in their names, which differ in nothing else, are told with the first."""
    for first, alike in groupby(members, key=lambda member: (member.name.rstrip("0123456789"), member.kind)):
        one, *others = alike
        numbered = [other for other in others if other.count == "optional" and other.name[-1].isdecimal()]
        if others and numbered == others:
            yield f"`{one.name}` to `{others[-1].name}`: {first[1]}, `{one.name}` at least"
        else:
            yield from map(str, (one, *others))


def _definition(op: ir.Operation, comments: Mapping[str, str], sigils: Mapping[str, str]) -> Definition:
    members: dict[str, tuple[Member, ...]] = dict.fromkeys(_NAMES, ())
    for inner in op.regions[0].blocks[0].operations:
        group = inner.operation.name.removeprefix("irdl.")
        if group in members:
            members[group] = tuple(_members(inner.operation, group, sigils))
    return Definition(_category(op), _name(op), comments[_name(op)], **members)


def _category(op: ir.Operation | ir.OpView) -> str:
    return str(op.operation.name).removeprefix("irdl.")


def _name(op: ir.Operation | ir.OpView) -> str:
    return str(ir.StringAttr(op.operation.attributes["sym_name"]).value)


def _members(op: ir.Operation, group: str, sigils: Mapping[str, str]) -> Iterator[Member]:
    names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes[_NAMES[group]])]
    counts = ["single"] * len(names)
    if group in ("operands", "results"):
        counts = re.findall(r"single|optional|variadic", str(op.attributes["variadicity"]).partition("[")[2])
    for name, count, value in zip(names, counts, op.operands, strict=True):
        yield Member(name, _constraint(value.owner.operation, sigils), count)


_WORDS = {
    "#builtin.string": "string",
    "#builtin.integer": "integer",
    "#builtin.float": "number",
    "#builtin.array": "list",
    "#builtin.dense_array": "list of numbers",
    "!builtin.tensor": "tensor type",
}


def _constraint(op: ir.Operation, sigils: Mapping[str, str]) -> str:
    """Return in words what a constraint accepts."""
    match op.name:
        case "irdl.is":
            return f"`{op.attributes['expected']}`"
        case "irdl.any":
            return "anything"
        case "irdl.any_of":
            return " or ".join(dict.fromkeys(_constraint(value.owner.operation, sigils) for value in op.operands))
        case "irdl.parametric":
            parameters = ", ".join(_parameter(value.owner.operation) for value in op.operands)
            return f"`{_reference(op.attributes['base_type'], sigils)}<{parameters}>`"
        case "irdl.base" if "base_name" in op.attributes:
            name = ir.StringAttr(op.attributes["base_name"]).value
            return _WORDS[name]
        case "irdl.base":
            return f"`{_reference(op.attributes['base_ref'], sigils)}`"
        case name:
            raise ValueError(f"no words for the constraint {name}")


def _parameter(op: ir.Operation) -> str:
    """Return the value of a parameter of a type, or a letter that stands for the same value wherever it occurs."""
    return str(op.attributes["expected"]) if op.name == "irdl.is" else "d"


def _reference(symbol: ir.Attribute, sigils: Mapping[str, str]) -> str:
    return sigils[str(symbol)] + str(symbol).replace("@", "").replace("::", ".")
