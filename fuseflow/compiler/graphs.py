"""Graphs from files, with their tensors from files: what `fuseflow simulate` runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from fuseflow.errors import FileError, FuseFlowError, Span, UsageError
from fuseflow.filesystem import read_bytes, read_text
from fuseflow.samml import proto
from fuseflow.samml import text as samml_text
from fuseflow.samml.nodes import Graph, TensorDecl
from fuseflow.samml.verify import verify
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.fibertree import read_fibertree
from fuseflow.tensors.files import ArrayOrSparse, load_array, pack_declared
from fuseflow.tensors.listing import Entry, read_entries

LISTS = ("order", "levels", "indices")
TEXT = (".txtpb", ".pbtxt", ".textproto")


def load_graph(path: str | Path, tensors: str | Path) -> tuple[Graph, dict[str, Tensor]]:
    """A graph and its inputs, ready to simulate.

    `path` is a SAMML protobuf, binary (`.bin`, `.pb`) or text (`.txtpb`), or our own text form (`.samml`); `tensors` a YAML file:

        B: {path: b.npz, order: [i, k], levels: [compressed, compressed]}

    `order` names the indices as they are stored, outermost level first, and `levels` are their formats: both must be those of the graph,
    and may be left out where it has them. A file has its dimensions as the graph declares them, or in storage order if the graph declares
    no tensors; `indices` names its dimensions where they stand otherwise. Raises a `FuseFlowError` for what does not fit.
    """
    path = Path(path)
    data = _data(path)
    try:
        graph = _graph(path, data, {})
        named = {} if path.suffix == ".samml" else proto.stored_indices(data)
    except FuseFlowError as error:
        error.span = error.span or Span(str(path), 1)
        raise
    entries = read_entries(tensors, graph.inputs, f"graph `{graph.name}`", LISTS)
    arrays: dict[str, ArrayOrSparse] = {}
    sizes: dict[str, tuple[int, str]] = {}
    for entry in entries:
        decl = graph.declared[entry.name]
        with entry.blamed():
            dims = _dimensions(decl, entry, named.get(entry.name, ()))
            arrays[entry.name] = _array(decl, entry, dims)
            _note(sizes, entry.name, dims, arrays[entry.name].shape)
    if named:
        graph = _sized(_graph(path, data, {index: size for index, (size, _) in sizes.items()}), arrays, named, sizes)
    found = {}
    for entry in entries:
        with entry.blamed():
            found[entry.name] = pack_declared(arrays[entry.name], graph.declared[entry.name])
    return graph, found


def _data(path: Path) -> bytes | str:
    if path.suffix in (".bin", ".pb"):
        return read_bytes(path, "the graph")
    if path.suffix in (".samml", *TEXT):
        return read_text(path, "the graph")
    raise UsageError(
        f"cannot read `{path}` as a graph", hint=f"give a SAMML protobuf (.bin, .pb, or text: {', '.join(TEXT)}) or .samml"
    )


def _graph(path: Path, data: bytes | str, sizes: Mapping[str, int]) -> Graph:
    if isinstance(data, bytes):
        return proto.from_proto(data, sizes)
    if path.suffix == ".samml":
        graph = samml_text.parse(data, str(path))
        verify(graph)
        return graph
    return proto.from_text(data, sizes)


def _dimensions(decl: TensorDecl, entry: Entry, named: Sequence[str]) -> tuple[str, ...]:
    """Names of the declared dimensions; checks what the entry says of the levels. A dimension that nobody names is `NAME.level`."""
    order, levels = entry.lists.get("order"), entry.lists.get("levels")
    stored = tuple(level.text for level in decl.format.levels)
    if levels is not None and levels != stored:
        raise FileError(f"`levels` are [{', '.join(levels)}], the graph has [{', '.join(stored)}]")
    for key in ("order", "indices"):
        given = entry.lists.get(key, stored)
        if len(given) != len(stored) or (key in entry.lists and len(set(given)) != len(given)):
            raise FileError(f"`{key}` is [{', '.join(given)}]: it names each of the {len(stored)} indices once")
    names = tuple(index or f"{decl.name}.{p}" for p, index in enumerate(named or [""] * len(stored)))
    for p, (mine, graphs) in enumerate(zip(order or (), named, strict=False)):
        if graphs and mine != graphs:
            raise FileError(
                f"`order` says that level {p} stores index `{mine}`; in the graph it is `{graphs}`",
                hint=f"`order: [{', '.join(names)}]`; if the file has its dimensions in another order, name them in `indices`",
            )
    names = order or names
    dims = [""] * len(names)
    for index, dimension in zip(names, decl.format.order, strict=True):
        dims[dimension] = index
    return tuple(dims)


def _array(decl: TensorDecl, entry: Entry, dims: Sequence[str]) -> ArrayOrSparse:
    """The array of an entry, its dimensions as declared."""
    file = entry.lists.get("indices", tuple(dims))
    if sorted(file) != sorted(dims):
        raise FileError(f"`indices` are [{', '.join(file)}], those of the tensor [{', '.join(dims)}]")
    axes = tuple(file.index(index) for index in dims)
    if entry.path.is_dir():
        tensor = read_fibertree(entry.path, entry.name, Format(decl.format.levels, tuple(axes[d] for d in decl.format.order)))
        array: ArrayOrSparse = tensor.to_dense() if tensor.format.all_dense else tensor.to_scipy()
    else:
        array = load_array(entry.path)
    if array.ndim != len(dims):
        raise FileError(f"`{entry.path}` has {array.ndim} dimensions, the tensor {len(dims)} levels in the graph")
    if isinstance(array, np.ndarray):
        return array.transpose(axes)
    return sparse.coo_array((array.data, tuple(array.coords[a] for a in axes)), shape=tuple(array.shape[a] for a in axes))


def _note(sizes: dict[str, tuple[int, str]], name: str, dims: Sequence[str], shape: Sequence[int]) -> None:
    """Note the size of each index; raises `FileError` if another tensor has another."""
    for index, size in zip(dims, shape, strict=True):
        known, first = sizes.setdefault(index, (size, name))
        if size != known:
            raise FileError(
                f"index `{index}` has size {size} here and {known} in `{first}`",
                hint="if a file has its dimensions in another order than its levels, name them: `indices: [...]`",
            )


def _sized(
    graph: Graph, arrays: Mapping[str, ArrayOrSparse], named: Mapping[str, Sequence[str]], sizes: Mapping[str, object]
) -> Graph:
    """A graph that declared no tensors, with the shapes of its data."""
    for name in graph.outputs:
        for index, size in zip(named[name], graph.declared[name].shape, strict=True):
            if not size and index not in sizes:
                raise FileError(
                    f"the size of index `{index}` of output `{name}` is unknown: no input has it, and its writer names none"
                )
    tensors = tuple(replace(t, shape=arrays[t.name].shape) if t.name in arrays else t for t in graph.tensors)
    return replace(graph, tensors=tensors)
