"""Expected streams: what is absent after a join is neither scanned nor loaded."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.estimate import estimate_graph, measure_statistics, stream_shapes
from fuseflow.samml.nodes import Port
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import pack

JOIN = """
graph joined
tensor A[200, 50]  dcsr f64
tensor B[200, 50]  dcsr f64
tensor Y[200, 50]  dcsr f64
output Y

root = root()
A_i = scan(root) A.0
B_i = scan(root) B.0
both = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) {kind}
B_j = scan(both.out1) B.1
B_val = load(B_j.ref) B
write_Y_i = write(both.crd) Y.0
write_Y_j = write(B_j.crd) Y.1
write_Y_val = write(B_val) Y.vals
"""


def rows(density: float, seed: int) -> np.ndarray:
    """Return a matrix in which some rows are full and the others empty."""
    return np.repeat((np.random.default_rng(seed).random(200) < density).astype(float)[:, None], 50, axis=1)


@pytest.mark.parametrize("kind", ["left", "union", "intersect"])
def test_absent_rows_have_no_entries(kind):
    graph = parse(JOIN.format(kind=kind), "joined")
    declared = graph.declared
    tensors = {"A": pack(rows(0.6, 1), declared["A"].format), "B": pack(rows(0.3, 2), declared["B"].format)}
    statistics = {name: measure_statistics(tensor) for name, tensor in tensors.items()}
    real = simulate(graph, tensors, load_machine("ideal"))
    loads = next(node for node in real.nodes if node.name == "B_val")
    shapes = stream_shapes(graph, statistics)
    assert shapes[Port("B_val")].elements == pytest.approx(loads.firings, rel=0.3)
    assert estimate_graph(graph, statistics)[0].firings == pytest.approx(real.firings, rel=0.3)
