"""Formulas of operators of gradients, which `torch.autograd` calls, where PyTorch has none or one without an Einsum form.

The gradient of a convolution is a transposed convolution of the gradient of its result, and a convolution of its operand by that gradient.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.slices_and_windows import conv, conv_transpose, pad, spread, steps
from fuseflow.frontend.derivatives.extremes import as_windows, beside_windows, joined_windows, of_first, places_of

aten = torch.ops.aten


def _convolution(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    _: object,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    __: object,
    groups: int,
    wanted: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of the operand, the weight and the bias of a convolution, where they are `wanted`."""
    if transposed:
        raise FrontendError(
            "the gradient of `torch.convolution(transposed=True)` has no Einsum form", hint="use `conv_transpose2d`"
        )
    of_x = _of_operand(gradient, weight, x.shape[2:], stride, padding, dilation, groups) if wanted[0] else None
    of_weight = _of_weight(gradient, x, weight, stride, padding, dilation, groups) if wanted[1] else None
    of_bias = gradient.sum([0, *range(2, x.dim())]) if wanted[2] else None
    return of_x, of_weight, of_bias


def _of_operand(
    gradient: Tensor,
    weight: Tensor,
    sizes: Sequence[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
) -> Tensor:
    """Return the gradient of the operand of a convolution, whose last dimensions have these sizes."""
    settings = zip(sizes, gradient.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    rest = [size + 2 * p - (count - 1) * s - d * (k - 1) - 1 for size, count, k, s, p, d in settings]
    return conv_transpose(gradient, weight, None, stride, padding, rest, groups, dilation)


def _of_weight(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    """Return the gradient of the weight: the operand, with its batch in the place of channels, is convolved by the gradient. Stride and
    dilation change places."""
    batch, channels, *sizes = x.shape
    grouped = x.reshape(batch, groups, channels // groups, *sizes).movedim(0, 2).transpose(0, 1)
    columns = grouped.reshape(channels // groups, groups * batch, *sizes)
    product = conv(columns, gradient.transpose(0, 1), None, dilation, padding, stride, groups).transpose(0, 1)
    for dim, size in enumerate(weight.shape[2:], 2):
        product = product.narrow(dim, 0, size)
    return product


def _average(rank: int) -> Callable[..., Tensor]:
    def average(
        gradient: Tensor,
        x: Tensor,
        kernel: list[int],
        stride: list[int],
        padding: list[int],
        _: bool,
        __: bool,
        divisor: int | None,
    ) -> Tensor:
        """Return the gradient of the operand of an average over windows: each element of a window has the same share. Where windows
        overlap, that is a convolution of each channel with equal weights."""
        stride = stride or kernel
        if kernel == stride and not any(padding):
            share = beside_windows(gradient * (1 / (divisor or math.prod(kernel))), rank)
            extents = [extent for pair in zip(gradient.shape[-rank:], kernel, strict=True) for extent in pair]
            return joined_windows(share.expand(*gradient.shape[:-rank], *extents), x.shape[-rank:])
        weight = gradient.new_full((1, 1, *kernel), 1 / (divisor or math.prod(kernel)))
        pictures = gradient.reshape(-1, 1, *gradient.shape[-rank:])
        return _of_operand(pictures, weight, x.shape[-rank:], stride, padding, [1] * rank).reshape(x.shape)

    return average


def _largest(
    gradient: Tensor,
    x: Tensor,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil: bool,
    _: Tensor,
) -> Tensor:
    """Return the gradient of the operand of a maximum over windows, which is padded already. The first of equal elements has all of it."""
    assert not ceil and not any(padding)
    rank, outer = len(kernel), [slice(None)] * (x.dim() - len(kernel))
    sizes, counts = x.shape[-rank:], gradient.shape[-rank:]
    pool = (aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)[rank - 2]
    wanted: Tensor = pool(x, kernel, stride, padding, dilation)[0]
    if kernel == stride and all(d == 1 for d in dilation):
        shares, largest = beside_windows(gradient, rank), beside_windows(wanted, rank)
        return joined_windows(of_first(shares, as_windows(x, kernel, counts), largest, places_of(rank)), sizes)
    parts = list[Tensor]()
    for place in itertools.product(*map(range, kernel)):
        starts = [n * d for n, d in zip(place, dilation, strict=True)]
        spans = [steps(*span) for span in zip(starts, stride, counts, strict=True)]
        is_found = x[(*outer, *spans)] == wanted
        parts.append(_placed(torch.where(is_found, gradient, 0.0), sizes, starts, stride))
        wanted = torch.where(is_found, math.nan, wanted)  # No later element equals it.
    return sum(parts[1:], parts[0])


def _placed(x: Tensor, sizes: Sequence[int], starts: list[int], stride: list[int]) -> Tensor:
    """Return zeros whose last dimensions have these sizes, with the elements of x from `starts` on, `stride` apart."""
    amounts: list[int] = []
    for dim, size, start, step in zip(range(-len(sizes), 0), sizes, starts, stride, strict=True):
        x = spread(x, x.dim() + dim, step)
        amounts = [start, size - start - x.shape[dim], *amounts]
    return pad(x, amounts)


_NAMES = """
    threshold_backward gelu_backward silu_backward elu_backward softplus_backward hardtanh_backward tanh_backward sigmoid_backward
    leaky_relu_backward hardswish_backward hardsigmoid_backward mish_backward log_sigmoid_backward mse_loss_backward
    smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward slice_backward select_backward unfold_backward
    glu_backward _softmax_backward_data _log_softmax_backward_data reflection_pad1d_backward upsample_bilinear2d
"""
"""Operators whose formula is PyTorch's."""
BACKWARD_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    **get_decompositions([getattr(aten, name) for name in _NAMES.split()]),
    aten.convolution_backward.default: _convolution,
    aten.hardshrink_backward.default: lambda gradient, x, bound: torch.where(x.abs() <= bound, 0.0, gradient),
    aten.avg_pool2d_backward.default: _average(2),
    aten.avg_pool3d_backward.default: _average(3),
    aten.max_pool2d_with_indices_backward.default: _largest,
    aten.max_pool3d_with_indices_backward.default: _largest,
}
"""The formula of each operator that has one with an Einsum form: PyTorch's, or an own one."""
