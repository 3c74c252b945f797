"""Blocked tensors: tensors in blocks of b1 x b2 elements, whose levels hold coordinates of blocks and whose values are tiles.

    A[64, 48] csr, block (16, 8)     4 x 6 blocks, compressed rows of blocks, values [stored, 16, 8]

Blocks begin at coordinate 0. The last block of a dimension may reach over its edge, where its elements are padding without a meaning. At
most two dimensions have blocks of more than one element. If two have, the first one runs down the columns of a tile and the second one
along its rows. If only one has, it runs along the row of a tile if it is the last dimension of the tensor, or else down the column.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import TensorError
from fuseflow.tensors.format import Format
from fuseflow.tensors.pack import dense_levels, from_coordinates, pack, repack
from fuseflow.tensors.tensor import Tensor

Block: TypeAlias = tuple[int, ...]
"""The size of a block along each dimension, or () where every block is a single element."""

MAX_BLOCK_SIDE: Final = 1024
"""The greatest size of a block along a dimension. It is limited because a tile is one token of a stream."""


def block_text(block: Block) -> str:
    """Return a block as it is written, such as `16x16` or `1x16x16`."""
    return "x".join(map(str, block))


def parse_block(text: str, rank: int) -> Block:
    """Read a block such as `16x16`. Raise `TensorError` unless it has a size for each of `rank` dimensions, and at most two of
    them are above 1."""
    if not re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9})*", text):
        raise TensorError(f"cannot read the block `{text}`", hint="write its size along each dimension: `16x16`")
    return check_block(tuple(map(int, text.split("x"))), rank)


def check_block(block: Block, rank: int) -> Block:
    """Return the block of a tensor of this rank, or () if the block is a single element. Raise `TensorError` if the sizes are not a
    block."""
    if len(block) != rank:
        dimensions = "1 dimension" if rank == 1 else f"{rank} dimensions"
        raise TensorError(f"a block of {block_text(block)} has {len(block)} sizes, the tensor {dimensions}")
    if any(size < 1 or size > MAX_BLOCK_SIDE for size in block):
        raise TensorError(f"a block of {block_text(block)}: its sizes are 1 to {MAX_BLOCK_SIDE}")
    return block if tile_shape(block) else ()


def block_counts(shape: tuple[int, ...], block: Block) -> tuple[int, ...]:
    """Return the number of blocks along each dimension.

    >>> block_counts((64, 50), (16, 8))
    (4, 7)
    """
    return tuple(-(-size // b) for size, b in zip(shape, block, strict=True)) if block else shape


def tile_shape(block: Block) -> tuple[int, ...]:
    """Return the rows and columns of a block as a tile, or () for a single element.

    >>> tile_shape((1, 16, 8)), tile_shape((16, 1)), tile_shape((1, 16)), tile_shape((16,))
    ((16, 8), (16, 1), (1, 16), (1, 16))
    """
    row, column = tile_dimensions(block)
    if row is None and column is None:
        return ()
    return (1 if row is None else block[row], 1 if column is None else block[column])


def tile_dimensions(block: Block) -> tuple[int | None, int | None]:
    """Return the dimension that the row index of a tile runs over and the one of its column index, or None where a tile has only one row or
    column. Raise `TensorError` if more than two dimensions are in blocks."""
    dimensions = [d for d, size in enumerate(block) if size > 1]
    match dimensions:
        case []:
            return None, None
        case [first, second]:
            return first, second
        case [one] if one == len(block) - 1:
            return None, one
        case [one]:
            return one, None
        case _:
            message = f"a block of {block_text(block)} has {len(dimensions)} dimensions"
            raise TensorError(message, hint="at most two can be in blocks")


def to_blocks(tensor: Tensor, block: Block) -> Tensor:
    """Store a tensor of single elements in blocks. A block is stored if the tensor stores any of its elements; its other elements are
    implicit.

    >>> from fuseflow.tensors import Format
    >>> to_blocks(pack(np.eye(4), Format.parse("csr", 2)), (2, 2)).values[1].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if not tile_shape(block):
        return tensor
    if tensor.format.all_dense:
        tiles = split_into_tiles(tensor.to_dense(), block, tensor.fill)
        stored = tiles.transpose((*tensor.format.order, tiles.ndim - 2, tiles.ndim - 1)).reshape(-1, *tiles.shape[-2:])
        levels = dense_levels(tensor.format.levels, [tiles.shape[d] for d in tensor.format.order])
        return Tensor(tiles.shape[:-2], tensor.format, levels, np.ascontiguousarray(stored), tensor.fill, tensor.type)
    shape, tile = block_counts(tensor.shape, block), tile_shape(block)
    coordinates, elements = tensor.entries()
    sizes = np.array(block, dtype=np.int64)[:, None]
    outer, inner = np.divmod(coordinates, sizes)
    order = list(tensor.format.order)
    block_numbers = (
        np.ravel_multi_index(tuple(outer[order]), tuple(shape[d] for d in order)) if len(elements) else np.zeros(0, np.int64)
    )
    stored_blocks, block_positions = np.unique(block_numbers, return_inverse=True)
    values = np.full((len(stored_blocks), *tile), tensor.fill, dtype=tensor.dtype)
    rows, columns = (np.zeros(len(elements), np.int64) if d is None else inner[d] for d in tile_dimensions(block))
    values[block_positions, rows, columns] = elements
    block_coordinates = np.empty((len(shape), len(stored_blocks)), dtype=np.int64)
    block_coordinates[order] = np.unravel_index(stored_blocks, tuple(shape[d] for d in order)) if len(stored_blocks) else 0
    return from_coordinates(shape, block_coordinates, values, tensor.format, tensor.fill, tensor.type)


