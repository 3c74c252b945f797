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

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.slices_and_windows import conv, conv_transpose, pad, spread, stack, steps

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
            share = gradient * (1 / (divisor or math.prod(kernel)))
            for done in range(rank):
                share = share.unsqueeze(-2 * done - 1)
            places = [number for n in range(rank) for number in (gradient.shape[n - rank], kernel[n])]
            return _tiled(share.expand(*gradient.shape[:-rank], *places), x.shape[-rank:])
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
    rank, whole = len(kernel), [slice(None)] * (x.dim() - len(kernel))
    pool = (aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)[rank - 2]
    wanted: Tensor = pool(x, kernel, stride, padding, dilation)[0]
    parts, places = list[Tensor](), list[list[int]]()
    for place in itertools.product(*map(range, kernel)):
        starts = [n * d for n, d in zip(place, dilation, strict=True)]
        spans = [steps(*span) for span in zip(starts, stride, gradient.shape[-rank:], strict=True)]
        is_found = x[(*whole, *spans)] == wanted
        parts.append(torch.where(is_found, gradient, 0.0))
        places.append(starts)
        wanted = torch.where(is_found, math.nan, wanted)  # No later element equals it.
    sizes = x.shape[-rank:]
    if kernel == stride and all(d == 1 for d in dilation):
        return _tiled(_stacked(parts, kernel), sizes)
    placed = [_placed(part, sizes, starts, stride) for part, starts in zip(parts, places, strict=True)]
    return sum(placed[1:], placed[0])


def _stacked(parts: list[Tensor], kernel: list[int]) -> Tensor:
    """Return windows side by side, with a dimension for the windows and one for the places in them along each dimension. Each of `parts`
    has one place of all windows, row by row."""
    for done, size in enumerate(reversed(kernel)):
        parts = [stack(parts[n : n + size], -2 * done - 1) for n in range(0, len(parts), size)]
    return parts[0]


def _tiled(windows: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return a tensor whose last dimensions have these sizes, of windows side by side. What is behind the windows is 0."""
    rank = len(sizes)
    outer, last = windows.shape[: -2 * rank], windows.shape[-2 * rank :]
    whole = [last[2 * n] * last[2 * n + 1] for n in range(rank)]
    behind = [amount for size, extent in zip(reversed(sizes), reversed(whole), strict=True) for amount in (0, size - extent)]
    return pad(windows.reshape(*outer, *whole), behind)


def _placed(x: Tensor, sizes: Sequence[int], starts: list[int], stride: list[int]) -> Tensor:
    """Return zeros whose last dimensions have these sizes, with the elements of x from `starts` on, `stride` apart."""
    amounts: list[int] = []
    for dim, size, start, step in zip(range(-len(sizes), 0), sizes, starts, stride, strict=True):
        x = spread(x, x.dim() + dim, step)
        amounts = [start, size - start - x.shape[dim], *amounts]
    return pad(x, amounts)


BACKWARD_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.convolution_backward.default: _convolution,
    aten.avg_pool2d_backward.default: _average(2),
    aten.avg_pool3d_backward.default: _average(3),
    aten.max_pool2d_with_indices_backward.default: _largest,
    aten.max_pool3d_with_indices_backward.default: _largest,
}
"""The formula of each operator. Those of PyTorch serve for all others."""
