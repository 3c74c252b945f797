"""The largest and the smallest element, and products of many elements.

As in PyTorch, the first of equal elements has the gradient of an extreme where there is also a position of it, and equal ones share it
where elements are scattered. The gradient of a factor is the product of the others, which is no quotient where a factor is 0.
Windows side by side along the last dimensions of a tensor are a dimension for the windows and one for the places in them, along each of
these dimensions: P, K, Q, L stand for P x Q windows of K x L elements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fuseflow.frontend.derivatives.rule import Gradients, Rule, given
from fuseflow.frontend.positions.linear_operators import scanned_along
from fuseflow.frontend.positions.selection_operators import extreme_along, extreme_at_edges, multiplied_along


def as_windows(x: Tensor, kernel: Sequence[int], counts: Sequence[int]) -> Tensor:
    """Return as many windows as the `counts` say. What is behind them is cut off."""
    outer = x.shape[: -len(kernel)]
    for dim, size, count in zip(range(-len(kernel), 0), kernel, counts, strict=True):
        x = x.narrow(dim, 0, size * count)
    return x.reshape(*outer, *(extent for pair in zip(counts, kernel, strict=True) for extent in pair))


def beside_windows(x: Tensor, rank: int) -> Tensor:
    """Return x, which has one element for each window, with a dimension of extent 1 for the places in it."""
    for done in range(rank):
        x = x.unsqueeze(-2 * done - 1)
    return x


def places_of(rank: int) -> list[int]:
    """Return the dimensions of the places in windows."""
    return list(range(1 - 2 * rank, 0, 2))


def joined_windows(windows: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return a tensor whose last dimensions have these sizes, of windows side by side. What is behind them is 0."""
    rank = len(sizes)
    outer, extents = windows.shape[: -2 * rank], windows.shape[-2 * rank :]
    whole = [extents[2 * n] * extents[2 * n + 1] for n in range(rank)]
    behind = [amount for size, extent in zip(reversed(sizes), reversed(whole), strict=True) for amount in (0, size - extent)]
    joined = windows.reshape(*outer, *whole)
    return torch.ops.aten.constant_pad_nd(joined, behind, 0.0) if any(behind) else joined


aten = torch.ops.aten
_MOST_SUMMED = 8
"""The most places that are counted by adding up ones, which the program writes out one by one."""


