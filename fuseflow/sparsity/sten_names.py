"""The names of the interface of the paper on STen (Ivanov et al., 2023) that differ from ours, and the thin functions that it has."""

from __future__ import annotations

from typing import Any

import torch

from fuseflow.sparsity.dispatch.sparsification import sparsified
from fuseflow.sparsity.layouts.layout import DenseTensor, MaskedSparseTensor
from fuseflow.sparsity.layouts.sparse import CooTensor, CscTensor, CsrTensor
from fuseflow.sparsity.packed import PackedParameter, PackedTensor
from fuseflow.sparsity.sparsifiers.entries import RandomFraction, Threshold
from fuseflow.sparsity.sparsifiers.fractions import Magnitude
from fuseflow.sparsity.sparsifiers.groups import NM, NMG

SparseTensorWrapper = PackedTensor
SparseParameterWrapper = PackedParameter
ScalarFractionSparsifier = Magnitude
RandomFractionSparsifier = RandomFraction
ScalarThresholdSparsifier = Threshold
PerBlockNMSparsifier = NM
GroupedNMSparsifier = NMG
FixedMaskTensor = MaskedSparseTensor


def random_mask_sparsify(tensor: torch.Tensor, frac: float) -> torch.Tensor:
    """Return a tensor after setting each entry to 0 with the probability `frac`."""
    return tensor * RandomFraction(frac).select(tensor)


def scalar_mask_sparsify(tensor: torch.Tensor, frac: float) -> torch.Tensor:
    """Return a tensor without the fraction of its entries of smallest magnitude."""
    return tensor * Magnitude(frac).select(tensor)


def torch_tensor_to_wrapped_dense(sparsifier: Any, tensor: torch.Tensor, grad_fmt: Any = None) -> PackedTensor:
    """Return the entries of a tensor that a sparsifier keeps, stored dense. `grad_fmt` is the format of its gradient."""
    return _packed(sparsifier, tensor, DenseTensor, grad_fmt)


def torch_tensor_to_csr(sparsifier: Any, tensor: torch.Tensor, grad_fmt: Any = None) -> PackedTensor:
    """Return the entries of a matrix that a sparsifier keeps, stored by row. `grad_fmt` is the format of its gradient."""
    return _packed(sparsifier, tensor, CsrTensor, grad_fmt)


def torch_tensor_to_coo(sparsifier: Any, tensor: torch.Tensor, grad_fmt: Any = None) -> PackedTensor:
    """Return the entries of a tensor that a sparsifier keeps, stored with coordinates. `grad_fmt` is as for CSR."""
    return _packed(sparsifier, tensor, CooTensor, grad_fmt)


def random_fraction_sparsifier_dense_csc(sparsifier: Any, tensor: torch.Tensor, grad_fmt: Any = None) -> PackedTensor:
    """Return the entries of a matrix that a sparsifier keeps, stored by column. `grad_fmt` is the format of its gradient."""
    return _packed(sparsifier, tensor, CscTensor, grad_fmt)


def _packed(sparsifier: Any, tensor: torch.Tensor, storage: type, grad_fmt: Any) -> PackedTensor:
    packed = sparsified(tensor.detach(), sparsifier, storage, PackedTensor)
    return PackedTensor.wrapped_from_dense(packed.wrapped_tensor, tensor, grad_fmt)  # type: ignore[attr-defined]
