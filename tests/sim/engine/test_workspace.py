"""Workspaces of accumulators that are used again: nothing of the last fiber is left."""

from __future__ import annotations

import numpy as np
from engines import LIMITS, disagreements
from random_graphs.case import Case

from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import pack

FOLD = """
graph fold
tensor A[6, 2, 4000]  (dense, dense, compressed) f64
tensor Y[6, 4000]  csr f64
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_j = scan(A_k.ref) A.2
A_v = load(A_j.ref) A
acc = accumulate(A_k.crd, A_j.crd, A_v) sum order=1
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
"""


def test_coordinates_with_one_place_in_the_table() -> None:
    """Blocks of eight coordinates in a table of 64: those 512 apart have the same place."""
    graph = parse(FOLD)
    verify(graph)
    a = np.zeros((6, 2, 4000))
    a[:, 0, [3, 515, 1027, 2000]] = 1.0
    a[:, 1, [4, 515, 3000]] = 2.0
    a[3] = 0.0
    case = Case(graph, {"A": pack(a, graph.declared["A"].format)}, load_machine("ideal"))
    found = simulate(graph, case.tensors, case.machine, engine="fast").outputs["Y"]
    np.testing.assert_array_equal(found.to_dense(), a.sum(axis=1))
    for limits in LIMITS:
        assert not list(disagreements(case, limits)), limits
