"""Loading of graphs and their input tensors from files, for `fuseflow simulate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from fuseflow.errors import FileError, FuseFlowError, Span, UsageError
from fuseflow.filesystem import read_bytes, read_text
from fuseflow.samml import protobuf
from fuseflow.samml import text as samml_text
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.samml.nodes import Graph, TensorDecl, show_tile
from fuseflow.samml.proto_foreign import tile_indices
from fuseflow.samml.verify import verify
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.array_files import ArrayOrSparse, check_shape, check_values, load_array, pack_declared, read_fibertree
from fuseflow.tensors.blocks import Block, block_counts, from_blocks, parse_block, tile_dimensions, tile_shape, to_blocks
from fuseflow.tensors.dtypes import parse_dtype
from fuseflow.tensors.levels import Dense
from fuseflow.tensors.pack import from_coordinates
from fuseflow.tensors.tensor_listing import TensorEntry, read_entries

LIST_KEYS = ("order", "levels", "indices", "block")
TEXT_SUFFIXES = (".txtpb", ".pbtxt", ".textproto")


def load_graph(path: str | Path, tensors: str | Path) -> tuple[Graph, dict[str, Tensor]]:
    """Return a graph and its input tensors by name, ready to simulate.

    `path` is a SAMML protobuf, binary (`.bin`, `.pb`) or text (`.txtpb`), or fuseflow's text form (`.samml`); `tensors` is a YAML
    file:

        B: {path: b.npz, order: [i, k], levels: [compressed, compressed]}

    `order` names the indices as they are stored, outermost level first, and `levels` are their formats: both must be those of the
    graph, and may be left out where the graph has them. A file has its dimensions as the graph declares them, or in storage order
    if the graph declares no tensors; `indices` names its dimensions if their order is another. A tensor of tiles is cut out of
    its file; `block: [16, 16]` is the size of a tile along each dimension, which may be left out of matrices and vectors. Raises
    a `FuseFlowError` for what does not fit.
    """
    path = Path(path)
    data = _data(path)
    try:
        graph = _graph(path, data, {})
        stored_indices = {} if path.suffix == ".samml" else protobuf.stored_indices(data)
    except FuseFlowError as error:
        error.span = error.span or Span(str(path), 1)
        raise
    auxiliary = auxiliary_tensors(graph)
    entries = read_entries(tensors, tuple(n for n in graph.inputs if n not in auxiliary), f"graph `{graph.name}`", LIST_KEYS)
    contents: dict[str, ArrayOrSparse | Tensor] = {}
    blocks: dict[str, Block] = {}
    counts: dict[str, tuple[int, ...]] = {}  # shapes, in elements or in tiles
    sizes: dict[str, tuple[int, str]] = {}
    file_indices: dict[str, tuple[str, ...]] = {}  # of another tool's tensors of tiles: the indices of the dimensions of the file
    for entry in entries:
        decl = graph.declared[entry.name]
        with entry.named_in_errors():
            dims = _dimensions(decl, entry, stored_indices.get(entry.name, ()))
            if stored_indices and decl.tile:
                file_indices[entry.name] = _of_file(entry, dims)
                decl, dims = _turned(decl, dims, file_indices[entry.name]), file_indices[entry.name]
            blocks[entry.name] = _block(decl, entry)
            content = _content(decl, entry, dims, blocks[entry.name])
            contents[entry.name] = content
            stored_tiles = isinstance(content, Tensor)
            counts[entry.name] = content.shape if stored_tiles else block_counts(content.shape, blocks[entry.name])
            _note(sizes, entry.name, dims, counts[entry.name])
    if stored_indices:
        graph = _sized(
            _graph(path, data, {index: size for index, (size, _) in sizes.items()}),
            counts,
            stored_indices,
            sizes,
            file_indices,
            blocks,
        )
    inputs = dict(auxiliary)
    for entry in entries:
        with entry.named_in_errors():
            decl, content = graph.declared[entry.name], contents[entry.name]
            if isinstance(content, Tensor):
                inputs[entry.name] = _checked(content, decl)
            else:
                inputs[entry.name] = _packed(content, decl, blocks[entry.name], not stored_indices)
    return graph, inputs


def _data(path: Path) -> bytes | str:
    if path.suffix in (".bin", ".pb"):
        return read_bytes(path, "the graph")
    if path.suffix in (".samml", *TEXT_SUFFIXES):
        return read_text(path, "the graph")
    raise UsageError(
        f"cannot read `{path}` as a graph",
        hint=f"give a SAMML protobuf (.bin, .pb, or text: {', '.join(TEXT_SUFFIXES)}) or .samml",
    )


def _graph(path: Path, data: bytes | str, sizes: Mapping[str, int]) -> Graph:
    if isinstance(data, bytes):
        return protobuf.from_proto(data, sizes)
    if path.suffix == ".samml":
        graph = samml_text.parse(data, str(path))
        verify(graph)
        return graph
    return protobuf.from_text(data, sizes)


def _dimensions(decl: TensorDecl, entry: TensorEntry, named: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each dimension of a tensor. `named` has the indices of its levels in the graph ("": none). Raises
    `FileError` if the entry of the YAML file contradicts the graph."""
    order, levels = entry.lists.get("order"), entry.lists.get("levels")
    stored = tuple(level.text for level in decl.format.levels)
    if levels is not None and levels != stored:
        raise FileError(f"`levels` are [{', '.join(levels)}], the graph has [{', '.join(stored)}]")
    for key in ("order", "indices"):
        indices = entry.lists.get(key, stored)
        if len(indices) != len(stored) or (key in entry.lists and len(set(indices)) != len(indices)):
            raise FileError(f"`{key}` is [{', '.join(indices)}]: it names each of the {len(stored)} indices once")
    names = _names(decl, named or [""] * len(stored))
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


