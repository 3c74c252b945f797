"""Operators that move or cut tensors, as slices, concatenations and paddings with 0 alone, which have an Einsum form."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fuseflow.frontend.linalg.generic import MAX_WINDOW
from fuseflow.frontend.positions.linear_operators import along_each

aten = torch.ops.aten


def pad(x: Tensor, amounts: Sequence[int], value: float | None = 0.0) -> Tensor:
    """Pad with a constant. Another value than 0 is put where a padded tensor of ones is 0; a negative amount is a slice."""
    for position in range(len(amounts) // 2):
        dim, low, high = x.dim() - 1 - position, amounts[2 * position], amounts[2 * position + 1]
        x = x.narrow(dim, max(-low, 0), x.shape[dim] - max(-low, 0) - max(-high, 0))
    grown = [max(amount, 0) for amount in amounts]
    if not any(grown):
        return x
    padded: Tensor = aten.constant_pad_nd(x, grown, 0.0)
    if not value:
        return padded
    inside = aten.constant_pad_nd(x * 0 + 1, grown, 0.0)
    return torch.where(inside != 0, padded, value)


def _pad_mode(x: Tensor, amounts: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    if mode == "constant":
        return pad(x, amounts, value)
    padded: Tensor = aten.pad(x, amounts, mode, value)
    return padded


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        return _roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        cut = (size - shift) % size if size else 0
        if cut:
            x = torch.cat([x.narrow(dim, cut, size - cut), x.narrow(dim, 0, cut)], dim)
    return x


def _centred(x: Tensor, dim: Sequence[int] | None, back: bool) -> Tensor:
    """Move frequency 0 to the middle of dimensions, or back to their beginning."""
    dims = range(x.dim()) if dim is None else dim
    return _roll(x, [-(x.shape[d] // 2) if back else x.shape[d] // 2 for d in dims], list(dims))


def select(x: Tensor, dim: int, index: int) -> Tensor:
    return x.narrow(dim, index % x.shape[dim], 1).squeeze(dim)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return torch.cat([tensor.unsqueeze(dim) for tensor in tensors], dim)


def _glu(x: Tensor, dim: int = -1) -> Tensor:
    first, second = x.chunk(2, dim)
    return first * torch.sigmoid(second)


def _repeat(x: Tensor, times: Sequence[int]) -> Tensor:
    times = [*[1] * (x.dim() - len(times)), *times]
    x = x.reshape((1,) * (len(times) - x.dim()) + tuple(x.shape))
    for dim, count in enumerate(times):
        if count != 1:
            before, (extent, *behind) = x.shape[:dim], x.shape[dim:]
            x = x.unsqueeze(dim).expand(*before, count, extent, *behind).reshape(*before, count * extent, *behind)
    return x


def _unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    dim = dim % x.dim()
    count = len(range(0, x.shape[dim] - size + 1, step))
    return stack([x[(slice(None),) * dim + (steps(n, step, count),)] for n in range(size)], -1)


def _im2col(x: Tensor, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Return the windows of pictures as columns: x of (n, c, h, w) becomes (n, c * kh * kw, windows)."""
    if x.dim() == 3:
        return _im2col(x.unsqueeze(0), kernel, dilation, padding, stride).squeeze(0)
    x = pad(x, [padding[1], padding[1], padding[0], padding[0]])
    counts = [(x.shape[2 + n] - dilation[n] * (kernel[n] - 1) - 1) // stride[n] + 1 for n in range(2)]
    windows = [
        x[:, :, steps(r * dilation[0], stride[0], counts[0]), steps(s * dilation[1], stride[1], counts[1])]
        for r in range(kernel[0])
        for s in range(kernel[1])
    ]
    columns = torch.stack(windows, 2)  # batch, channel, place in the window, row, column
    return columns.reshape(x.shape[0], x.shape[1] * len(windows), counts[0] * counts[1])


def _col2im(
    x: Tensor, size: Sequence[int], kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Tensor:
    """Return the pictures of which `_im2col` makes columns, each pixel the sum of its copies in all windows."""
    if x.dim() == 2:
        return _col2im(x.unsqueeze(0), size, kernel, dilation, padding, stride).squeeze(0)
    spans = [size[n] + 2 * padding[n] for n in range(2)]
    counts = [(spans[n] - dilation[n] * (kernel[n] - 1) - 1) // stride[n] + 1 for n in range(2)]
    x = x.reshape(x.shape[0], x.shape[1] // (kernel[0] * kernel[1]), *kernel, *counts)
    if all(stride[n] == kernel[n] and dilation[n] == 1 and stride[n] * counts[n] == spans[n] for n in range(2)):
        total = x.permute(0, 1, 4, 2, 5, 3).reshape(*x.shape[:2], *spans)  # the windows lie side by side
    else:
        x = spread(spread(x, 4, stride[0]), 5, stride[1])
        total = reduce(
            torch.add,
            [
                _placed(x[:, :, r, s], (r * dilation[0], s * dilation[1]), spans)
                for r in range(kernel[0])
                for s in range(kernel[1])
            ],
        )
    return pad(total, [-padding[1], -padding[1], -padding[0], -padding[0]]) if any(padding) else total


def _placed(x: Tensor, first: Sequence[int], spans: Sequence[int]) -> Tensor:
    """Return pictures of size `spans` that have x from the pixel `first` on, and zeros around."""
    behind = [spans[n] - first[n] - x.shape[2 + n] for n in range(2)]
    return pad(x, [first[1], behind[1], first[0], behind[0]])


def steps(start: int, step: int, count: int) -> slice:
    return slice(start, start + step * (count - 1) + 1, step)


def _sequence(value: int | Sequence[int] | None, rank: int, default: Sequence[int]) -> list[int]:
    """Return a setting as one number for each dimension. A single number holds for all, and None stands for the default."""
    return along_each(default if value is None or value == [] else value, rank)


def padded_windows(
    x: Tensor, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil: bool, value: float
) -> Tensor:
    """Return x padded as its windows need it. With `ceil`, a window that begins inside of x or of its padding on the left counts.
    Without `ceil`, elements behind the only window along a dimension are cut off."""
    amounts: list[int] = []
    for size, k, s, p, d in zip(x.shape[-len(kernel) :], kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1) + 1
        rest = size + 2 * p - reach
        count = -(-rest // s) if ceil else rest // s
        if ceil and count * s >= size + p:
            count -= 1
        missing = count * s + reach - size - p
        amounts = [p, missing if not count else max(missing, 0 if ceil else p), *amounts]
    return pad(x, amounts, value)


def _max_pool(rank: int) -> Callable[..., Tensor]:
    pool = (aten.max_pool1d, aten.max_pool2d, aten.max_pool3d)[rank - 1]

    def max_pool(x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Tensor:
        k = _sequence(kernel, rank, ())
        s, p, d = _sequence(stride, rank, k), _sequence(padding, rank, [0]), _sequence(dilation, rank, [1])
        x = padded_windows(x, k, s, p, d, ceil, -math.inf)
        if math.prod(k) <= MAX_WINDOW or k == s:
            return pool(x, k, s, [0] * rank, d)  # type: ignore[no-any-return]
        for dim in range(rank):  # the maximum along one dimension after the other
            size, step, spread = ([number if n == dim else 1 for n, number in enumerate(setting)] for setting in (k, s, d))
            x = pool(x, size, step, [0] * rank, spread)
        return x

    return max_pool


def conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Convolve. One signal without a batch is a batch of one."""
    rank, kernel = weight.dim() - 2, list(weight.shape[2:])
    if x.dim() == rank + 1:
        return conv(x.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    s, d = _sequence(stride, rank, ()), _sequence(dilation, rank, ())
    if padding == "same":
        around = [n * (k - 1) for n, k in zip(d, kernel, strict=True)]
        x = pad(x, [amount for n in reversed(around) for amount in (0, n % 2)])
        p = [n // 2 for n in around]
    else:
        p = [0] * rank if padding == "valid" else _sequence(padding, rank, ())
    x, p = _around_one_window(x, kernel, s, p, d)
    if rank == 3 and groups > 1:
        return _grouped_conv3d(x, weight, bias, s, p, d, groups)
    return (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1](x, weight, bias, s, p, d, groups)


def _around_one_window(
    x: Tensor, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int]
) -> tuple[Tensor, list[int]]:
    """Return x without the elements behind the only window along a dimension, and the padding that remains to be done: torch-mlir
    takes the extent of such a dimension from the window."""
    amounts, left = list[int](), list[int]()
    for size, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True):
        rest = size + 2 * p - (d * (k - 1) + 1)
        is_cut = 0 < rest < s
        amounts = [*((p, p - rest) if is_cut else (0, 0)), *amounts]
        left.append(0 if is_cut else p)
    return pad(x, amounts), left


def _grouped_conv3d(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    """Add up the convolutions of the planes of a kernel with the pictures that they meet; torch-mlir has no groups in three dimensions."""
    x = pad(x, [0, 0, 0, 0, padding[0], padding[0]])
    planes = weight.shape[2]
    count = (x.shape[2] - dilation[0] * (planes - 1) - 1) // stride[0] + 1
    total: Tensor | None = None
    for n in range(planes):
        pictures = x[:, :, steps(n * dilation[0], stride[0], count)].transpose(1, 2).flatten(0, 1)
        part = functional.conv2d(pictures, weight[:, :, n], None, stride[1:], padding[1:], dilation[1:], groups)
        total = part if total is None else total + part
    assert total is not None
    y = total.reshape(x.shape[0], count, *total.shape[1:]).transpose(1, 2)
    return y if bias is None else y + bias.reshape(-1, 1, 1, 1)


def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    more: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Compute a transposed convolution: x, with zeros between its elements, is convolved with the mirrored weights. `more` is the output
    padding."""
    rank, kernel = weight.dim() - 2, weight.shape[2:]
    s, p, d, m = (_sequence(v, rank, ()) for v in (stride, padding, dilation, more))
    unbatched = x.dim() == rank + 1
    x = x.unsqueeze(0) if unbatched else x
    for n in range(rank):
        x = spread(x, 2 + n, s[n])
    around = [(d[n] * (kernel[n] - 1) - p[n], d[n] * (kernel[n] - 1) - p[n] + m[n]) for n in reversed(range(rank))]
    x = pad(x, [amount for pair in around for amount in pair])
    mirrored = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    mirrored = mirrored.flip(list(range(3, 3 + rank))).transpose(1, 2)
    mirrored = mirrored.reshape(groups * weight.shape[1], weight.shape[0] // groups, *kernel)
    y = conv(x, mirrored, bias, dilation=d, groups=groups)
    return y.squeeze(0) if unbatched else y


def spread(x: Tensor, dim: int, step: int) -> Tensor:
    """Return x with `step - 1` zeros between its elements along a dimension."""
    if step == 1:
        return x
    size, behind = x.shape[dim], x.dim() - 1 - dim
    x = pad(x.unsqueeze(dim + 1), [0, 0] * behind + [0, step - 1])
    x = x.reshape(*x.shape[:dim], size * step, *x.shape[dim + 2 :])
    return x.narrow(dim, 0, (size - 1) * step + 1)


def _slice_scatter(
    x: Tensor, source: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return x with a slice overwritten: the part before it, the source, and the part behind it. With a step, each position is one."""
    dim %= x.dim()
    size = x.shape[dim]
    places = range(size)[slice(start, end, step)]
    source = source.expand(*x.shape[:dim], len(places), *x.shape[dim + 1 :]) if source.dim() == x.dim() else source
    parts: list[Tensor] = []
    behind = 0
    for n, at in enumerate(places if step > 1 else places[:1]):
        width = 1 if step > 1 else len(places)
        parts += [x.narrow(dim, behind, at - behind), source.narrow(dim, n, width)]
        behind = at + width
    parts = [part for part in (*parts, x.narrow(dim, behind, size - behind)) if part.shape[dim]]
    return torch.cat(parts, dim) if len(parts) > 1 else parts[0].clone()


def _select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    at = index % x.shape[dim]
    return _slice_scatter(x, source.unsqueeze(dim), dim, at, at + 1)


SLICE_WRITES: dict[Any, Callable[..., Tensor]] = {
    aten.slice_scatter.default: _slice_scatter,
    aten.select_scatter.default: _select_scatter,
}
"""The forms of a write to a slice after functionalization: a concatenation."""
SLIDING_REPLACEMENTS: dict[object, Callable[..., Any]] = {
    aten.constant_pad_nd.default: pad,
    aten.pad.default: _pad_mode,
    aten.roll.default: _roll,
    aten.fft_fftshift.default: lambda x, dim=None: _centred(x, dim, False),
    aten.fft_ifftshift.default: lambda x, dim=None: _centred(x, dim, True),
    aten.select.int: select,
    aten.unbind.int: lambda x, dim=0: [select(x, dim, n) for n in range(x.shape[dim])],
    aten.unfold.default: _unfold,
    aten.im2col.default: _im2col,
    aten.col2im.default: _col2im,
    aten.glu.default: _glu,
    aten.repeat.default: _repeat,
    aten.tile.default: _repeat,
    aten.max_pool1d.default: _max_pool(1),
    aten.max_pool2d.default: _max_pool(2),
    aten.max_pool3d.default: _max_pool(3),
    **dict.fromkeys((aten.conv1d.default, aten.conv2d.default, aten.conv3d.default), conv),
    **dict.fromkeys((aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding), conv),
    **dict.fromkeys((aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input), conv_transpose),
    aten.stack.default: stack,
}
"""Operators whose lowering in torch-mlir needs loop indices, writes slices, or loses shapes."""
