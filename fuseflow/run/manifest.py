"""The manifest (`about.json`) of a directory of artifacts, and the directory of a run whose graph fuseflow did not compile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.filesystem import json_text, list_files, replace_directory
from fuseflow.run.directory_names import MANIFEST
from fuseflow.run.result import Result
from fuseflow.run.settings import Settings, versions
from fuseflow.samml import protobuf

if TYPE_CHECKING:
    from fuseflow.lower.regions import CompiledRegion


def save_run(directory: Path, result: Result) -> None:
    """Write the outputs and numbers of a run whose graph fuseflow did not compile, with `about.json`."""
    with replace_directory(directory, MANIFEST) as folder:
        result.save_outputs(folder)
        write_artifact(folder / "result.json", json_text(result.to_dict()))
        write_artifact(folder / MANIFEST, json_text({**manifest(result.settings, ()), "files": list_files(folder)}))


def write_artifact(path: Path, content: str | bytes) -> None:
    """Write the content of one file of a directory of artifacts."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def manifest(settings: Settings, regions: Sequence[CompiledRegion]) -> dict[str, Any]:
    """Return the values of `about.json`: the model, the settings, and the expected cost of every region."""
    return {
        "schema": 1,
        "model": settings.model,
        "data": settings.data,
        "options": settings.plain_options,
        "notices": list(settings.notices),
        "seed": settings.seed,
        "machine": settings.machine.name,
        "machine_settings": settings.machine.settings,
        "regions": [
            {
                "name": r.name,
                "einsums": list(r.einsums),
                "order": list(r.fused.order),
                "nodes": r.graph.node_count,
                "outputs": list(r.graph.outputs),
                "fiber_fifos": [f"{e.node}.{e.input}" for e in r.graph.fiber_fifos],
                "warnings": list(protobuf.compatibility(r.graph)),
                "estimate": {k: round(v) for k, v in asdict(r.estimate).items()},
            }
            for r in regions
        ],
        "versions": versions(),
    }
