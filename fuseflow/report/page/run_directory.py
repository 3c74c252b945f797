"""A reader of a finished run, from the directory of `run -o` or `simulate -o`, from the file of `--json`, or from the store of a sweep."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuseflow.energy.energy import SCHEMA as ENERGY_SCHEMA
from fuseflow.errors import FileError, UsageError
from fuseflow.filesystem import read_json, read_text
from fuseflow.report.cycle_tables import CYCLES_FILE
from fuseflow.report.cycle_tables import SCHEMA as CYCLES_SCHEMA
from fuseflow.report.resource_tables import ENERGY_FILE
from fuseflow.run.artifacts import ARRAY_PICTURE, PROGRAM_FILE, PROGRAM_SCHEMA, REGION_FILE, REGION_SCHEMA, region_folder
from fuseflow.run.directory_names import MANIFEST, TRAINING_FILE
from fuseflow.run.result import SCHEMA
from fuseflow.run.run_archive import unpack_run
from fuseflow.run.training.training_run import SCHEMA as TRAINING_SCHEMA
from fuseflow.samml import text as samml_text
from fuseflow.samml.nodes import Graph
from fuseflow.samml.verify import verify

RESULT = "result.json"
AGAIN = "run it again with this version"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A finished run. `compiled` has the content of `region.json` and the graph of each region, if they were written. `cycles` is the
    report of `explain cycles` on the same run, and `energy` the energy of the run, if there is one. `training` has the steps of a training
    run. `program` has the Einsums and the lines that they came from; it is empty if they were not written. `pictures` has the SVG of each
    region that ran on an array."""

    result: Values
    compiled: Mapping[str, tuple[Values, Graph]] = field(default_factory=dict)
    cycles: Values | None = None
    program: Values = field(default_factory=dict)
    energy: Values | None = None
    training: Values | None = None
    pictures: Mapping[str, str] = field(default_factory=dict)


def read_run(path: Path, cycles: Path | None = None) -> StoredRun:
    """Read a run, with the explanation of its cycles in `cycles`, or else the one in its directory, if there is one.

    Raises `UsageError` if there is no run, and `FileError` if it is not whole or of another version.
    """
    if not path.is_dir():
        result = _result(path)
        return StoredRun(result, {}, None if cycles is None else read_explanation(cycles, result), energy=result.get("energy"))
    result, compiled = _directory(path)
    drawings = {name: path / region_folder(k, name) / ARRAY_PICTURE for k, name in enumerate(compiled, 1)}
    pictures = {name: read_text(file, "the picture") for name, file in drawings.items() if file.exists()}
    inside = path / CYCLES_FILE
    cycles = inside if cycles is None and inside.exists() else cycles
    program = _read(path / PROGRAM_FILE, PROGRAM_SCHEMA, PROGRAM_FILE) if (path / PROGRAM_FILE).exists() else {}
    energy = _read(path / ENERGY_FILE, ENERGY_SCHEMA, ENERGY_FILE) if (path / ENERGY_FILE).exists() else None
    training = _read(path / TRAINING_FILE, TRAINING_SCHEMA, TRAINING_FILE) if (path / TRAINING_FILE).exists() else None
    return StoredRun(
        result, compiled, None if cycles is None else read_explanation(cycles, result), program, energy, training, pictures
    )


def read_packed_run(packed: bytes, folder: Path) -> StoredRun:
    """Return a run that a store kept. Files of its sources are named as they are from `folder`, where that is shorter. Raises `FileError`
    for bytes that are no packed run."""
    values = unpack_run(packed)
    try:
        compiled = {region["values"]["name"]: (region["values"], _graph(region["graph"])) for region in values["regions"]}
        program = values["program"]
        for named in (*program["einsums"], *program["sources"]):
            if named["file"] is not None:
                named["file"] = min(named["file"], os.path.relpath(named["file"], folder), key=len)
        return StoredRun(values["result"], compiled, None, program)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"a run that was kept is not what fuseflow writes: {error!r}", hint=AGAIN) from error


def _graph(text: str, name: str = "a run that was kept") -> Graph:
    graph = samml_text.parse(text, name)
    verify(graph)
    return graph


def _directory(path: Path) -> tuple[Values, dict[str, tuple[Values, Graph]]]:
    if not (path / MANIFEST).exists():
        raise UsageError(
            f"`{path}` is no directory of a run: it has no {MANIFEST}", hint="`fuseflow run MODEL -o DIR` writes one"
        )
    about = _read(path / MANIFEST, 1, "about.json")
    if not (path / RESULT).exists():
        raise UsageError(
            f"`{path}` holds a compiled program that has not run: it has no {RESULT}", hint="`fuseflow run MODEL -o DIR`"
        )
    names = _region_names(about, path / MANIFEST)
    return _result(path / RESULT), {name: _region(path / region_folder(k, name)) for k, name in enumerate(names, 1)}


def _region_names(about: Values, path: Path) -> list[str]:
    """Return the names of the regions that a manifest lists."""
    try:
        names = [region["name"] for region in about["regions"]]
    except (KeyError, TypeError) as error:
        raise FileError(f"`{path}` is not what fuseflow writes: {error!r}", hint=AGAIN) from error
    for name in names:
        if not isinstance(name, str):
            raise FileError(f"`{path}` is not what fuseflow writes: {name!r} is no name of a region", hint=AGAIN)
    return names


def _region(folder: Path) -> tuple[Values, Graph]:
    if not (folder / REGION_FILE).exists():
        raise FileError(f"`{folder}` has no {REGION_FILE}: an earlier version wrote it, or it is not whole", hint=AGAIN)
    file = folder / "graph.samml"
    graph = _graph(read_text(file, "the graph"), str(file))
    return _read(folder / REGION_FILE, REGION_SCHEMA, REGION_FILE), graph


def _result(path: Path) -> Values:
    values = _read(path, SCHEMA, "a result of `fuseflow run --json`")
    if not isinstance(values.get("regions"), list) or "machine_settings" not in values or "cycles" not in values:
        raise UsageError(f"`{path}` is no result of a run", hint="`fuseflow run MODEL --json FILE`, or `-o DIR`")
    return values


def read_explanation(path: Path, result: Values) -> Values:
    """Read the explanation of the cycles of a run. Raises `UsageError` for the explanation of another run."""
    values = _read(path, CYCLES_SCHEMA, "what `fuseflow explain cycles --json` writes")
    if "changes" not in values:
        raise UsageError(f"`{path}` is not what `fuseflow explain cycles --json` writes", hint="as in `--json cycles.json`")
    return require_same_run(values, result, f"`{path}`")


def require_same_run(values: Values, result: Values, name: str) -> Values:
    """Return the values of an explanation of cycles, which is called `name` in messages. Raise `UsageError` if it explains another run."""
    for key in ("model", "data", "schedule", "machine_settings", "seed", "cycles"):
        if values.get(key) != result.get(key):
            raise UsageError(
                f"{name} explains another run: its {key.replace('_', ' ')} differs", hint="give both commands the same flags"
            )
    return values


def _read(path: Path, schema: int, title: str) -> Values:
    values = read_json(path, hint=AGAIN)
    if not isinstance(values, dict) or "schema" not in values:
        raise UsageError(f"`{path}` is not {title}", hint="`fuseflow run MODEL --json FILE`, or `-o DIR`")
    if values["schema"] != schema:
        raise FileError(f"`{path}` has schema {values['schema']!r}; this version of fuseflow reads {schema}", hint=AGAIN)
    return values