def stored_in(tensor: Tensor, format: Format, block: Block) -> Tensor:
    """Store a tensor of single elements in a format and in blocks, as memory holds it."""
    return to_blocks(tensor if tensor.format == format else repack(tensor, format), block)


def from_blocks(tensor: Tensor, shape: tuple[int, ...], block: Block) -> Tensor:
    """Store a tensor in blocks as one of single elements, which has this shape. It stores every element of a stored block except
    padding."""
    if not tile_shape(block):
        return tensor
    sides = tile_dimensions(block)
    if tensor.format.all_dense:
        dense = join_tiles(tensor.to_dense(), shape, block)
        return pack(dense, tensor.format, tensor.fill, copy=False, type=tensor.type)
    rows, columns = tensor.tile
    counted, tiles = tensor.entries()
    coordinates = np.repeat(counted * np.array(block, dtype=np.int64)[:, None], rows * columns, axis=1)
    for side, steps in zip(sides, np.divmod(np.arange(rows * columns), columns), strict=True):
        if side is not None:
            coordinates[side] += np.tile(steps, len(tiles))
    inside = (coordinates < np.array(shape, dtype=np.int64)[:, None]).all(axis=0)
    return from_coordinates(shape, coordinates[:, inside], tiles.reshape(-1)[inside], tensor.format, tensor.fill, tensor.type)


def split_into_tiles(array: npt.NDArray[np.generic], block: Block, fill: float) -> npt.NDArray[np.generic]:
    """Return a dense array as tiles, [blocks along each dimension..., rows, columns], padded with `fill`."""
    shape, rank = block_counts(array.shape, block), array.ndim
    padded = np.full(tuple(n * b for n, b in zip(shape, block, strict=True)), fill, dtype=array.dtype)
    padded[tuple(slice(0, size) for size in array.shape)] = array
    split_axes = padded.reshape([length for pair in zip(shape, block, strict=True) for length in pair])
    return split_axes.transpose((*range(0, 2 * rank, 2), *range(1, 2 * rank, 2))).reshape(*shape, *tile_shape(block))


def join_tiles(tiles: npt.NDArray[np.generic], shape: tuple[int, ...], block: Block) -> npt.NDArray[np.generic]:
    """Return the array of this shape that `split_into_tiles` cut into tiles."""
    counts, rank = block_counts(shape, block), len(shape)
    split_axes = tiles.reshape(*counts, *block)
    ordered = split_axes.transpose([axis for d in range(rank) for axis in (d, rank + d)])
    padded = ordered.reshape([n * b for n, b in zip(counts, block, strict=True)])
    return padded[tuple(slice(0, size) for size in shape)]


def with_structure_of(other: Tensor, tensor: Tensor, block: Block = ()) -> Tensor:
    """Return the values of a tensor of single elements at the places of `other`, which may be in blocks of the size `block`. It stores
    0 at places that the tensor lacks. Raises `TensorError` for an entry that is not 0 elsewhere.

    >>> from fuseflow.tensors import Format, pack
    >>> mask, momentum = pack([[1, 0], [1, 1]], Format.parse("csr", 2)), pack([[0, 0], [0, 5]], Format.dense(2))
    >>> with_structure_of(mask, momentum).values.tolist()
    [0, 0, 5]
    """
    coordinates, values = tensor.entries()
    outer, inner = np.divmod(coordinates, np.array(block, dtype=np.int64)[:, None]) if other.tile else (coordinates, coordinates)
    places, refs = other.places()
    numbers, wanted = (np.ravel_multi_index(tuple(c), other.shape) for c in (places, outer))
    order = np.argsort(numbers)
    at = order[np.minimum(np.searchsorted(numbers, wanted, sorter=order), len(order) - 1)] if len(order) else order
    is_place = numbers[at] == wanted if len(order) else np.zeros(len(wanted), dtype=bool)
    outside = np.flatnonzero(~is_place & (values != 0))
    if len(outside):
        first = outside[0]
        place = ", ".join(map(str, coordinates[:, first]))
        raise TensorError(f"its entry {values[first]:g} at ({place}) is at no place of the tensor that it is like")
    stored = np.zeros((len(other.values), *other.tile), dtype=tensor.dtype)
    kept = refs[at[is_place]] if len(order) else at
    tile = tuple(0 if d is None else inner[d][is_place] for d in tile_dimensions(block)) if other.tile else ()
    stored[(kept, *tile)] = values[is_place]
    return replace(other, values=stored, type=tensor.type)
