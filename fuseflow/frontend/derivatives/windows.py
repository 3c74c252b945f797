"""Windows that lie side by side along the last dimensions of a tensor, as a dimension for the windows and one for the places in them, along
each of these dimensions: P, K, Q, L stand for P x Q windows of K x L elements."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


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
