"""Workspaces are used again: blocks that share a place must all be gone when a fiber ends."""

from __future__ import annotations

import numpy as np

from fuseflow.samml.text import parse
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import pack

COLUMNS = 4096  # 512 blocks for a table of 64 places at first: those of columns 0, 512 and 1024 want the same


def test_blocks_that_collide_in_every_row() -> None:
    graph = parse(f"""
graph spmm
tensor A[4, 3]  csr
tensor X[3, {COLUMNS}]  csr
tensor Y[4, {COLUMNS}]  csr
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
A_val = load(A_k.ref) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) mul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
""")
    a, x = np.ones((4, 3), np.float32), np.zeros((3, COLUMNS), np.float32)
    x[0, 0], x[1, 512], x[2, 1024], x[2, 0] = 1, 2, 3, 4
    tensors = {name: pack(array, graph.declared[name].format) for name, array in (("A", a), ("X", x))}
    result = simulate(graph, tensors, load_machine("ideal"), engine="fast")
    np.testing.assert_array_equal(result.outputs["Y"].to_dense(), a @ x)
    assert result.cycles == simulate(graph, tensors, load_machine("ideal"), engine="reference").cycles
