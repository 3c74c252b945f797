"""Patterns: the number of elements that a tensor stores."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.tensors import Format, pack


@pytest.mark.parametrize("format", ["csf", "(compressed, dense, compressed)", "(dense, compressed, dense)", "dense"])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_elements_are_those_that_are_stored(format: str, density: float):
    array = (np.random.default_rng(0).random((4, 3, 5)) < density).astype(np.float64)
    tensor = pack(array, Format.parse(format, 3))
    assert tensor_pattern(tensor).elements == len(tensor.values)
