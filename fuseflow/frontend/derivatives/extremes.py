"""The largest and the smallest element. As in PyTorch, the first of equal ones has the gradient where there is also a position of it, and
equal ones share it where elements are scattered."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from fuseflow.frontend.derivatives.rule import Gradients, Rule
from fuseflow.frontend.derivatives.windows import as_windows, beside_windows, joined_windows, places_of
from fuseflow.frontend.positions.selection_operators import extreme_along, extreme_at_edges

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
    (given,) = gradients
    assert given is not None
    gradient, extreme = given.movedim(dim, 0), results[0].movedim(dim, 0)
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
    gradient = gradients[0]
    assert gradient is not None
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


EXTREME_RULES: dict[object, Rule] = {
    **dict.fromkeys((aten.max.dim, aten.min.dim), _of_extreme),
    extreme_along: _of_rows,
    extreme_at_edges: _of_edges,
    aten.adaptive_max_pool1d.default: _of_adaptive(1),
    aten.adaptive_max_pool2d.default: _of_adaptive(2),
    aten.adaptive_max_pool3d.default: _of_adaptive(3),
}
