"""Tensors that share the positions and coordinates of another one: only their values are their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuseflow.errors import TensorError
from fuseflow.tensors.blocks import Block, tile_dimensions
from fuseflow.tensors.tensor import Tensor


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
