"""Every stage of a compiled program as text or bytes, and all of them as a directory that describes itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fuseflow.atomic import replacing_directory
from fuseflow.compiler.lower import CompiledRegion
from fuseflow.compiler.settings import Settings, versions
from fuseflow.compiler.sources import Source
from fuseflow.einsum import text as einsum_text
from fuseflow.einsum.nodes import Program
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.fusion import text as fusion_text
from fuseflow.samml import dot, proto
from fuseflow.samml import text as samml_text
from fuseflow.table import text as table_text


def _mlir(region: CompiledRegion) -> str:
    from fuseflow.samml import mlir  # loads torch_mlir, which nothing else behind the front end needs

    return mlir.to_mlir(region.graph)


REGION_STAGES: dict[str, tuple[str, Callable[[CompiledRegion], str | bytes]]] = {
    "fused": ("ein", lambda r: fusion_text.show(r.fused)),
    "order": ("txt", lambda r: fusion_text.show_order(r.fused)),
    "table": ("txt", lambda r: table_text.show(r.table)),
    "samml": ("samml", lambda r: samml_text.show(r.graph)),
    "mlir": ("mlir", _mlir),
    "proto": ("bin", lambda r: proto.to_proto(r.graph)),
    "proto-text": ("txtpb", lambda r: proto.to_text(r.graph)),
    "dot": ("dot", lambda r: dot.dot(r.graph)),
}
"""Stages of one region: the ending of its file, and what is in it."""

MARKER = "about.json"
"""The file that says what a directory of artifacts is."""

STAGES = ("linalg", "einsum", *REGION_STAGES)


def emit(source: Source, program: Program, regions: Sequence[CompiledRegion], stage: str) -> str | bytes:
    """One stage as text (or bytes); regions one after the other. Raises `UsageError` for a stage that is not there."""
    if stage == "einsum":
        return einsum_text.show(program)
    if stage == "linalg":
        if source.mlir is None:
            raise UsageError(f"`{source.name}` did not go through Linalg", hint="stages from `einsum` on can be shown")
        return source.mlir
    if stage not in REGION_STAGES:
        raise UsageError(f"unknown stage `{stage}`", hint=did_you_mean(stage, [*STAGES, "fibertree"]))
    shown = [REGION_STAGES[stage][1](r) for r in regions]
    if len(shown) > 1 and stage == "proto":
        names = ", ".join(r.name for r in regions)
        raise UsageError(
            f"`proto` is one graph in binary form, the program has {len(shown)}: {names}", hint="`-o DIR` writes them all"
        )
    return shown[0] if len(shown) == 1 else "\n".join(str(s) for s in shown)


def save(directory: Path, source: Source, program: Program, regions: Sequence[CompiledRegion], settings: Settings) -> None:
    """One file for each stage of the program, one folder for each region, and `about.json` to say what they are."""
    with replacing_directory(directory, MARKER) as folder:
        (folder / "schedule.yaml").write_text(settings.schedule)
        (folder / "program.ein").write_text(einsum_text.show(program))
        if source.mlir is not None:
            (folder / "program.mlir").write_text(source.mlir)
        for k, region in enumerate(regions, 1):
            _save_region(region, folder / f"{k:02}-{region.name}")
        (folder / MARKER).write_text(json.dumps(about(settings, regions), indent=1) + "\n")


def _save_region(region: CompiledRegion, folder: Path) -> None:
    folder.mkdir()
    for stage, (ending, show) in REGION_STAGES.items():
        content = show(region)
        path = folder / f"{stage}.{ending}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def about(settings: Settings, regions: Sequence[CompiledRegion]) -> dict[str, Any]:
    """What was compiled, how, and what every region is expected to cost."""
    return {
        "schema": 1,
        "model": settings.model,
        "data": settings.data,
        "seed": settings.seed,
        "machine": settings.machine,
        "regions": [
            {
                "name": r.name,
                "einsums": list(r.einsums),
                "order": list(r.fused.order),
                "nodes": len(r.graph.nodes),
                "outputs": list(r.graph.outputs),
                "fiber_fifos": [f"{e.node}.{e.input}" for e in r.graph.fiber_fifos],
                "warnings": list(proto.compatibility(r.graph)),
                "estimate": {k: round(v) for k, v in asdict(r.estimate).items()},
            }
            for r in regions
        ],
        "versions": versions(),
    }
