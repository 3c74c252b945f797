"""The program of a model as it was imported last, for callers that only want its names, such as a shell that completes them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.filesystem import read_text
from fuseflow.frontend.import_cache.entry import import_store
from fuseflow.frontend.import_cache.request import request_digest
from fuseflow.frontend.model_spec import ModelSpec


@dataclass(frozen=True, slots=True)
class ProgramNames:
    """The names in a program that options of a schedule refer to, each in the order of the program."""

    einsums: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()


def program_names(spec: ModelSpec) -> ProgramNames:
    """Return the names of a program text, or of a model file that was imported before. There are none if it was not: nothing is
    imported here. Whether the model changed since is not checked."""
    model = Path(str(spec.model))
    if model.suffix == ".ein":
        return _names(parse(read_text(model), str(model)), [])
    store = import_store()
    digest = None if store is None else request_digest(spec)
    content = None if store is None or digest is None else store.read(digest)
    if content is None:
        return ProgramNames()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        places = json.loads(archive.read("about.json"))["places"]
        program = parse(archive.read("program.ein").decode())
    return _names(program, [place["path"] for place in places])


def _names(program: Program, paths: list[str]) -> ProgramNames:
    modules = [path[:end] for path in paths for end in (*(n for n, c in enumerate(path) if c == "."), len(path)) if path]
    tensors = (*(tensor.name for tensor in program.tensors), *program.defined)
    used = (index for e in program.einsums for places in (e.indices, *(a.indices for a in e.accesses)) for index in places)
    indices = (index for index in used if isinstance(index, str))
    return ProgramNames(tuple(program.defined), _unique(modules), _unique(tensors), _unique(indices))


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
