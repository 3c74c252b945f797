"""Slices of products with known matrices: the same numbers, of fewer rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import fuseflow as ff

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(2))
fft = torch.fft


def written(x: Tensor) -> Tensor:
    y = x.cumsum(1)
    y[:, 0] = 0.0
    return y[:, :2] + y[:, 4:]


CASES: dict[str, tuple[Callable[[Tensor], Tensor], set[int]]] = {
    "rows": (lambda x: x.cumsum(0)[1:3], {2}),
    "every second row": (lambda x: x.cumsum(0)[::2], {2}),
    "the last rows": (lambda x: x.cumsum(1)[:, -2:], {2}),
    "beside the product": (lambda x: x.cumsum(0)[:, :2], {4}),
    "both dimensions": (lambda x: x.cumsum(0)[:2, 3:], {2}),
    "several slices": (lambda x: (lambda y: y[:2] * 2 + y[-2:])(x.cumsum(0)), {2}),
    "sums of products": (lambda x: (fft.fft(x, dim=0) + fft.fft(x * x, dim=0)).real[:3], {3}),
    "lowest frequencies": (lambda x: (lambda y: y.real[:2, :2] + y.imag[:2, 2:])(fft.rfft2(x)), {2}),
    "the rest is read": (lambda x: (lambda y: y[:2].sum(0) + y.sum(0))(x.cumsum(0)), {4}),
    "written": (written, {6}),
}


@pytest.mark.parametrize("case", CASES)
def test_slices_give_what_pytorch_gives_and_take_the_rows_that_are_read(case: str) -> None:
    model, rows = CASES[case]
    program = ff.compile(model, (X,), schedule=ff.Schedule.fuse("none"))
    (output,) = program.run().outputs.values()
    np.testing.assert_allclose(np.asarray(output).reshape(model(X).shape), model(X).numpy(), rtol=1e-5, atol=1e-5)
    matrices = [t for t in program.program.inputs if t.name.startswith(("cumsum", "transform"))]
    assert {t.shape[0] for t in matrices} == rows
