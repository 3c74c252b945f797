"""Slices that are written into tensors of zeros: what is not written stays 0, and is no term of the program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import fuseflow as ff
from fuseflow.frontend.decompositions.slices_and_windows import SLICE_WRITES

GENERATOR = torch.Generator().manual_seed(7)
X = torch.randn(4, 6, generator=GENERATOR)
W = torch.randn(6, 5, generator=GENERATOR)


def columns(x: Tensor, w: Tensor) -> Tensor:
    out = torch.zeros(4, 8)
    out[:, :5] = x @ w
    return out


def two_blocks(x: Tensor, w: Tensor) -> Tensor:
    out, y = torch.zeros(4, 8), x @ w
    out[1:3, 2:7] = y[1:3]
    out[0, :5] = torch.relu(y[0])
    return out


def every_second_row(x: Tensor, w: Tensor) -> Tensor:
    out = x.new_zeros(8, 5)
    out[::2] = x @ w
    return out


def read_again(x: Tensor, w: Tensor) -> Tensor:
    return columns(x, w) @ torch.ones(8, 2)


@pytest.mark.parametrize("fuse", ["none", "layerwise", "full"])
@pytest.mark.parametrize("model", [columns, two_blocks, every_second_row, read_again])
def test_what_is_not_written_stays_zero(model: Callable[[Tensor, Tensor], Tensor], fuse: str) -> None:
    result = ff.compile(model, (X, W), schedule=ff.Schedule.fuse(fuse)).run()
    (output,) = result.outputs.values()
    np.testing.assert_allclose(np.asarray(output, dtype=np.float64), model(X, W).numpy(), rtol=1e-5, atol=1e-6)


def test_dimensions_count_from_the_end() -> None:
    source, aten = torch.zeros(4, 2), torch.ops.aten
    written = SLICE_WRITES[aten.slice_scatter.default](X, source, -1, 1, 3)
    assert torch.equal(written, torch.slice_scatter(X, source, -1, 1, 3))
    written = SLICE_WRITES[aten.select_scatter.default](X, source[:, 0], -1, -2)
    assert torch.equal(written, torch.select_scatter(X, source[:, 0], -1, -2))
