"""Where the entries of stored sparse tensors stand: gradients, updates and pointwise functions need this for a storage class."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch

from fuseflow.sparsity.layouts.layout import DenseTensor, MaskedSparseTensor
from fuseflow.sparsity.layouts.n_of_m import GroupedNMTensor, NMTensor
from fuseflow.sparsity.layouts.sparse import BcsrTensor, CooTensor, CscTensor, CsrTensor, EllTensor, majors

Index = tuple[torch.Tensor, ...]


def _no_index(storage: Any) -> Index:
    return ()


def _no_padding(storage: Any) -> torch.Tensor | None:
    return None


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a class of storages. Storages are dataclasses whose field `field` holds the values.

    `index` gives the index that reads a dense tensor at the places, in the shape of the values. `stored` gives a mask of that shape which
    is false where a value is padding, which always is 0, or None if there is no padding.
    """

    field: str = "values"
    index: Callable[[Any], Index] = _no_index
    stored: Callable[[Any], torch.Tensor | None] = _no_padding

    def values(self, storage: Any) -> torch.Tensor:
        """Return the values of a storage, padding included."""
        values: torch.Tensor = getattr(storage, self.field)
        return values

    def with_values(self, storage: Any, values: torch.Tensor) -> Any:
        """Return a storage that has other values at the same places. Values in padding are ignored."""
        stored = self.stored(storage)
        return dataclasses.replace(storage, **{self.field: values if stored is None else torch.where(stored, values, 0)})

    def gather(self, storage: Any, dense: torch.Tensor) -> torch.Tensor:
        """Return the entries of a dense tensor at the places of a storage, in the shape of its values, and 0 in padding."""
        values, stored = dense[self.index(storage)], self.stored(storage)
        return values if stored is None else torch.where(stored, values, 0)

    def add_to(self, storage: Any, dense: torch.Tensor, factor: Any = 1) -> None:
        """Add the entries of a storage, times a factor, to a dense tensor."""
        values, index = self.values(storage) * factor, self.index(storage)
        if index:
            dense.index_put_(index, values.to(dense.dtype), accumulate=True)
        else:
            dense.add_(values)

    def pattern(self, storage: Any) -> dict[str, Any]:
        """Return the fields that say where the entries stand: all but the values."""
        fields = (field.name for field in dataclasses.fields(storage))
        return {name: getattr(storage, name) for name in fields if name != self.field}

    def agree(self, first: Any, second: Any) -> bool:
        """Return whether two storages of the class have their entries at the same places, in the same order."""
        if self.values(first).shape != self.values(second).shape:
            return False
        return all(map(_equal, self.pattern(first).values(), self.pattern(second).values()))


def _equal(first: Any, second: Any) -> bool:
    if first is second:
        return True
    if isinstance(first, torch.Tensor):
        return isinstance(second, torch.Tensor) and first.device == second.device and torch.equal(first, second)
    return bool(first == second)


def places_of(storage: type) -> Places | None:
    """Return the places of a storage class, or None for a class with no more than `to_dense`."""
    return PLACES.get(storage)


def known_places(storage: Any) -> Places:
    """Return the places of a storage whose class has them."""
    return PLACES[type(storage)]


def register_places(storage: type, places: Places) -> None:
    """Say where the entries of a storage class stand, so that its tensors are updated in place and have gradients at their places."""
    PLACES[storage] = places


def _csr_index(storage: CsrTensor) -> Index:
    return majors(storage.positions, len(storage.values)), storage.columns


def _csc_index(storage: CscTensor) -> Index:
    return storage.rows, majors(storage.positions, len(storage.values))


def _coo_index(storage: CooTensor) -> Index:
    return tuple(storage.indices)


def _block_index(storage: BcsrTensor) -> Index:
    stored, rows, columns = storage.values.shape
    device = storage.values.device
    block_rows = (majors(storage.positions, stored) * rows).view(-1, 1, 1)
    block_columns = (storage.columns * columns).view(-1, 1, 1)
    return block_rows + torch.arange(rows, device=device).view(-1, 1), block_columns + torch.arange(columns, device=device)


def _ell_index(storage: EllTensor) -> Index:
    return torch.arange(storage.shape[0], device=storage.values.device).view(-1, 1), storage.columns


def _ell_stored(storage: EllTensor) -> torch.Tensor:
    """Return the mask of entries that are no padding. Columns ascend, so that column 0 behind the first entry of a row is padding."""
    first = torch.arange(storage.columns.shape[1], device=storage.columns.device) == 0
    return (storage.columns != 0) | first


def nm_coordinates(storage: NMTensor) -> torch.Tensor:
    """Return the coordinate of each value of an n:m tensor in the dimension of its groups. In padding it may be beyond the size."""
    groups = torch.arange(storage.values.shape[-2], dtype=torch.int32, device=storage.values.device).view(-1, 1)
    return storage.offsets + groups * storage.m


def _nm_index(storage: NMTensor) -> Index:
    rank = len(storage.shape)
    others = [d for d in range(rank) if d != storage.dim]
    index = [torch.empty(0)] * rank
    for axis, d in enumerate(others):
        shape = [1] * (rank + 1)
        shape[axis] = storage.shape[d]
        index[d] = torch.arange(storage.shape[d], device=storage.values.device).view(shape)
    index[storage.dim] = nm_coordinates(storage).clamp(max=storage.shape[storage.dim] - 1)
    return tuple(index)


def _nm_stored(storage: NMTensor) -> torch.Tensor | None:
    """Return the mask of values within the tensor, or None if all are: a short last group has offsets beyond the tensor."""
    size = storage.shape[storage.dim]
    return nm_coordinates(storage) < size if size % storage.m else None


def _grouped_stored(storage: GroupedNMTensor) -> torch.Tensor | None:
    """Return the mask of values within the tensor, or None if all are: the last chunks may be filled up with padding."""
    grid, shape = storage.grid, storage.shape
    if shape[grid.sparse_dim] % grid.m == 0 == shape[grid.group_dim] % grid.columns:
        return None
    along, across = (storage.coordinates()[dim] < shape[dim] for dim in grid.dims)
    return along & across


PLACES: dict[type, Places] = {
    DenseTensor: Places("data"),
    MaskedSparseTensor: Places("data", stored=attrgetter("mask")),
    CsrTensor: Places(index=_csr_index),
    CscTensor: Places(index=_csc_index),
    CooTensor: Places(index=_coo_index),
    BcsrTensor: Places(index=_block_index),
    EllTensor: Places(index=_ell_index, stored=_ell_stored),
    NMTensor: Places(index=_nm_index, stored=_nm_stored),
    GroupedNMTensor: Places(index=GroupedNMTensor.index, stored=_grouped_stored),
}
"""The places of each storage class."""


def compact(storage: Any) -> Any:
    """Return a storage with coordinates of 32 bits, if they fit. A class whose places are unknown is returned as it is."""
    places = places_of(type(storage))
    if places is None or max(getattr(storage, "shape", (0,)), default=0) >= 2**31 or places.values(storage).numel() >= 2**31:
        return storage
    narrow = {k: v.to(torch.int32) for k, v in places.pattern(storage).items() if getattr(v, "dtype", None) is torch.int64}
    return dataclasses.replace(storage, **narrow)