def of_first(gradient: Tensor, x: Tensor, extreme: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the gradient of x. `extreme` is its largest or smallest element along `dims`, which have extent 1 there and in `gradient`.
    The first element that equals it, row by row, has all of the gradient."""
    places = _places_along(x, dims)
    first = torch.where(x == extreme, places, math.inf).amin(list(dims), keepdim=True)
    return torch.where(places == first, gradient, 0.0)


def of_last(gradient: Tensor, x: Tensor, extreme: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the gradient of x, as `of_first`, where the last element that equals the extreme has it."""
    places = _places_along(x, dims)
    last = torch.where(x == extreme, places, -math.inf).amax(list(dims), keepdim=True)
    return torch.where(places == last, gradient, 0.0)


def _places_along(x: Tensor, dims: Sequence[int]) -> Tensor:
    shape = [size if d in {n % x.dim() for n in dims} else 1 for d, size in enumerate(x.shape)]
    return _places(math.prod(shape), x.device).reshape(shape)


def _places(count: int, device: torch.device) -> Tensor:
    """Return the numbers from 1 to `count`, as sums of ones: the dense trace has no tensors of known numbers."""
    if count > _MOST_SUMMED:
        rows = -(-count // _MOST_SUMMED)
        before = (_places(rows, device) - 1) * _MOST_SUMMED
        return (before.unsqueeze(1) + _places(_MOST_SUMMED, device)).reshape(-1).narrow(0, 0, count)
    ones = torch.ones((1, 1, count), device=device)
    return functional.conv1d(ones, ones, padding=count - 1).narrow(2, 0, count).reshape(count)


def _of_extreme(
    gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, dim: int, keepdim: bool = False
) -> tuple[Tensor | None]:
    gradient, extreme = gradients[0], results[0]
    if gradient is None or x.dim() == 0:
        return (gradient,)
    if not keepdim:
        gradient, extreme = gradient.unsqueeze(dim), extreme.unsqueeze(dim)
    return (of_first(gradient, x, extreme, [dim]),)


def _of_adaptive(rank: int) -> Rule:
    def rule(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, _: object) -> tuple[Tensor | None]:
        """Return the gradient of the operand of an adaptive maximum, which has one element for each part of the last dimensions."""
        gradient, largest = gradients[0], results[0]
        if gradient is None:
            return (None,)
        counts, sizes = gradient.shape[-rank:], x.shape[-rank:]
        if all(size % count == 0 for size, count in zip(sizes, counts, strict=True)):
            windows = as_windows(x, [size // count for size, count in zip(sizes, counts, strict=True)], counts)
            shares = of_first(beside_windows(gradient, rank), windows, beside_windows(largest, rank), places_of(rank))
            return (joined_windows(shares, sizes),)
        parts = [_of_part(gradient, largest, x, place) for place in itertools.product(*map(range, counts))]
        return (sum(parts[1:], parts[0]),)

    return rule


def _of_part(gradient: Tensor, largest: Tensor, x: Tensor, place: Sequence[int]) -> Tensor:
    """Return what one part of an adaptive maximum adds to the gradient. Parts overlap where their number does not divide an extent."""
    amounts, dims = list[int](), range(-len(place), 0)
    part = x
    for dim, n in zip(dims, place, strict=True):
        size, count = x.shape[dim], gradient.shape[dim]
        low, high = n * size // count, -(-(n + 1) * size // count)
        part, gradient, largest = part.narrow(dim, low, high - low), gradient.narrow(dim, n, 1), largest.narrow(dim, n, 1)
        amounts = [low, size - high, *amounts]
    return aten.constant_pad_nd(of_first(gradient, part, largest, dims), amounts, 0.0)  # type: ignore[no-any-return]


def _of_rows(
    gradients: Gradients,
    results: tuple[Tensor, ...],
    selection: Tensor,
    empty: Tensor,
    x: Tensor,
    dim: int,
    start: Tensor | float,
    _: bool,
) -> Gradients:
    """Return the gradient of the largest or smallest of the entries along `dim` that each row of a selection has."""
    gradient, extreme = given(gradients[0]).movedim(dim, 0), results[0].movedim(dim, 0)
    base = start.movedim(dim, 0) if isinstance(start, Tensor) else start
    entries = x.movedim(dim, 0)
    behind = [1] * (entries.dim() - 1)
    is_stored = selection.reshape(*selection.shape, *behind) != 0
    attained, share = _shares(gradient, extreme, base, is_stored, entries.unsqueeze(0), 1)
    of_x = (attained * share).sum(0).movedim(0, dim)
    if not isinstance(start, Tensor):
        return None, None, of_x
    return None, None, of_x, torch.where(empty.reshape(-1, *behind) == 0, 0.0, gradient).movedim(0, dim)


def _of_edges(
    gradients: Gradients,
    results: tuple[Tensor, ...],
    pattern: Tensor,
    empty: Tensor,
    x: Tensor,
    dim: int,
    over: int,
    start: Tensor | float,
    _: bool,
) -> Gradients:
    """Return the gradient of the largest or smallest value of the edges along `over`."""
    gradient = given(gradients[0])
    is_edge = pattern.reshape(*pattern.shape, *[1] * (x.dim() - dim - 2)) != 0
    attained, share = _shares(gradient, results[0], start, is_edge, x, over)
    of_x = (attained * share).sum_to_size(x.shape)
    if not isinstance(start, Tensor):
        return None, None, of_x
    return None, None, of_x, torch.where(empty.reshape(-1, *[1] * (gradient.dim() - dim - 1)) == 0, 0.0, gradient)


def _shares(
    gradient: Tensor, extreme: Tensor, start: Tensor | float, is_stored: Tensor, x: Tensor, over: int
) -> tuple[Tensor, Tensor]:
    """Return ones at the stored elements of x that equal their extreme along `over`, and the share of the gradient that each of them has.
    As in `scatter_reduce` of PyTorch, the value that stands where nothing goes counts as one more if it is equal, too."""
    attained = torch.where(is_stored, torch.where(x == extreme.unsqueeze(over), 1.0, 0.0).to(x.dtype), 0.0)
    count = attained.sum(over) + torch.where(extreme == start, 1.0, 0.0).to(x.dtype)
    return attained, (gradient / count).unsqueeze(over)


def of_product(gradient: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return the gradient of x from that of the product along `dim`, which has extent 1 in `gradient`."""
    zero = torch.where(x == 0, 1.0, 0.0).to(x.dtype)
    factors = torch.where(x == 0, 1.0, x)
    others = factors.prod(dim, keepdim=True) / factors
    return torch.where(zero.sum(dim, keepdim=True) - zero == 0, gradient * others, 0.0)


def _of_prod(gradients: Gradients, _: object, x: Tensor, *__: object, **___: object) -> Gradients:
    """Return the gradient of the product of all elements."""
    gradient = given(gradients[0])
    return (of_product(gradient.reshape(1), x.reshape(-1), 0).reshape(x.shape).to(x.dtype),)


def _of_prod_along(
    gradients: Gradients, _: object, x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Gradients:
    gradient = given(gradients[0])
    converted = x if dtype is None else x.to(dtype)
    return (of_product(gradient if keepdim else gradient.unsqueeze(dim), converted, dim).to(x.dtype),)


def _of_scan(
    gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, triangle: Tensor, dim: int, reduction: str
) -> Gradients:
    """Return the gradient of a reduction of the elements along `dim` up to each of them. Of equal elements, the last one is the largest."""
    gradient, result = (value.movedim(dim, -1).unsqueeze(-1) for value in (given(gradients[0]), results[0]))
    rows = x.movedim(dim, -1).unsqueeze(-2)
    match reduction:
        case "cumprod":
            parts = of_product(gradient, torch.where(triangle, rows, 1.0), -1)
        case "logcumsumexp":
            parts = gradient * torch.exp(rows - result)
        case _:
            neutral = float("-inf" if reduction == "cummax" else "inf")
            parts = of_last(gradient, torch.where(triangle, rows, neutral), result, [-1])
    return torch.where(triangle, parts, 0.0).sum(-2).movedim(-1, dim), None


def _of_products_of_rows(
    gradients: Gradients, _: object, selection: Tensor, empty: Tensor, x: Tensor, dim: int, start: Tensor | float
) -> Gradients:
    """Return the gradient of the product of the entries along `dim` that each row of a selection has."""
    gradient = given(gradients[0]).movedim(dim, 0)
    rows = x.movedim(dim, 0)
    absent = selection.reshape(*selection.shape, *[1] * (rows.dim() - 1)) == 0
    is_empty = empty.reshape(-1, *[1] * (rows.dim() - 1)) != 0
    parts = of_product(torch.where(is_empty, 0.0, gradient).unsqueeze(1), torch.where(absent, 1.0, rows.unsqueeze(0)), 1)
    of_x = torch.where(absent, 0.0, parts).sum(0).movedim(0, dim)
    if not isinstance(start, Tensor):
        return None, None, of_x
    return None, None, of_x, torch.where(is_empty, gradient, 0.0).movedim(0, dim)


EXTREME_RULES: dict[Any, Rule] = {
    aten.prod.default: _of_prod,
    aten.prod.dim_int: _of_prod_along,
    scanned_along: _of_scan,
    multiplied_along: _of_products_of_rows,
    **dict.fromkeys((aten.max.dim, aten.min.dim), _of_extreme),
    extreme_along: _of_rows,
    extreme_at_edges: _of_edges,
    aten.adaptive_max_pool1d.default: _of_adaptive(1),
    aten.adaptive_max_pool2d.default: _of_adaptive(2),
    aten.adaptive_max_pool3d.default: _of_adaptive(3),
}
