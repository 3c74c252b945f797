"""The bytes of a tensor follow from the statistics of its levels."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.costs.statistics import measure_statistics
from fuseflow.estimate.graph_counts import array_bytes
from fuseflow.samml.nodes import Graph, TensorDecl
from fuseflow.sim.configuration_load import configuration_bytes
from fuseflow.tensors import Format, pack

FORMATS = (
    *("(dense, dense, dense)", "csf", "coo", "(dense, compressed, compressed)", "(compressed, dense, compressed)"),
    *(
        "(compressed, compressed, dense)",
        "(compressed(nonunique), singleton, dense)",
        "(dense, compressed(nonunique), singleton)",
    ),
    *("(bitmap, compressed, dense)", "(dense, dense, bitmap)", "(dense, nm(2:3), dense)", "(dense, nm(3:4), compressed)"),
    *("(compressed, dense, nm(4:5))", "(nm(3:4), bitmap, compressed)"),
)


@pytest.mark.parametrize("text", FORMATS)
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_bytes_by_format(text: str, density: float) -> None:
    rng, format = np.random.default_rng(0), Format.parse(text, 3)
    array = np.zeros((5, 7, 9))
    if density:  # at most two entries in a group of any n:m level here
        array[0::4, 1::6, 2::5] = 1.0 if density == 1.0 else rng.random(array[0::4, 1::6, 2::5].shape) < density
    tensor = pack(array.astype(np.float32), format)
    decl = TensorDecl("A", array.shape, format, resident=True)
    expected = configuration_bytes(Graph("g", (decl,), (), ()), {"A": tensor})
    assert sum(array_bytes(decl, measure_statistics(tensor)).values()) == expected == tensor.nbytes
