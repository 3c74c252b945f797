"""Concatenations undo restrictions to consecutive coordinates, whatever is stored."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.restriction import concatenate, restrict

FORMATS = [
    *((text, 2) for text in ("dense", "csr", "csc", "(compressed, compressed)", "(compressed, dense)")),
    *((text, 2) for text in ("(bitmap, compressed)", "(dense, bitmap)")),
    *((text, 3) for text in ("(compressed, dense, compressed)", "(dense, compressed, dense)")),
    ("(compressed, compressed, compressed) order (2, 0, 1)", 3),
]


def random_tensor(text: str, rank: int, seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(3, 9, rank).tolist())
    return pack(rng.integers(1, 9, shape) * (rng.random(shape) < 0.4), Format.parse(text, rank))


@pytest.mark.parametrize(("text", "rank"), FORMATS)
@pytest.mark.parametrize("seed", range(5))
def test_the_parts_of_a_tensor_make_the_tensor(text: str, rank: int, seed: int) -> None:
    tensor = random_tensor(text, rank, seed)
    mode = tensor.format.order[0]
    size = tensor.shape[mode]
    bounds = sorted({0, 1, size // 2, size})  # with a part of one coordinate
    parts = [restrict(tensor, mode, np.arange(low, high)) for low, high in itertools.pairwise(bounds)]
    whole = concatenate(parts)
    assert whole.shape == tensor.shape and whole.format == tensor.format and whole.fill == tensor.fill
    assert np.array_equal(whole.values, tensor.values) and np.array_equal(whole.coordinates(), tensor.coordinates())
    for made, stored in zip(whole.levels, tensor.levels, strict=True):
        assert type(made) is type(stored) and made.arrays.keys() == stored.arrays.keys()
        assert all(np.array_equal(made.arrays[name], array) for name, array in stored.arrays.items())
