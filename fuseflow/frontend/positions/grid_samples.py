"""Sampling of images at computed places: the weight of each pixel is a function of its distance to the place, along each dimension.

A bilinear sample is a sum over all pixels with the weights of the rows and the columns, of which two each are not 0 for a place:

    out[n, c, p] = sum(y, x) wy[n, p, y] * wx[n, p, x] * image[n, c, y, x]    with    wx[n, p, x] = max(0, 1 - |place[n, p] - x|)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selections import Call, Handler, described

_BILINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
"""The modes and paddings of `grid_sampler`, as PyTorch numbers them."""


def sampled_at(image: Tensor, grid: Tensor, places: Sequence[Tensor], mode: int, padding: int, aligned: bool) -> Tensor:
    """Return `grid_sample(image, grid)`. `places` counts the coordinates of each dimension of the image behind batch and channels."""
    batch, *shape, rank = grid.shape
    rows = grid.reshape(batch, -1, rank)
    result = image
    for n, counted in enumerate(places):  # the last dimension of an image is the first number of a place
        weights = _weights(rows[..., n], counted, mode, padding, aligned).transpose(1, 2)
        if n == 0:
            left = result.reshape(batch, -1, len(counted)) @ weights
            result = left.reshape(*image.shape[:-1], -1)
        else:
            between = (1,) * (result.dim() - 3)
            result = (result * weights.reshape(batch, *between, *weights.shape[1:])).sum(-2)
    return result.reshape(batch, image.shape[1], *shape)


def _weights(grid: Tensor, places: Tensor, mode: int, padding: int, aligned: bool) -> Tensor:
    """Return the weight of each place for each number of the grid, which goes from -1 to 1 along the dimension of the places."""
    extent = len(places)
    at = (grid * (extent - int(aligned)) + (extent - 1)) / 2
    if padding == _REFLECTION:
        low, span = (0.0, extent - 1.0) if aligned else (-0.5, float(extent))
        at = low + span - (torch.remainder(at - low, 2 * span) - span).abs() if span else at * 0
    if padding != _ZEROS:
        at = torch.where(at != at, 0.0, torch.clamp(at, 0, extent - 1))
    if mode == _NEAREST:
        return torch.where(torch.round(at).unsqueeze(-1) == places, 1.0, 0.0)
    return torch.relu(1 - (at.unsqueeze(-1) - places).abs())


def _grid_sample(call: Call, image: Node, grid: Node, mode: int, padding: int, aligned: bool) -> Node | None:
    shaped = described(image)
    if mode not in (_BILINEAR, _NEAREST) or not shaped.is_floating_point():
        return None
    places = [call.counted(extent, shaped.dtype) for extent in reversed(shaped.shape[2:])]
    return call.computed(sampled_at, image, grid, places, mode, padding, aligned)


def _affine_grid(call: Call, theta: Node, size: Sequence[int], aligned: bool) -> Node:
    rank = len(size) - 2
    identity = torch.eye(rank, rank + 1).unsqueeze(0)
    corners = torch.nn.functional.affine_grid(identity, [1, 1, *size[2:]], align_corners=aligned)
    base = torch.nn.functional.pad(corners.reshape(prod(size[2:]), rank), (0, 1), value=1.0)
    columns = call.computed(torch.transpose, theta, 1, 2)
    rows = call.computed(torch.matmul, call.argument("base", base.to(described(theta).dtype)), columns)
    return call.reshaped(rows, (size[0], *size[2:], rank))


GRID_SAMPLES: dict[str, Handler] = {
    **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), _grid_sample),
    "affine_grid_generator": _affine_grid,
}
"""The replacement of each operator, by its name."""