def _of_file(entry: TensorEntry, dims: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the dimensions of an entry's file, given the names of the tensor's dimensions."""
    file = entry.lists.get("indices", tuple(dims))
    if sorted(file) != sorted(dims):
        raise FileError(f"`indices` are [{', '.join(file)}], those of the tensor [{', '.join(dims)}]")
    return file


def _content(decl: TensorDecl, entry: TensorEntry, dims: Sequence[str], block: Block) -> ArrayOrSparse | Tensor:
    """Return the array of an entry of the YAML file, with its dimensions as declared, or a tensor if the entry is a folder of
    fibertrees. `dims` are the names of the dimensions."""
    file = _of_file(entry, dims)
    axes = tuple(file.index(index) for index in dims)
    if entry.path.is_dir():
        return _fibertree(decl, entry, axes, block)
    array = load_array(entry.path)
    if array.ndim != len(dims):
        raise FileError(f"`{entry.path}` has {array.ndim} dimensions, the tensor {len(dims)} levels in the graph")
    if isinstance(array, np.ndarray):
        return array.transpose(axes)
    from scipy import sparse  # see `tensors.pack.is_scipy`

    return sparse.coo_array((array.data, tuple(array.coords[a] for a in axes)), shape=tuple(array.shape[a] for a in axes))


def _fibertree(decl: TensorDecl, entry: TensorEntry, axes: Sequence[int], block: Block) -> Tensor:
    """Return a tensor from a folder of fibertrees, with its dimensions as declared. `axes` has the position of each in the
    folder.

    Nothing is packed again. So values that are not stored have the declared implicit value, and the padding of tiles stays.
    """
    format = replace(decl.format, order=tuple(axes[d] for d in decl.format.order))
    inside = tuple(block[axes.index(k)] for k in range(len(axes))) if block else ()
    tensor = read_fibertree(entry.path, entry.name, format, tile_shape(inside), decl.fill)
    values = tensor.values
    rows, columns = tile_dimensions(block)
    if rows is not None and columns is not None and axes[rows] > axes[columns]:
        values = values.transpose(0, 2, 1)
    return Tensor(tuple(tensor.shape[a] for a in axes), decl.format, tensor.levels, values, decl.fill)


def _block(decl: TensorDecl, entry: TensorEntry) -> Block:
    """Return the size of a tile along each dimension of the tensor, or () for single elements."""
    sizes, tile, rank = entry.lists.get("block"), decl.tile, len(decl.shape)
    if sizes is not None:
        block = parse_block("x".join(sizes), rank)
        if tile_shape(block) != (() if prod(tile) == 1 else tile) and (rank != 1 or prod(block) != prod(tile)):
            have = f"tiles of {show_tile(tile)}" if tile else "no tiles of this tensor"
            raise FileError(f"`block` is [{', '.join(sizes)}], the graph has {have}")
        return block
    if prod(tile) == 1:
        return ()
    if rank == 1 and 1 in tile:
        return (prod(tile),)
    if rank != 2:
        raise FileError(
            f"the graph has tiles of {show_tile(tile)}, and does not say along which of {rank} dimensions",
            hint="give their size along each: `block: [1, 16, 16]`",
        )
    return tile


def _checked(tensor: Tensor, decl: TensorDecl) -> Tensor:
    """Return a tensor from a folder of fibertrees with the declared type. Raises `FileError` if it is not as declared."""
    check_shape(tensor.shape, decl.shape)
    type = parse_dtype(decl.dtype)
    check_values(tensor.values, decl.dtype, tensor.coordinates)
    values = type.hold(tensor.values).reshape(-1, *decl.tile)  # a vector may be in columns
    return replace(tensor, format=decl.format, values=values, type=type)


def _packed(array: ArrayOrSparse, decl: TensorDecl, block: Block, padded: bool) -> Tensor:
    counts = block_counts(array.shape, block)
    if block and (counts != decl.shape or not (padded or _elements(counts, block) == array.shape)):
        raise FileError(f"an array of {list(array.shape)} is not {list(decl.shape)} tiles of {show_tile(decl.tile)}")
    tensor = to_blocks(pack_declared(array, replace(decl, shape=array.shape) if block else decl), block)
    return replace(tensor, values=tensor.values.reshape(-1, *decl.tile))  # a vector may be in columns


def merge_tiles(tensor: Tensor) -> Tensor:
    """Return the tensor of the single elements of all tiles, padding included.

    Tiles of a tensor that does not have one or two dimensions become two more dimensions.
    """
    tile, rank = tensor.tile, len(tensor.shape)
    if prod(tile) == 1:
        return replace(tensor, values=tensor.values.reshape(-1))
    if rank == 2:
        return from_blocks(tensor, _elements(tensor.shape, tile), tile)
    if rank == 1 and 1 in tile:
        row = replace(tensor, values=tensor.values.reshape(-1, 1, prod(tile)))
        return from_blocks(row, _elements(tensor.shape, (prod(tile),)), (prod(tile),))
    coordinates, tiles = tensor.entries()
    where = np.repeat(coordinates, prod(tile), axis=1)
    inside = np.tile(np.indices(tile).reshape(2, -1), len(tiles))
    format = Format((*tensor.format.levels, Dense(), Dense()), (*tensor.format.order, rank, rank + 1))
    return from_coordinates(
        (*tensor.shape, *tile), np.concatenate([where, inside]), tiles.reshape(-1), format, tensor.fill, tensor.type
    )


def _elements(counts: Sequence[int], block: Block) -> tuple[int, ...]:
    return tuple(n * b for n, b in zip(counts, block, strict=True))


def _note(sizes: dict[str, tuple[int, str]], name: str, dims: Sequence[str], shape: Sequence[int]) -> None:
    """Record the size of each index in `dims` for tensor `name`. Raises `FileError` if another tensor has another size."""
    for index, size in zip(dims, shape, strict=True):
        expected, first = sizes.setdefault(index, (size, name))
        if size != expected:
            raise FileError(
                f"index `{index}` has size {size} here and {expected} in `{first}`",
                hint="if a file has its dimensions in another order than its levels, name them: `indices: [...]`",
            )


def _sized(
    graph: Graph,
    shapes: Mapping[str, tuple[int, ...]],
    named: Mapping[str, Sequence[str]],
    sizes: Mapping[str, object],
    turned: Mapping[str, Sequence[str]],
    blocks: Mapping[str, Block],
) -> Graph:
    """Return a graph that declared no tensors, with shapes from its data. Tensors of tiles have the dimensions of their files."""
    for name in graph.outputs:
        for index, size in zip(named[name], graph.declared[name].shape, strict=True):
            if not size and index not in sizes:
                raise FileError(
                    f"the size of index `{index}` of output `{name}` is unknown: no input has it, and its writer names none"
                )
    ends = tile_indices(graph, {name: _ends(file, blocks[name], named[name]) for name, file in turned.items()})
    tensors = []
    for decl in graph.tensors:
        stored = _names(decl, named[decl.name])
        if decl.name in turned:
            decl = _turned(decl, stored, turned[decl.name])
        elif set(ends.get(decl.name, ("", ""))) <= set(stored) - {""}:
            outer = [index for index in stored if index not in ends[decl.name]]
            decl = _turned(decl, stored, (*outer, *ends[decl.name]))
        tensors.append(replace(decl, shape=shapes[decl.name]) if decl.name in shapes else decl)
    return replace(graph, tensors=tuple(tensors))


def _ends(file: Sequence[str], block: Block, indices: Sequence[str]) -> tuple[str, str]:
    """Return the indices along the rows and the columns of tiles, "" for an index that the graph does not name. `file` has the
    indices of the dimensions of a file."""
    rows, columns = ("" if d is None or file[d] not in indices else file[d] for d in tile_dimensions(block))
    return rows, columns


def _names(decl: TensorDecl, named: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each dimension of a tensor, `NAME.level` for one without a name."""
    return tuple(index or f"{decl.name}.{p}" for p, index in enumerate(named))


def _turned(decl: TensorDecl, stored: Sequence[str], dims: Sequence[str]) -> TensorDecl:
    """Return a declaration, which has its dimensions in storage order (`stored`), with the dimensions in the order of `dims`."""
    order = tuple(list(dims).index(index) for index in stored)
    shape = tuple(decl.shape[list(stored).index(index)] for index in dims)
    return replace(decl, shape=shape, format=replace(decl.format, order=order))
