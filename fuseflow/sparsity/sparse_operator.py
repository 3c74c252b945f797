"""Operators whose results become sparse as they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fuseflow.errors import SparsityError
from fuseflow.sparsity.dispatch.calls import Call, run
from fuseflow.sparsity.dispatch_formats import DENSE, TensorFormat, storage_class, tensor_format
from fuseflow.sparsity.layouts.layout import DenseTensor
from fuseflow.sparsity.packed import PackedTensor


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
