"""The artifacts of a compiled program: every stage as text or bytes, and all of them as a directory that describes itself.

Among them are its Einsums as plain values, with the lines of PyTorch that they came from, and for each node the Einsums that it computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fuseflow.einsum import text as einsum_text
from fuseflow.einsum.nodes import Apply, Einsum, Program, Reduce, walk
from fuseflow.errors import FileError, UsageError, did_you_mean
from fuseflow.filesystem import json_text, list_files, read_text, replace_directory
from fuseflow.frontend.sources import Source
from fuseflow.fusion import region_program
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.run.directory_names import MANIFEST, SELECTIONS, STATE, TRAINING_FILE
from fuseflow.run.manifest import manifest, write_artifact
from fuseflow.run.result import Result, save_tensors
from fuseflow.run.sampled_result import SampledResult
from fuseflow.run.settings import Settings
from fuseflow.run.training.training_run import TrainingRun, training_values
from fuseflow.samml import dot, protobuf
from fuseflow.samml import text as samml_text
from fuseflow.samml.nodes import Alu
from fuseflow.table import table as fusion_table
from fuseflow.tensors.array_files import write_fibertree

# The three functions below import lazily: they load torch_mlir, which nothing else behind the front end needs.


def _program_mlir(program: Program) -> str:
    from fuseflow.einsum import mlir

    return mlir.to_mlir(program)


def _table_mlir(region: CompiledRegion) -> str:
    from fuseflow.table import mlir

    return mlir.to_mlir(region.table)


def _graph_mlir(region: CompiledRegion) -> str:
    from fuseflow.samml import mlir

    return mlir.to_mlir(region.graph)


REGION_STAGES: dict[str, tuple[str, Callable[[CompiledRegion], str | bytes]]] = {
    "fused": ("fused.ein", lambda r: region_program.show(r.fused)),
    "order": ("order.txt", lambda r: region_program.show_order(r.fused)),
    "table": ("table.txt", lambda r: fusion_table.show(r.table)),
    "steps": ("steps.txt", lambda r: fusion_table.show_steps(r.table)),
    "samml": ("graph.samml", lambda r: samml_text.show(r.graph)),
    "mlir": ("graph.mlir", _graph_mlir),
    "proto": ("graph.bin", lambda r: protobuf.to_proto(r.graph)),
    "proto-text": ("graph.txtpb", lambda r: protobuf.to_text(r.graph)),
    "dot": ("graph.dot", lambda r: dot.dot(r.graph)),
}
"""The stages of one region: for each the name of its file, and the function that makes its content."""

REGION_FILE = "region.json"
"""The file in the folder of a region that holds its loops, its table and its lanes for programs to read."""
REGION_SCHEMA = 1
ARRAY_PICTURE = "array.svg"
"""The file in the folder of a region with a picture of it on the array that it ran on."""

RESULT_FILES: dict[type[Result | SampledResult], str] = {Result: "result.json", SampledResult: "sampled.json"}
"""The file with the numbers of a run, by kind: a reader of exact numbers cannot take sampled ones for them."""

STAGES = ("linalg", "einsum", *REGION_STAGES)

MLIR_FORMS = ("einsum-mlir", "table-mlir")
"""Second forms of stages, in MLIR. They can be shown, but a directory of artifacts does not hold them."""

CIRCUITS = "hw"
"""The circuits of the graphs, which can be shown for a machine that has circuits."""
DIRECTORY_FORMS = ("fibertree", "verilog")
"""The forms that are a directory of files by themselves."""
EXPORTED = "torch"
"""The exported program of a PyTorch model, from which all stages are made."""
SHOWN = (EXPORTED, *STAGES, *MLIR_FORMS, CIRCUITS, *DIRECTORY_FORMS)
"""All that `--emit` writes."""

MLIR_SEPARATOR = "\n// -----\n\n"
"""The line between the modules of several regions: `mlir-opt --split-input-file` reads them one by one."""


def emit_stage(source: Source, program: Program, regions: Sequence[CompiledRegion], stage: str, machine: Machine) -> str | bytes:
    """Return one stage as text or bytes, with the regions one after the other. `hw` is the circuits for the machine. Raises
    `UsageError` for a stage that does not exist."""
    if stage == EXPORTED:
        return source.exported_text
    if stage == "einsum":
        return einsum_text.show(program)
    if stage == "einsum-mlir":
        return _program_mlir(program)
    shows = {name: show for name, (_, show) in REGION_STAGES.items()} | {
        "table-mlir": _table_mlir,
        CIRCUITS: lambda r: _circuit_text(r, machine),
    }
    if stage not in shows:
        raise UsageError(f"unknown stage `{stage}`", hint=did_you_mean(stage, SHOWN))
    shown = [shows[stage](r) for r in regions]
    if len(shown) > 1 and stage == "proto":
        names = ", ".join(r.name for r in regions)
        raise UsageError(
            f"`proto` is one graph in binary form, the program has {len(shown)}: {names}", hint="`-o DIR` writes them all"
        )
    between = MLIR_SEPARATOR if stage in ("mlir", "table-mlir", CIRCUITS) else "\n"
    return shown[0] if len(shown) == 1 else between.join(str(s) for s in shown)


def _circuit_text(region: CompiledRegion, machine: Machine) -> str:
    from fuseflow.hardware.circuit_files import circuit_text  # takes long to load, and a run does without

    return circuit_text(region.graph, machine)


def save_program(
    directory: Path,
    source: Source,
    program: Program,
    regions: Sequence[CompiledRegion],
    settings: Settings,
    result: Result | SampledResult | TrainingRun | None = None,
    files: Mapping[str, str] | None = None,
) -> None:
    """Write a directory of artifacts, with more text `files` by name.

    It has one file for each stage of the program, one folder for each region, one for the selections of the program, and
    `about.json`, which describes the files, and lists which inputs of the program the compiler added to the user's. With a
    `result`, the outputs and numbers of that run are added: of several steps those of the first one, the values after the last
    one (`state`), and the losses and cycles of all (`training.json`).
    """
    one = result.first if isinstance(result, TrainingRun) else result
    with replace_directory(directory, MANIFEST) as folder:
        write_artifact(folder / "schedule.yaml", settings.schedule)
        write_artifact(folder / "program.ein", einsum_text.show(program))
        write_artifact(folder / PROGRAM_FILE, json_text(program_values(program)))
        if source.mlir is not None:
            write_artifact(folder / "program.mlir", source.mlir)
        for k, region in enumerate(regions, 1):
            inside = folder / region_folder(k, region.name)
            inside.mkdir()
            for name, show in REGION_STAGES.values():
                write_artifact(inside / name, show(region))
            write_artifact(inside / REGION_FILE, json_text(region_values(program, region)))
        if one is not None:
            one.save_outputs(folder)
            write_artifact(folder / RESULT_FILES[type(one)], json_text(one.to_dict()))
        if isinstance(result, TrainingRun):
            save_tensors(folder / STATE, result.state)
            write_artifact(folder / TRAINING_FILE, json_text(training_values(program, regions, result)))
        for name, text in (files or {}).items():
            write_artifact(folder / name, text)
        selections = {t.name: source.tensors[t.name] for t in program.inputs if t.name in source.selections}
        for name, tensor in selections.items():
            write_fibertree(folder / SELECTIONS, name, tensor)
        added = {
            "compiler_inputs": [t.name for t in program.inputs if t.name not in source.program.declared],
            "selections": {name: str(tensor.format) for name, tensor in selections.items()},
        }
        write_artifact(folder / MANIFEST, json_text({**manifest(settings, regions), **added, "files": list_files(folder)}))


def region_folder(number: int, region: str) -> str:
    """Return the name of the folder of a region. Regions are counted from 1, in the order in which they run."""
    return f"{number:02}-{file_name(region)}"


def region_values(program: Program, region: CompiledRegion) -> dict[str, Any]:
    """Return the loops of a region, their constraints, its fusion table, and the lanes and Einsums of its nodes, as plain values."""
    fused, table = region.fused, region.table
    return {
        "schema": REGION_SCHEMA,
        "name": region.name,
        "order": list(fused.order),
        "loops": [{"index": v, "size": fused.sizes[v], "block": fused.blocks.get(v, 1)} for v in fused.indices],
        "constraints": [{"above": u, "below": v, "why": why} for u, v, why in region_program.order_edges(fused)],
        "table": {
            "rows": list(table.rows),
            "columns": [
                {"name": name, "cells": [list(cells.get(row, ())) for row in table.rows]} for name, cells in table.columns.items()
            ],
        },
        "places": {node: [list(place) for place in places] for node, places in region.places.items()},
        "origins": node_einsums(program, region),
    }


def file_name(region: str) -> str:
    """Return the name of a region as a part of a file name: a module may be called `a/b`, and names may be longer than file names may be.

    >>> file_name("layer1.a/b")
    'layer1.a_b'
    """
    return re.sub(r"[^\w.-]", "_", region)[:100]


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
