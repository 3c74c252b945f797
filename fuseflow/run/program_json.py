"""The Einsums of a program as plain values, with the lines of PyTorch that they came from, and for each node the Einsums that it
computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fuseflow.einsum import text as einsum_text
from fuseflow.einsum.nodes import Apply, Einsum, Program, Reduce, walk
from fuseflow.errors import FileError
from fuseflow.filesystem import read_text
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.nodes import Alu

PROGRAM_FILE = "program.json"
"""The file in a directory of artifacts that has the Einsums of a program in a form for other programs."""
PROGRAM_SCHEMA = 1

CONTEXT = 3
"""The lines of source text that are kept before and after each line that an Einsum came from."""
_SOURCE_SUFFIXES = frozenset({".py", ".ein", ".mlir"})
"""The kinds of files that are quoted. A location in a file from somebody else may name any file of this computer."""
_MOST_SOURCE_BYTES = 4 << 20
_LONGEST_LINE = 400


def program_values(program: Program) -> dict[str, Any]:
    """Return the Einsums and tensors of a program as plain values, with the lines of the files that their locations name."""
    einsums = [_einsum_values(einsum) for einsum in program.einsums]
    lines: dict[str, set[int]] = {}
    for values in einsums:
        if values["file"] is not None:
            lines.setdefault(values["file"], set()).add(values["line"])
    return {
        "schema": PROGRAM_SCHEMA,
        "einsums": einsums,
        "tensors": [{"name": t.name, "shape": list(t.shape), "type": einsum_text.show_type(t)} for t in program.tensors],
        "sources": [{"file": file, "lines": quoted} for file in lines if (quoted := _quoted(Path(file), lines[file]))],
    }


def _einsum_values(einsum: Einsum) -> dict[str, Any]:
    span = einsum.location.span
    return {
        "name": einsum.name,
        "text": einsum_text.show_einsum(einsum),
        "operands": list(dict.fromkeys(einsum.operands)),
        "module": einsum.location.path,
        "file": None if span is None else span.file,
        "line": None if span is None else span.line,
    }


def _quoted(path: Path, lines: Iterable[int]) -> list[tuple[int, str]]:
    """Return the numbered lines around some lines of a file; none if it is not a program text that can be read."""
    if path.suffix not in _SOURCE_SUFFIXES:
        return []
    try:
        text = read_text(path, "the source", _MOST_SOURCE_BYTES).split("\n")
    except FileError:
        return []
    kept = sorted({near for line in lines for near in range(line - CONTEXT, line + CONTEXT + 1) if 1 <= near <= len(text)})
    return [(number, text[number - 1][:_LONGEST_LINE]) for number in kept]


def node_einsums(program: Program, region: CompiledRegion) -> dict[str, list[str]]:
    """Return, by node of the graph of a region, the Einsums that the node works for.

    A node works for the Einsum in whose nest of loops it is, and a node that computes an operator for the Einsums inlined there
    that have this operator. A node that is not in the table, such as a writer or a collector of lanes, works for the same Einsums
    as its first input.
    """
    groups = _inlined(program, region)
    stages, origins = region.table.stages, dict[str, list[str]]()
    for node in region.graph.nodes:
        parts = node.name.split("/")  # `acc/i0` is `acc` in a lane
        names = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
        label = next((stages[name] for name in names if name in stages), None)
        group = groups.get(label, ()) if label is not None else ()
        if not group:
            origins[node.name] = next((origins[port.node] for port in node.inputs if origins.get(port.node)), [])
        elif isinstance(node, Alu):
            origins[node.name] = [name for name in group if node.function in _operators(program.defined[name])] or list(group)
        else:
            origins[node.name] = [group[-1]]
    return {name: einsums for name, einsums in origins.items() if einsums}


def _inlined(program: Program, region: CompiledRegion) -> Mapping[str, Sequence[str]]:
    """Return, for each stage of a region, the Einsums that are computed in its nest, in the order of the program."""
    labels = set(region.table.stages.values())
    inside = [name for name in region.einsums if name in program.defined]
    groups: dict[str, list[str]] = {}
    for label in labels:
        waiting, group = [label], set[str]()
        while waiting:
            name = waiting.pop()
            if name in group or name not in inside or (name != label and name in labels):
                continue
            group.add(name)
            waiting.extend(program.defined[name].operands)
        groups[label] = [name for name in inside if name in group]
    return groups


def _operators(einsum: Einsum) -> frozenset[str]:
    return frozenset(part.op for part in walk(einsum.body) if isinstance(part, Apply | Reduce))
