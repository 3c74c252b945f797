"""What a dialect declares, as a list for readers: its types, attributes and operations, with what each of their parts may be.

Everything is read from the declaration. The comment above an entry is its description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch_mlir import ir

from fuseflow.dialects import declaration

_COMMENTED = re.compile(r"((?:^ *//.*\n)*)^ *irdl\.(?:type|attribute|operation) @(\w+)", re.MULTILINE)
_NAMES = {"operands": "names", "results": "names", "parameters": "names", "attributes": "attributeValueNames"}


_SIGILS = {"type": "!", "attribute": "#", "operation": ""}


@dataclass(frozen=True, slots=True)
class Part:
    """An operand, a result, an attribute or a parameter. `count` is `single`, `optional` or `variadic`."""

    name: str
    kind: str
    count: str = "single"

    def __str__(self) -> str:
        many = {"single": "", "optional": ", or nothing", "variadic": ", any number"}
        return f"`{self.name}`: {self.kind}{many[self.count]}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A type, an attribute or an operation. `what` says which."""

    what: str
    name: str
    text: str
    operands: tuple[Part, ...] = ()
    results: tuple[Part, ...] = ()
    attributes: tuple[Part, ...] = ()
    parameters: tuple[Part, ...] = ()


def entries(dialect: str) -> tuple[Entry, ...]:
    """What a dialect declares, in order."""
    text = declaration(dialect).read_text(encoding="utf-8")
    comments = {name: " ".join(re.findall(r"// ?(.*)", comment)) for comment, name in _COMMENTED.findall(text)}
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        declared = module.body.operations[0].operation.regions[0].blocks[0].operations
        sigils = {f"@{dialect}::@{_name(op)}": _SIGILS[_what(op)] for op in declared}
        return tuple(_entry(op.operation, comments, sigils) for op in declared)


def markdown(dialect: str) -> str:
    """The list as a part of a page."""
    lines: list[str] = []
    for entry in entries(dialect):
        lines += [f"#### `{_SIGILS[entry.what]}{dialect}.{entry.name}`", "", entry.text, ""]
        groups = (("parameter", entry.parameters), ("operand", entry.operands), ("result", entry.results))
        for what, parts in (*groups, ("attribute", entry.attributes)):
            lines += [f"- {what} {part}" for part in parts]
        lines += [""] if any(parts for _, parts in groups) or entry.attributes else []
    return "\n".join(lines)


def _entry(op: ir.Operation, comments: Mapping[str, str], sigils: Mapping[str, str]) -> Entry:
    parts: dict[str, tuple[Part, ...]] = dict.fromkeys(_NAMES, ())
    for inner in op.regions[0].blocks[0].operations:
        what = inner.operation.name.removeprefix("irdl.")
        if what in parts:
            parts[what] = tuple(_parts(inner.operation, what, sigils))
    return Entry(_what(op), _name(op), comments[_name(op)], **parts)


def _what(op: ir.Operation | ir.OpView) -> str:
    return str(op.operation.name).removeprefix("irdl.")


def _name(op: ir.Operation | ir.OpView) -> str:
    return str(ir.StringAttr(op.operation.attributes["sym_name"]).value)


def _parts(op: ir.Operation, what: str, sigils: Mapping[str, str]) -> Iterator[Part]:
    names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes[_NAMES[what]])]
    counts = ["single"] * len(names)
    if what in ("operands", "results"):
        counts = re.findall(r"single|optional|variadic", str(op.attributes["variadicity"]).partition("[")[2])
    for name, count, value in zip(names, counts, op.operands, strict=True):
        yield Part(name, _constraint(value.owner.operation, sigils), count)


_WORDS = {
    "#builtin.string": "string",
    "#builtin.integer": "integer",
    "#builtin.float": "number",
    "#builtin.array": "list",
    "#builtin.dense_array": "list of numbers",
    "!builtin.tensor": "tensor type",
}


def _constraint(op: ir.Operation, sigils: Mapping[str, str]) -> str:
    """What a constraint lets pass, in words."""
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
    """A parameter of a type: its value, or one letter for what is the same wherever the letter stands."""
    return str(op.attributes["expected"]) if op.name == "irdl.is" else "d"


def _reference(symbol: ir.Attribute, sigils: Mapping[str, str]) -> str:
    return sigils[str(symbol)] + str(symbol).replace("@", "").replace("::", ".")
