"""`as_strided` with known strides, as rows that are taken at known positions. Its windows may overlap, as in a sliding attention.

PyTorch defines it on memory, so it depends on how its operand is laid out. The trace knows that; a graph does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fuseflow.errors import FrontendError

AS_STRIDED = frozenset({torch.as_strided, Tensor.as_strided, torch.ops.aten.as_strided.default})
"""The functions that take a tensor, sizes, strides and an offset in memory."""


def strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return `x.as_strided(size, stride, storage_offset)` as a new tensor. Raise `FrontendError` where it reads memory beside
    `x`."""
    strides = x.stride()
    memory = x.permute(sorted(range(x.dim()), key=lambda dim: -strides[dim]))
    offset = 0 if storage_offset is None else storage_offset - int(x.storage_offset())
    end = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if not memory.is_contiguous() or offset < 0 or (end >= x.numel() and 0 not in size):
        raise FrontendError(
            f"`as_strided` to {tuple(size)} reads between or beyond the elements of its operand, of shape {tuple(x.shape)}",
            hint="call `.clone()` on the operand first, and stay within it",
        )
    if 0 in size:
        return memory.reshape(-1).narrow(0, 0, 0).reshape(tuple(size))
    windows, numbers = list(zip(size, stride, strict=True)), x.numel()
    inner = 1  # the elements of whole last dimensions
    while windows and windows[-1][1] == inner and _is_divided(inner * windows[-1][0], [offset, numbers], windows[:-1]):
        inner *= windows.pop()[0]
    outer = 1  # the elements of whole first dimensions
    while windows and windows[0][0] * windows[0][1] == numbers and _end(offset, windows[1:], inner) < windows[0][1]:
        n, numbers = windows.pop(0)
        outer *= n
    positions = torch.full((), offset // inner)
    for n, step in windows:
        positions = positions.unsqueeze(-1) + torch.arange(n) * (step // inner)
    taken = memory.reshape(outer, numbers // inner, inner).index_select(1, positions.reshape(-1))
    return taken.reshape(tuple(size))


def _is_divided(divisor: int, numbers: Sequence[int], windows: Sequence[tuple[int, int]]) -> bool:
    return math.gcd(*numbers, *(step for _, step in windows)) % divisor == 0


def _end(offset: int, windows: Sequence[tuple[int, int]], inner: int) -> int:
    """Return the position in memory of the last element that is read. Each of `windows` has a count and a step."""
    return offset + sum((n - 1) * step for n, step in windows) + inner - 1
