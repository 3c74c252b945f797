"""Exported programs run on sparse samples, and on some inputs beside the samples of the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import UsageError

A, X, B = torch.eye(3).to_sparse() * 2, torch.arange(6.0).reshape(3, 2), torch.ones(2)


class Layer(nn.Module):
    def forward(self, a: Tensor, x: Tensor, b: Tensor) -> Tensor:
        return a @ x + b


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sample.pt2"
    torch.export.save(torch.export.export(Layer(), (A, X), {"b": B}), path)
    return path


def result(path: Path, *inputs: object, **options: object) -> np.ndarray:
    (value,) = ff.compile(path, *inputs, **options).run().outputs.values()  # type: ignore[arg-type]
    return np.asarray(value)


def test_sparse_sample(file: Path) -> None:
    np.testing.assert_allclose(result(file), (A @ X + B).numpy())


def test_inputs_that_are_not_given_are_the_samples(file: Path) -> None:
    np.testing.assert_allclose(result(file, {"x": X + 1}), (A @ (X + 1) + B).numpy())
    np.testing.assert_allclose(result(file, (A * 2,)), (A @ X * 2 + B).numpy())
    np.testing.assert_allclose(result(file, (A,), kwargs={"b": B * 3}), (A @ X + B * 3).numpy())


def test_what_a_program_does_not_take_is_named(file: Path) -> None:
    for inputs, kwargs, message in (
        ({"y": X}, None, "has no input `y`"),
        ((A, X, B), None, "takes 2 inputs by position"),
        ((A,), {"a": A}, "`a` of the exported program is given twice"),
    ):
        with pytest.raises(UsageError, match=message):
            ff.compile(file, inputs, kwargs=kwargs)


def test_loaded_tensor_is_not_cloned_lazily(tmp_path: Path) -> None:
    torch.save(X, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt")
    np.testing.assert_allclose(np.asarray(next(iter(ff.compile(Layer(), (A, loaded, B)).run().outputs.values()))), (A @ X + B))
