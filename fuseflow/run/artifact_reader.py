"""Reads a directory of artifacts: the program and the graph of every region, without the model that was compiled."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fuseflow.einsum.nodes import Access, TensorType
from fuseflow.errors import FileError, UsageError
from fuseflow.estimate.program import EstimatorRegion, StoredView
from fuseflow.filesystem import read_json, read_text
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, input_tensors, load
from fuseflow.lower.reshape_views import source_of, view_format
from fuseflow.run.directory_names import MANIFEST, SELECTIONS
from fuseflow.samml import text as samml_text
from fuseflow.samml.auxiliary_tensors import is_auxiliary
from fuseflow.samml.nodes import Graph, Range, TensorDecl
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.array_files import read_fibertree


@dataclass(frozen=True, slots=True)
class SavedProgram:
    """A program that `fuseflow compile -o DIR` wrote. `model` and `data` are the names of its sources."""

    source: Source
    regions: tuple[EstimatorRegion, ...]
    model: str
    data: str | None
    notices: tuple[str, ...]


def load_saved(directory: Path, tensors: str | Path | Mapping[str, Any] | None = None) -> SavedProgram:
    """Read a directory of artifacts, with data for the user's inputs (`tensors`). Raises `FileError` for an incomplete directory,
    and `UsageError` for one without a compiled program."""
    _require_program(directory)
    about = _read_manifest(directory / MANIFEST)
    source = load(ModelSpec(directory / "program.ein"))
    made = {*about.compiler_inputs, *about.selections}
    user_inputs = [t for t in source.program.inputs if t.name not in made]
    source = replace(source, tensors={**input_tensors(tensors, user_inputs), **dict(_selections(directory, source, about))})
    folders = sorted(path for path in directory.iterdir() if path.is_dir() and path.name[:2].isdigit())
    if len(folders) != len(about.regions):
        raise FileError(f"`{directory}` has {len(folders)} regions, its {MANIFEST} {len(about.regions)}", hint="compile it again")
    most = 4 * max((prod(tensor.shape) for tensor in source.program.tensors), default=1)  # with room for blocks that are not full
    graphs = [_read_graph(folder / "graph.samml", most) for folder in folders]
    return SavedProgram(source, tuple(_regions(source, about.regions, graphs)), about.model, about.data, about.notices)


def load_schedule(directory: Path) -> Schedule:
    """Read the schedule that a directory was compiled with. Raises as `load_saved` does."""
    _require_program(directory)
    return Schedule.load(directory / "schedule.yaml")


def _require_program(directory: Path) -> None:
    if not (directory / MANIFEST).exists():
        raise UsageError(
            f"`{directory}` is no directory of a compiled program: it has no {MANIFEST}",
            hint="`fuseflow compile MODEL -o DIR` writes one",
        )
    if not (directory / "program.ein").exists():
        raise UsageError(
            f"`{directory}` holds the results of a graph, not a compiled program", hint="`fuseflow compile MODEL -o DIR`"
        )


class _SavedRegion(BaseModel):
    """The entry of a region in a manifest."""

    name: str
    einsums: tuple[str, ...]


class _Manifest(BaseModel):
    """The fields that are read of a manifest. Directories that older versions wrote have no `compiler_inputs`."""

    model: str
    data: str | None
    notices: tuple[str, ...]
    regions: tuple[_SavedRegion, ...]
    compiler_inputs: tuple[str, ...] = ()
    selections: Mapping[str, str] = {}


def _read_manifest(path: Path) -> _Manifest:
    try:
        return _Manifest.model_validate(read_json(path, hint="compile it again"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise FileError(
            f"`{path}` is not what `fuseflow compile` writes: {f'`{where}`: ' if where else ''}{first['msg']}",
            hint="compile it again",
        ) from error


def _selections(directory: Path, source: Source, about: _Manifest) -> Iterator[tuple[str, Tensor]]:
    """Yield the selections of a program, by name. Raises `FileError` for one that differs from its declaration in the program."""
    inputs = {t.name: t for t in source.program.inputs}
    for name, format in about.selections.items():
        tensor = read_fibertree(directory / SELECTIONS, name, Format.parse_levels(format))
        if name not in inputs or tensor.shape != inputs[name].shape:
            raise FileError(f"`{directory}` has a selection `{name}` that its program has not", hint="compile it again")
        yield name, tensor


def _read_graph(path: Path, most: int) -> Graph:
    """Read a graph. Raises `FileError` for one with a size above `most`, since no graph of the program has such a size."""
    graph = samml_text.parse(read_text(path, "the graph"), str(path))
    verify(graph)
    sizes = [size for tensor in graph.tensors for size in tensor.shape]
    sizes += [node.size for node in graph.nodes if isinstance(node, Range)]
    if max(sizes, default=0) > most:
        raise FileError(f"`{path}` has the size {max(sizes):,}, which the program has not", hint="compile the model again")
    return graph


def _regions(source: Source, regions: tuple[_SavedRegion, ...], graphs: list[Graph]) -> Iterator[EstimatorRegion]:
    """Yield the regions. A tensor that no region writes is a view: the program says which tensor it shows in other dimensions."""
    stored = {t.name: t.format or Format.dense(len(t.shape)) for t in source.program.inputs}
    for region, graph in zip(regions, graphs, strict=True):
        views: list[StoredView] = []
        for name in graph.inputs:
            views += _views(source, graph, name, stored)
        read = tuple(views)
        stored |= {output: graph.declared[output].format for output in graph.outputs}
        results = [name for name in source.program.outputs if name not in stored and _shows_stored(source, name, stored)]
        shown = tuple([view for name in results for view in _views(source, graph, name, stored)])
        yield EstimatorRegion(region.name, region.einsums, graph, read, shown)


def _shows_stored(source: Source, name: str, stored: Collection[str]) -> bool:
    """Return whether a tensor shows one that is stored, or one that shows such a tensor."""
    einsum = source.program.defined.get(name)
    if einsum is None or not isinstance(einsum.body, Access):
        return False
    viewed = source_of(einsum).tensor
    return viewed in stored or _shows_stored(source, viewed, stored)


def _views(source: Source, graph: Graph, name: str, stored: dict[str, Format]) -> Iterator[StoredView]:
    """Yield the views that a region needs to read `name`, which may be a view of a view, and add them to `stored`."""
    if name in stored or (name in graph.declared and is_auxiliary(graph.declared[name])):
        return
    einsum = source.program.defined.get(name)
    if einsum is None or not isinstance(einsum.body, Access):
        raise FileError(f"region `{graph.name}` reads `{name}`, which nothing writes", hint="compile the model again")
    viewed = source_of(einsum).tensor
    copies = [t for t in sorted(stored) if t.startswith(f"{viewed}.dense_")]
    if not copies:
        yield from _views(source, graph, viewed, stored)
    decl = graph.declared[name] if name in graph.declared else source.program.declared[name]
    format = decl.format or Format.dense(len(decl.shape))
    fitting = (t for t in (viewed, *copies) if t in stored and view_format(einsum, TensorType(t, (), stored[t])) == format)
    stored[name] = format
    yield StoredView(name, next(fitting, viewed), format, decl.shape if isinstance(decl, TensorDecl) else decl.stored_shape)
