"""Operators that combine the elements along a dimension with known weights, as products with known matrices.

A cumulative sum is a product with a triangular matrix of ones, and an enlargement of a picture one with a matrix for each dimension. The
matrix is what PyTorch computes of the rows of the identity, so that no rule of an operator is written twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.linalg.generic import MAX_WINDOW
from fuseflow.frontend.positions.known_positions import Handler
from fuseflow.frontend.positions.selection_products import product_along
from fuseflow.frontend.positions.selections import Selections, described, named, reshaped
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import schema_arguments


def _along_one(selections: Selections, node: Node, x: Node, *_: Any, **options: Any) -> Node | None:
    """Return the replacement of an operator along the dimension that it names, such as `cumsum(x, dim)`. None where there is
    none."""
    shaped, dtype = described(x), described(node).dtype
    if shaped.dim() == 0 or "out" in options:
        return None
    arguments: dict[str, Any] = {argument.name: value for argument, value in schema_arguments(node) if argument.name != "self"}
    dim = arguments["dim"] % shaped.dim()
    if dtype != shaped.dtype:  # it converts first
        x = selections.computed(node, torch.Tensor.to, (x, dtype))
    identity = torch.eye(shaped.shape[dim], dtype=dtype)
    matrix: Tensor = node.target(identity, **(arguments | {"dim": 1}))  # type: ignore[operator]
    return _product(selections, node, x, dim, matrix.t())


def _along_last(selections: Selections, node: Node, x: Node, *given: Any, **_: Any) -> Node | None:
    """Return the replacement of an operator on the dimensions behind batch and channels whose weights along each dimension add up
    to 1."""
    shaped, result = described(x), described(node)
    if not shaped.is_floating_point() or any(isinstance(argument, Node) for argument in given):
        return None
    rank = shaped.dim() - _leading(node, shaped)
    for dim in range(shaped.dim() - rank, shaped.dim()):
        if shaped.shape[dim] != result.shape[dim]:
            x = _product(selections, node, x, dim, _interpolation(node, shaped, dim, rank))
    return reshaped(selections, node, x, result.shape)


def _average(
    selections: Selections,
    node: Node,
    x: Node,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    includes: bool = True,
    divisor: int | None = None,
) -> Node | None:
    """Return the replacement of an average over windows that are cut at the edges, or whose padding does not count, or that are
    large and overlap, or where some dimension has only one window. Other windows have a form of their own. The divisor of a
    window is the product of one for each dimension, unless a number is given."""
    shaped, result = described(x), described(node)
    rank = shaped.dim() - _leading(node, shaped)
    windows = list(zip(*(_along_each(setting, rank) for setting in (kernel, stride or kernel, padding)), strict=True))
    dims = range(shaped.dim() - rank, shaped.dim())
    is_padded = any(around for _, _, around in windows)
    has_rest = any(
        result.shape[dim] == 1 and shaped.shape[dim] + 2 * around > size
        for dim, (size, _, around) in zip(dims, windows, strict=True)
    )
    is_large = prod(size for size, _, _ in windows) > MAX_WINDOW and any(step < size for size, step, _ in windows)
    if not (ceil_mode or has_rest or is_large or (is_padded and not includes)) or not shaped.is_floating_point():
        return None
    for n, (dim, (size, step, around)) in enumerate(zip(dims, windows, strict=True)):
        if (size, step, around) == (1, 1, 0) and (n or divisor is None):
            continue
        identity = torch.eye(shaped.shape[dim], dtype=torch.float64).unsqueeze(0)
        weights = torch.nn.functional.avg_pool1d(identity, size, step, around, bool(ceil_mode), bool(includes))[0].t()
        if divisor is not None:
            weights = (weights != 0) / (divisor if n == 0 else 1)
        x = _product(selections, node, x, dim, weights.to(shaped.dtype))
    return reshaped(selections, node, x, result.shape)


def _along_each(setting: int | Sequence[int], rank: int) -> list[int]:
    """Return a setting along each dimension. PyTorch takes one number for all of them."""
    numbers = [setting] if isinstance(setting, int) else list(setting)
    return numbers * rank if len(numbers) == 1 else numbers


def _interpolation(node: Node, shaped: Tensor, dim: int, rank: int) -> Tensor:
    """Return the weights of an operator along one dimension: its result for one row of the identity in each channel, which is the
    same everywhere along the other dimensions."""
    extent, sizes = shaped.shape[dim], tuple(shaped.shape[-rank:])
    across = [1] * rank
    across[dim - (shaped.dim() - rank)] = extent
    channels = torch.eye(extent, dtype=shaped.dtype).reshape(1, extent, *across).expand(1, extent, *sizes).contiguous()
    weights: Tensor = node.target(channels, *node.args[1:], **node.kwargs)  # type: ignore[operator]
    others = [d for d in range(2, 2 + rank) if d != 2 + dim - (shaped.dim() - rank)]
    for d in reversed(others):
        weights = weights.select(d, 0)
    return weights[0].t()


def _leading(node: Node, shaped: Tensor) -> int:
    """Return how many dimensions are batch and channels."""
    rank = int(next(digit for digit in reversed(_name(node)) if digit.isdecimal()))
    return shaped.dim() - rank


def _product(selections: Selections, node: Node, x: Node, dim: int, matrix: Tensor) -> Node:
    rows, columns = matrix.nonzero(as_tuple=True)
    extents = (matrix.shape[0], matrix.shape[1])
    weights = selections.matrix(rows, columns, matrix[rows, columns], extents, named(node, _name(node)))
    return selections.computed(node, product_along, (weights, x, dim))


def _name(node: Node) -> str:
    return fx_origin.short_name(node.target).rstrip("_")


_INTERPOLATIONS = (
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa"
)
LINEAR_MAPS: dict[str, Handler] = {
    **dict.fromkeys(("cumsum", "diff"), _along_one),
    **dict.fromkeys(_INTERPOLATIONS.split(), _along_last),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _average),
}
"""The replacement of each operator, by its name."""
