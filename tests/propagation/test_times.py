"""How long the analysis of a program on a large graph takes, in processor time of one core."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import sparse

from fuseflow.einsum.parse import parse
from fuseflow.propagation import analyse, propagate
from fuseflow.propagation.attribute import attributes_of
from fuseflow.tensors import Format, pack

NODES, EDGES = 235_868, 2_358_104
GCN = f"""
tensor A[{NODES}, {NODES}] csr
tensor X[{NODES}, 128] dense
tensor W1[128, 64] csr
tensor b1[64] dense
tensor W2[64, 3] csr
T[i, j] = sum(k) X[i, k] * W1[k, j]
U[i, j] = sum(k) A[i, k] * T[k, j]
R[i, j] = relu(U[i, j] + b1[j])
V[i, j] = sum(k) R[i, k] * W2[k, j]
Y[i, j] = sum(k) A[i, k] * V[k, j]
output Y
"""


@pytest.mark.slow
def test_a_gcn_with_the_nodes_and_edges_of_collab_takes_seconds() -> None:
    """Its adjacency is known, and so are the weights, 90 % of whose entries are pruned."""
    rng = np.random.default_rng(0)
    graph = sparse.coo_array((np.ones(EDGES, np.float32), tuple(rng.integers(0, NODES, (2, EDGES)))), shape=(NODES, NODES))
    arrays = {"X": np.ones((NODES, 128), np.float32), "b1": np.ones(64, np.float32)}
    arrays |= {name: (rng.random(shape) < 0.1).astype(np.float32) for name, shape in (("W1", (128, 64)), ("W2", (64, 3)))}
    program = parse(GCN)
    formats = {tensor.name: tensor.format or Format.dense(len(tensor.shape)) for tensor in program.inputs}
    tensors = {name: pack(array, formats[name]) for name, array in {**arrays, "A": graph.tocsr()}.items()}
    start = time.process_time()
    propagate(program, tensors, analyse(program, attributes_of(program, tensors, ["A", "W1", "W2"])))
    assert time.process_time() - start < 10
