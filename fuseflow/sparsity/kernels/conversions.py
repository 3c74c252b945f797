"""Lossless conversions of storages, which look-ups take for operators that lack a format."""

from __future__ import annotations

import math
from typing import Any

import torch

from fuseflow.sparsity.dispatch.registry import register_conversion
from fuseflow.sparsity.entry_positions import known_places
from fuseflow.sparsity.kernels.matrix_kernels import coo_rows, csc_rows, csr_rows, transposed
from fuseflow.sparsity.layouts.layout import DenseTensor, MaskedSparseTensor
from fuseflow.sparsity.layouts.n_of_m import GroupedNMTensor, NMTensor
from fuseflow.sparsity.layouts.sparse import BcsrTensor, CooTensor, CscTensor, CsrTensor, EllTensor


def flat_places(indices: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the places of coordinates, [rank, stored], in a row of all elements of a tensor."""
    strides = torch.tensor([math.prod(shape[d + 1 :]) for d in range(len(shape))], device=indices.device)
    return (indices.long() * strides.view(-1, 1)).sum(0)


@register_conversion(torch.Tensor, DenseTensor)
def dense_to_wrapped(tensor: torch.Tensor) -> DenseTensor:
    return DenseTensor(tensor.detach())


@register_conversion(DenseTensor, torch.Tensor)
@register_conversion(MaskedSparseTensor, torch.Tensor)
def wrapped_to_dense(storage: DenseTensor | MaskedSparseTensor) -> torch.Tensor:
    return storage.data


@register_conversion(CsrTensor, CscTensor)
def csr_to_csc(storage: CsrTensor) -> CscTensor:
    matrix = transposed(csr_rows(storage))
    return CscTensor(matrix.positions, matrix.columns, matrix.values, storage.shape)


@register_conversion(CscTensor, CsrTensor)
def csc_to_csr(storage: CscTensor) -> CsrTensor:
    matrix = transposed(csc_rows(storage))
    return CsrTensor(matrix.positions, matrix.columns, matrix.values, storage.shape)


@register_conversion(BcsrTensor, CsrTensor)
@register_conversion(EllTensor, CsrTensor)
def matrix_to_csr(storage: BcsrTensor | EllTensor) -> CsrTensor:
    matrix = coo_rows(to_coo(storage))
    return CsrTensor(matrix.positions, matrix.columns, matrix.values, storage.shape)


@register_conversion(CsrTensor, CooTensor)
@register_conversion(CscTensor, CooTensor)
@register_conversion(BcsrTensor, CooTensor)
@register_conversion(EllTensor, CooTensor)
@register_conversion(NMTensor, CooTensor)
@register_conversion(GroupedNMTensor, CooTensor)
def to_coo(storage: Any) -> CooTensor:
    """Return the entries of a storage in ascending order of coordinates, without padding."""
    places, shape = known_places(storage), storage.shape
    values, stored = places.values(storage), places.stored(storage)
    indices = torch.stack([index.expand(values.shape).reshape(-1) for index in places.index(storage)])
    kept = slice(None) if stored is None else stored.expand(values.shape).reshape(-1).nonzero().squeeze(1)
    indices, values = indices[:, kept], values.reshape(-1)[kept]
    order = flat_places(indices, shape).argsort()
    return CooTensor(indices[:, order].to(torch.int32), values[order], tuple(shape))
