"""Images are sampled at computed places as PyTorch samples them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sources import compiled_at
from torch import Tensor
from torch.nn import functional as F

from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model

GENERATOR = torch.Generator().manual_seed(5)
IMAGE = torch.randn(2, 3, 4, 5, generator=GENERATOR)
GRID = 1.5 * torch.randn(2, 3, 2, 2, generator=GENERATOR)


def assert_as_pytorch(function: Callable[..., Any], *inputs: Tensor, fuse: tuple[str, ...] = ("full",)) -> None:
    for compiled in compiled_at(function, inputs, *fuse):
        result = compiled.run()
        assert result.check is not None and result.check.passed, compiled.schedule


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_modes(mode: str, padding: str, aligned: bool) -> None:
    assert_as_pytorch(lambda x, g: F.grid_sample(x, g, mode, padding, aligned), IMAGE, GRID)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_places_that_are_no_numbers(mode: str, padding: str) -> None:
    grid = GRID.clone()
    grid[0, 0, 0, 0] = torch.nan
    assert_as_pytorch(lambda x, g: F.grid_sample(x, g, mode, padding, False), IMAGE, grid)


def test_volumes_and_a_dimension_of_one_element() -> None:
    volume, places = torch.randn(1, 2, 3, 2, 4, generator=GENERATOR), torch.randn(1, 2, 2, 3, 3, generator=GENERATOR)
    assert_as_pytorch(lambda x, g: F.grid_sample(x, g, align_corners=False), volume, places)
    for padding in ("zeros", "reflection"):
        assert_as_pytorch(lambda x, g, p=padding: F.grid_sample(x, g, "bilinear", p, True), IMAGE[:, :, :1], GRID)


def test_affine_grids() -> None:
    def transformed(x: Tensor, theta: Tensor) -> Tensor:
        return F.grid_sample(x, F.affine_grid(theta, [2, 3, 4, 5], align_corners=False), align_corners=False)

    theta = torch.eye(2, 3) + 0.2 * torch.randn(2, 2, 3, generator=GENERATOR)
    assert_as_pytorch(transformed, IMAGE, theta, fuse=("none", "full"))
    assert_as_pytorch(lambda t: F.affine_grid(t, [2, 1, 3, 2, 4], align_corners=True), torch.randn(2, 3, 4, generator=GENERATOR))


def test_cubic_samples_are_refused() -> None:
    with pytest.raises(FrontendError, match="`grid_sampler`, through"):
        import_model(lambda x, g: F.grid_sample(x, g, mode="bicubic", align_corners=False), (IMAGE, GRID))
