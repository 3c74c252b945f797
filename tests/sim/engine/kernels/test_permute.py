"""The kernel of `permute` equals the reference token by token, and gives the transposed tensor."""

from __future__ import annotations

import numpy as np
import pytest
from engines import LIMITS, case_of, disagreements, disagreements_at_all_limits, runs_of
from random_graphs.case import Case

from fuseflow.errors import SimulationError
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.levels.compressed import CompressedFibers

# All levels turned, of the outermost element alone and of each of its elements; joined with what nobody turned; of what is absent
DEEP = """
tensor A[3, 4, 5]  (compressed, compressed, compressed) f64
tensor X[5, 3, 4]  (compressed, compressed, dense) f64
tensor Y[5, 3, 4]  (compressed, compressed, compressed) f64
tensor Z[3, 5, 4]  (compressed, compressed, compressed) f64
output Y, Z
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_k = scan(A_j.ref) A.2
A_v = load(A_k.ref) A
kij = permute(A_i.crd, A_j.crd, A_k.crd, A_v) order=2,0,1
X_k = scan(root) X.0
k = join(kij.crd0; X_k.crd, X_k.ref) union
old_i = align(kij.crd0, k.crd, kij.crd1)
old_j = align(kij.crd0, k.crd, kij.crd2)
old_v = align(kij.crd0, k.crd, kij.val)
X_i = scan(k.out0) X.1
i = join(old_i; X_i.crd, X_i.ref) left
X_j = scan(i.out0) X.2
j = join(old_j, old_v; X_j.crd, X_j.ref) left
X_v = load(j.out1) X
sum = alu(j.out0, X_v) add N->0,N->0
Y_k = write(k.crd) Y.0
Y_i = write(i.crd) Y.1
Y_j = write(j.crd) Y.2
Y_v = write(sum) Y.vals
rows = permute(A_j.crd, A_k.crd, A_v) order=1,0
again = permute(rows.crd0, rows.crd1, rows.val) order=0,1
Z_i = write(A_i.crd) Z.0
Z_k = write(again.crd0) Z.1
Z_j = write(again.crd1) Z.2
Z_v = write(again.val) Z.vals
"""
MATRIX = """
graph copy
tensor A[{rows}, {columns}]  dcsr f64
tensor P[{columns}, {rows}]  dcsr f64
output P
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
turned = permute(A_i.crd, A_k.crd, A_v) order=1,0
P_k = write(turned.crd0) P.0
P_i = write(turned.crd1) P.1
P_v = write(turned.val) P.vals
"""
TILES = MATRIX.replace("dcsr f64", "dcsr f32 tile 2x3")


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 40))])
def test_like_the_reference(seed: int) -> None:
    case = case_of(DEEP, seed)
    assert not list(disagreements_at_all_limits(case))


@pytest.mark.parametrize("seed", range(10))
def test_tiles_like_the_reference(seed: int) -> None:
    case = case_of(TILES.replace("graph copy", "").format(rows=9, columns=20), seed)
    assert not list(disagreements_at_all_limits(case))


def matrix(array: np.ndarray) -> Case:
    rows, columns = array.shape
    graph = parse(MATRIX.format(rows=rows, columns=columns))
    verify(graph)
    return Case(graph, {"A": pack(array, graph.declared["A"].format)}, load_machine("rda"))


@pytest.mark.parametrize("density", [0.0, 0.01, 1.0])
def test_a_workspace_of_thousands_of_blocks(density: float) -> None:
    """Columns far apart become rows: each entry begins a block, and the table grows again and again."""
    rng = np.random.default_rng(2)
    array = rng.random((70, 900)) * (rng.random((70, 900)) < density)
    case = matrix(array)
    for engine in ("reference", "fast"):
        result = simulate(case.graph, case.tensors, case.machine, engine=engine, check=True)
        np.testing.assert_array_equal(result.outputs["P"].to_dense(), array.T)
    assert not list(disagreements(case, LIMITS[0]))


def test_a_dense_row_comes_in_pieces_of_a_block() -> None:
    assert runs_of(matrix(np.ones((64, 2))), "turned")[1] <= 2 * (64 // 8 + 1) + 1


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_two_values_at_the_same_coordinates_are_refused(engine: str) -> None:
    graph = parse(MATRIX.format(rows=3, columns=4))
    rows = CompressedFibers(3, np.array([0, 1]), np.array([2]))
    twice = CompressedFibers(4, np.array([0, 3]), np.array([0, 1, 1]))
    tensors = {"A": Tensor((3, 4), Format.parse("dcsr", 2), (rows, twice), np.ones(3))}
    with pytest.raises(SimulationError, match=r"node `turned` \(permute\): got two values at the same coordinates"):
        simulate(graph, tensors, load_machine("ideal"), engine=engine)
