"""Write what stands about the dialects in files from what declares it: `python tools/dialects.py`.

The operations of primitives in `dialects/samml.irdl.mlir` are made from their classes, and then the lists of operations in
docs/reference/dialects.md from the declarations of all dialects.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args, get_type_hints

from fuseflow.dialects import DIALECTS, declaration
from fuseflow.dialects.listing import markdown
from fuseflow.samml import nodes as n
from fuseflow.samml.mlir import MAX_LEVELS
from fuseflow.samml.node import AttributeType
from fuseflow.samml.stream_tensor_types import StreamPattern, stream_patterns

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "dialects.md"
BEGIN = "  // The operations of primitives: `python tools/dialects.py` writes them from the classes in fuseflow/samml.\n"
NOTES: Mapping[type[n.Node], str] = {
    n.Join: "Operands are the coordinates of every side, then the references, then the values that the sides carry. `payloads` says what "
    'each side carries, in order: `[["ref"], ["ref", "val"]]`. Results are grouped in the same way.',
    n.Alu: "For each of its operands, `constants` says whether it is a constant or the next stream, and `values` is the constant, or the "
    "implicit value of the stream.",
    n.Drop: "A `value` that is `unit` is None.",
}
"""What the operation of a primitive says in another way than the class, behind its first paragraph."""
BASES: Mapping[AttributeType, str] = {
    "tensor": "string", "values": "string", "word": "string", "level": "integer", "integer": "integer", "integers": "dense_array",
    "number": "float",
}  # fmt: skip
"""The builtin MLIR attribute for each type of field that is one attribute of one type."""


def with_operations(declaration: str) -> str:
    """Return the declaration of the dialect `samml` with the operations of primitives as their classes are now."""
    operations = "\n".join("".join(f"{line}\n" for line in operation(kind)) for kind in n.NODE_TYPES)
    return f"{declaration.partition(BEGIN)[0]}{BEGIN}\n{operations}}}\n"


def operation(kind: type[n.Node]) -> Iterator[str]:
    """Yield the lines that declare the operation of a primitive."""
    text = inspect.getdoc(kind) or ""
    summary, _, _ = text.partition("\n\n")
    text = f"{summary} {NOTES[kind]}" if kind in NOTES else text
    yield from textwrap.wrap(" ".join(text.split()), 138, initial_indent="  // ", subsequent_indent="  // ")
    yield f"  irdl.operation @{kind.op} {{"
    inputs, outputs = map(expanded, stream_patterns(kind.streams))
    shared = Counter(p.depth for p in (*inputs, *outputs))
    depths = {depth: f"%depth{k}" for k, depth in enumerate(shared) if shared[depth] > 1 or depth.isdecimal()}
    depths.pop("", None)
    for depth, value in depths.items():
        yield f"    {value} = " + (f"irdl.is {depth} : i64" if depth.isdecimal() else "irdl.any")
    yield from streams("operands", "", inputs, {}, depths)
    yield from streams(
        "results", "result_", outputs, {p.name: f"%{p.name}" for p in inputs if p.name not in get_args(n.Kind)}, depths
    )
    yield from attributes(kind)
    yield "  }"


def expanded(patterns: tuple[StreamPattern, ...]) -> list[StreamPattern]:
    """Return the streams with one for each level in the place of those at several levels. Only the outermost must be there."""
    found: list[StreamPattern] = []
    for p in patterns:
        levels = range(MAX_LEVELS) if p.number == "+" else ()
        found += [StreamPattern(f"{p.name}{k}", "?" * (k > 0), p.kinds.replace("+", str(k)), p.depth) for k in levels] or [p]
    return found


def streams(
    group: str, prefix: str, patterns: list[StreamPattern], values: Mapping[str, str], depths: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines that declare the operands or the results. `values` are those that declare an
    operand, for results of the same type."""
    members: list[str] = []
    for p in patterns:
        value = values.get(p.kinds, f"%{prefix}{p.name}")
        if p.kinds not in values:
            kinds = get_args(n.Kind) if p.kinds == "any" else p.kinds.split(" or ")
            options = [f"{value}_{kind}" for kind in kinds] if len(kinds) > 1 else [value]
            for kind, option in zip(kinds, options, strict=True):
                depth = depths.get(p.depth)
                yield f"    {option} = " + (
                    f"irdl.parametric @samml::@{kind}<{depth}>" if depth else f"irdl.base @samml::@{kind}"
                )
            if len(options) > 1:
                yield f"    {value} = irdl.any_of({', '.join(options)})"
        members.append(f"{p.name}: {({'?': 'optional ', '*': 'variadic '}).get(p.number, '')}{value}")
    if members:
        yield f"    irdl.{group}({', '.join(members)})"


def attributes(kind: type[n.Node]) -> Iterator[str]:
    """Yield the lines that declare the attributes: the name of the node, and its fields."""
    constraints = {"node": ['irdl.base "#builtin.string"']}
    for attribute in n.ATTRIBUTES[kind]:
        words = get_args(get_type_hints(kind)[attribute.field])
        if attribute.type == "slots":
            constraints |= {name: ['irdl.base "#builtin.dense_array"'] for name in ("values", "constants")}
        elif attribute.type == "flag":
            constraints[attribute.field] = ["irdl.is true", "irdl.is false"]
        elif attribute.type == "number or none":
            constraints[attribute.field] = ["irdl.is unit", 'irdl.base "#builtin.float"']
        elif attribute.type == "word" and words:
            constraints[attribute.field] = [f'irdl.is "{word}"' for word in words]
        else:
            constraints[attribute.field] = [f'irdl.base "#builtin.{BASES[attribute.type]}"']
    if kind is n.Join:
        constraints["payloads"] = ['irdl.base "#builtin.array"']
    for name, options in constraints.items():
        values = [f"%{name}{k}" for k in range(len(options))] if len(options) > 1 else [f"%{name}"]
        yield from (f"    {value} = {option}" for value, option in zip(values, options, strict=True))
        if len(options) > 1:
            yield f"    %{name} = irdl.any_of({', '.join(values)})"
    members = ", ".join(f'"{name}" = %{name}' for name in constraints)
    yield f"    irdl.attributes {{{members}}}"


def renewed(page: str) -> str:
    """The page with lists as the declarations are now: what stands between `<!-- list of X -->` and `<!-- end -->`."""
    for dialect in DIALECTS:
        begin, end = f"<!-- list of {dialect} -->\n", "<!-- end -->"
        page, count = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n{markdown(dialect)}\n{end}", page, flags=re.DOTALL)  # noqa: B023
        assert count == 1, f"docs/reference/dialects.md has no list of {dialect}"
    return page


def write_operations() -> None:
    path = declaration("samml")
    path.write_text(with_operations(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_operations()
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
