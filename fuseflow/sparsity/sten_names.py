"""The names of the interface of the paper on STen (Ivanov et al., 2023) that differ from ours, and the thin functions that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fuseflow.errors import SparsityError
from fuseflow.sparsity.dispatch.calls import Call, run
from fuseflow.sparsity.dispatch.sparsification import sparsified
from fuseflow.sparsity.dispatch_formats import DENSE, TensorFormat, storage_class, tensor_format
from fuseflow.sparsity.layouts.layout import DenseTensor, MaskedSparseTensor
from fuseflow.sparsity.layouts.sparse import CooTensor, CscTensor, CsrTensor
from fuseflow.sparsity.packed import PackedParameter, PackedTensor
from fuseflow.sparsity.sparsifiers.built_in import NM, NMG, Magnitude, RandomFraction, Threshold

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


def sparsified_op(
    orig_op: Callable[..., Any], out_fmt: Iterable[Any] | None = None, grad_out_fmt: Iterable[Any] | None = None
) -> Callable[..., Any]:
    """Return an operator that computes the same as `orig_op`, and makes its results sparse.

    `out_fmt` has the format of each result, as (inline sparsifier, temporary format, external sparsifier, format), and `grad_out_fmt` the
    format of the gradient of each. None leaves them dense. Each call is dispatched anew, by the formats of its arguments.
    """
    outputs = _formats(out_fmt)
    gradients = _formats(grad_out_fmt)
    if outputs and gradients and len(outputs) != len(gradients):
        raise SparsityError(f"`out_fmt` is for {len(outputs)} results, and `grad_out_fmt` for {len(gradients)}")
    outputs = outputs or (DENSE,) * len(gradients)
    gradients = gradients or (DENSE,) * len(outputs)
    # A dense result whose gradient is not dense is wrapped: the wrapper holds the format of the gradient.
    wrapped = tuple(
        output._replace(out=DenseTensor) if storage_class(output.out) is torch.Tensor and gradient != DENSE else output
        for output, gradient in zip(outputs, gradients, strict=True)
    )

    def sparse_operator(*args: Any, **kwargs: Any) -> Any:
        results = run(Call(orig_op, args, kwargs, wrapped, PackedTensor))
        if not gradients:
            return results
        for result, gradient in zip(pytree.tree_leaves(results), gradients, strict=True):
            if isinstance(result, PackedTensor):
                result.grad_fmt = gradient
        return results

    return sparse_operator


def _formats(formats: Iterable[Any] | None) -> tuple[TensorFormat, ...]:
    return tuple(tensor_format(format) for format in formats or ())
