"""Graphs and data that a simulator gets wrong: on the reference, on the engine, on the engine with tiny limits; against NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from engines import disagreements_at_all_limits
from random_graphs import Case

from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.tensors import Tensor, pack

Dense = npt.NDArray[np.float64]

SPMM = """
graph spmm
tensor A[6, 5]  csr f64
tensor X[5, 7]  csr f64
tensor Y[6, 7]  csr f64
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
A_v = load(A_k.ref) A
rep = repeat(A_v, X_j.crd)
X_v = load(X_j.ref) X
mul = alu(rep, X_v) mul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
"""
UNION = """
graph union
tensor A[6, 5]  dcsr f64
tensor B[6, 5]  dcsr f64
tensor Y[6, 5]  dcsr f64
output Y
root = root()
A_i = scan(root) A.0
B_i = scan(root) B.0
i = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) union
A_j = scan(i.out0) A.1
B_j = scan(i.out1) B.1
j = join(A_j.crd, A_j.ref; B_j.crd, B_j.ref) union
A_v = load(j.out0) A
B_v = load(j.out1) B
add = alu(A_v, B_v) add N->0,N->0
Y_i = write(i.crd) Y.0
Y_j = write(j.crd) Y.1
Y_v = write(add) Y.vals
"""
ROW_MAX = """
graph row_max
tensor A[6, 5]  csr f64
tensor Y[6]  dense f64 fill -inf
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
max = reduce(A_v) max
Y_i = write(A_i.crd) Y.0
Y_v = write(max) Y.vals
"""
LANES = """
graph lanes
tensor A[6, 5]  csr f64
tensor Y[6, 5]  csr f64
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
dealt = fork(A_j.ref) 3
v0 = load(dealt.lane0) A
v1 = load(dealt.lane1) A
v2 = load(dealt.lane2) A
val = merge(v0, v1, v2) levels=0
Y_i = write(A_i.crd) Y.0
Y_j = write(A_j.crd) Y.1
Y_v = write(val) Y.vals
"""
ORDER_THREE = """
graph order_three
tensor A[3, 2, 4, 5]  csf f64
tensor Y[2, 4, 5]  csf f64
output Y
root = root()
A_l = scan(root) A.0
A_i = scan(A_l.ref) A.1
A_j = scan(A_i.ref) A.2
A_k = scan(A_j.ref) A.3
A_v = load(A_k.ref) A
acc = accumulate(A_l.crd, A_i.crd, A_j.crd, A_k.crd, A_v) sum order=3
Y_i = write(acc.crd1) Y.0
Y_j = write(acc.crd2) Y.1
Y_k = write(acc.crd3) Y.2
Y_v = write(acc.val) Y.vals
"""


def copy_of_rank(rank: int) -> str:
    """Every level of a tensor scanned and written: stops of levels up to rank - 1."""
    levels = range(rank)
    shape = ", ".join("2" for _ in levels)
    scans = "".join(f"A_{p} = scan({'root' if p == 0 else f'A_{p - 1}.ref'}) A.{p}\n" for p in levels)
    writes = "".join(f"Y_{p} = write(A_{p}.crd) Y.{p}\n" for p in levels)
    last = rank - 1
    return (
        f"graph copy\ntensor A[{shape}]  csf f64\ntensor Y[{shape}]  csf f64\noutput Y\nroot = root()\n{scans}"
        f"val = load(A_{last}.ref) A\n{writes}Y_v = write(val) Y.vals\n"
    )


def rows(*filled: int, shape: tuple[int, ...] = (6, 5)) -> Dense:
    """A matrix with numbers in some rows, zeros elsewhere."""
    out = np.zeros(shape)
    for row in filled:
        out[row, :: 1 + row % 2] = np.arange(1, out[row, :: 1 + row % 2].size + 1) + row
    return out


X = rows(0, 2, 4, shape=(5, 7))
CUBE = np.zeros((3, 2, 4, 5))
CUBE[0, 1, 2, ::2], CUBE[2, 1, 2, 1:], CUBE[2, 0, 3, 4] = 1, 2, 3
LATE = np.zeros((3, 2, 4, 5))
LATE[1, 1, 3, 4] = 5
DEEP = np.zeros((2,) * 12)
DEEP[(0,) * 12] = DEEP[(1,) * 12] = DEEP[(0,) * 6 + (1,) * 6] = 7
SWAPPED = np.eye(6, 5)[[1, 0, 2, 3, 4, 5]]  # row 0 of A meets row 1 of X, which is empty
NEGATIVE = -1 - np.abs(rows(0, 1, 2, 3, 4, 5))

TRAPS: dict[str, tuple[str, Mapping[str, Dense], Dense]] = {
    "no empty row": (SPMM, {"A": rows(0, 1, 2, 3, 4, 5), "X": X}, rows(0, 1, 2, 3, 4, 5) @ X),
    "the first row empty": (SPMM, {"A": rows(1, 2, 4, 5), "X": X}, rows(1, 2, 4, 5) @ X),
    "the last row empty": (SPMM, {"A": rows(0, 3, 4), "X": X}, rows(0, 3, 4) @ X),
    "all rows empty": (SPMM, {"A": rows(), "X": X}, np.zeros((6, 7))),
    "the first output fiber of an accumulate empty": (SPMM, {"A": SWAPPED, "X": X}, SWAPPED @ X),
    "a union with rows on the left only": (UNION, {"A": rows(0, 2, 5), "B": rows()}, rows(0, 2, 5)),
    "a union with rows on the right only": (UNION, {"A": rows(), "B": rows(1, 5)}, rows(1, 5)),
    "a union whose rows never meet": (UNION, {"A": rows(0, 2, 4), "B": rows(1, 3, 5)}, rows(0, 1, 2, 3, 4, 5)),
    "all-negative rows under max": (ROW_MAX, {"A": NEGATIVE}, NEGATIVE.max(axis=1)),
    "fibers that do not divide by the lanes": (LANES, {"A": rows(0, 1, 2, 4, 5)}, rows(0, 1, 2, 4, 5)),
    "lanes without a value": (LANES, {"A": rows()}, rows()),
    "accumulate of order 3": (ORDER_THREE, {"A": CUBE}, CUBE.sum(axis=0)),
    "accumulate of order 3, one late value": (ORDER_THREE, {"A": LATE}, LATE.sum(axis=0)),
    "accumulate of order 3, nothing": (ORDER_THREE, {"A": 0 * CUBE}, np.zeros((2, 4, 5))),
    "stops of level 11": (copy_of_rank(12), {"A": DEEP}, DEEP),
    "stops of level 11, no value": (copy_of_rank(12), {"A": 0 * DEEP}, 0 * DEEP),
}  # fmt: skip


def packed(graph: Graph, arrays: Mapping[str, Dense]) -> dict[str, Tensor]:
    return {name: pack(arrays[name], graph.declared[name].format, graph.declared[name].fill) for name in graph.inputs}


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_the_values_are_right(trap: str, engine: str) -> None:
    text, arrays, expected = TRAPS[trap]
    graph = parse(text)
    verify(graph)
    result = simulate(graph, packed(graph, arrays), load_machine("ideal"), engine=engine, check=True)  # type: ignore[arg-type]
    np.testing.assert_allclose(result.outputs["Y"].to_dense(), expected, rtol=1e-12)


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("depth", [None, 1, 3])
def test_the_engine_says_what_the_reference_says(trap: str, depth: int | None) -> None:
    text, arrays, _ = TRAPS[trap]
    graph = parse(text)
    machine = Machine(name="test", fifo_depth=depth)
    assert not list(disagreements_at_all_limits(Case(graph, packed(graph, arrays), machine)))


def test_depth_costs_cycles_and_never_values() -> None:
    """A product on a machine with latencies needs more cycles with FIFOs of 4 slots than of 16; a depth beyond every peak is no bound
    at all."""
    graph = parse(SPMM.replace("[6, 5]", "[60, 50]").replace("[5, 7]", "[50, 70]").replace("[6, 7]", "[60, 70]"))
    rng = np.random.default_rng(0)
    tensors = packed(graph, {"A": rng.random((60, 50)) * (rng.random((60, 50)) < 0.1), "X": rng.random((50, 70))})
    runs = {
        depth: simulate(graph, tensors, load_machine("rda", {"fifo_depth": depth}), engine="fast")
        for depth in (4, 16, 1 << 20, None)
    }
    assert runs[4].cycles > runs[16].cycles
    assert replace(runs[1 << 20], outputs={}) == replace(runs[None], outputs={})
    for run in runs.values():
        np.testing.assert_array_equal(run.outputs["Y"].to_dense(), runs[None].outputs["Y"].to_dense())
