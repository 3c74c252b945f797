"""Products of matrices that are stored n:m:g. Their values are put in the order of n:m, and the products of n:m are used."""

from __future__ import annotations

import torch

from fuseflow.sparsity.kernels.compressed import ROW_KERNELS
from fuseflow.sparsity.kernels.product_kernel import ProductKernel
from fuseflow.sparsity.layouts.grouped import GroupedNMTensor
from fuseflow.sparsity.layouts.n_of_m import NMTensor

_NM_KERNEL = ROW_KERNELS[NMTensor]


def _multiply(storage: GroupedNMTensor, dense: torch.Tensor) -> torch.Tensor:
    return _NM_KERNEL.multiply(in_order(storage), dense)


def _multiply_transposed(storage: GroupedNMTensor, dense: torch.Tensor) -> torch.Tensor:
    return _NM_KERNEL.multiply_transposed(in_order(storage), dense)


def _sample(storage: GroupedNMTensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    ordered = in_order(storage)
    sampled = _NM_KERNEL.sample(ordered, left, right)
    slots = _slots(storage)
    columns, groups, n = sampled.shape
    filled = sampled.new_zeros(_columns(storage), groups, n)
    filled[:columns] = sampled
    return filled.view(-1, n)[slots]


def in_order(storage: GroupedNMTensor) -> NMTensor:
    """Return a tensor n:m:g as one n:m: columns of chunks in order, n of every m coordinates, [columns, groups, n]."""
    slots, n = _slots(storage), storage.values.shape[-1]
    groups, size = storage.grid.extents[-1], storage.shape[storage.grid.group_dim]
    values = torch.empty_like(storage.values).view(-1, n)
    values[slots] = storage.values
    offsets = torch.empty_like(values, dtype=torch.uint8)
    offsets[slots] = storage.places.to(torch.uint8).unsqueeze(1).expand(storage.values.shape)
    shape = (-1, groups, n)
    return NMTensor(offsets.view(shape)[:size], values.view(shape)[:size], storage.shape, storage.grid.m, storage.grid.sparse_dim)


def _slots(storage: GroupedNMTensor) -> torch.Tensor:
    """Return the number of each column of each chunk, [chunks, patterns, g], among all columns and groups of the matrix."""
    number = torch.arange(storage.grid.count, device=storage.values.device).view(-1, 1, 1)
    across, along = storage.grid.chunk_coordinates(number)
    slots: torch.Tensor = (across * storage.grid.columns + storage.columns) * storage.grid.extents[-1] + along
    return slots


def _columns(storage: GroupedNMTensor) -> int:
    """Return how many columns all chunks have, padding included."""
    return storage.grid.extents[-2] * storage.grid.columns


GROUPED_KERNEL = ProductKernel(_multiply, _multiply_transposed, _sample)
"""The products of matrices that are stored n:m:g."""
