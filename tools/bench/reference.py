"""Firings a second of the reference interpreter, on a sparse matrix product in row order (i, k, j).

    python tools/bench/reference.py [--rows 500] [--width 128] [--repeats 5] [--json FILE|-]

Three cases: dense rows of X (long innermost fibers), 2 % of X stored (fibers of a few elements, joined over k), and the first with
FIFOs of 16 slots. Prints medians.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import click
import numpy as np
from host import JSON, finish
from scipy import sparse

from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.tensors import Tensor, pack

LOCATED = """
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
A_val = load(A_k.ref) A
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
"""
JOINED = """
rep_i = repeat(root, A_i.crd)
X_k = scan(rep_i) X.0
k = join(A_k.crd, A_k.ref; X_k.crd, X_k.ref) intersect
X_j = scan(k.out1) X.1
A_val = load(k.out0) A
acc = accumulate(k.crd, X_j.crd, mul) sum order=1
"""


def spmm(rows: int, width: int, x_format: str, middle: str) -> Graph:
    first, last = middle.strip().rsplit("\n", 1)
    return parse(f"""
graph spmm
tensor A[{rows}, {rows}]  csr
tensor X[{rows}, {width}]  {x_format}
tensor Y[{rows}, {width}]  csr
output Y
root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
{first}
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) mul N->0,N->0
{last}
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
""")


def tensors(graph: Graph, density: float) -> dict[str, Tensor]:
    rng = np.random.default_rng(0)
    a, x = graph.declared["A"], graph.declared["X"]
    return {
        "A": pack(sparse.random_array(a.shape, density=8 / a.shape[1], rng=rng).astype(np.float32), a.format),
        "X": pack(sparse.random_array(x.shape, density=density, rng=rng).toarray().astype(np.float32), x.format),
    }


def measure(name: str, graph: Graph, data: Mapping[str, Tensor], machine: Machine, repeats: int) -> dict[str, Any]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = simulate(graph, data, machine)
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    return {
        "name": name,
        "firings": result.firings,
        "cycles": result.cycles,
        "seconds": round(seconds, 4),
        "firings_per_second": round(result.firings / seconds),
        "ns_per_firing": round(1e9 * seconds / result.firings, 1),
    }


@click.command()
@click.option("--rows", default=500, show_default=True)
@click.option("--width", default=128, show_default=True)
@click.option("--repeats", default=5, show_default=True)
@JSON
def main(rows: int, width: int, repeats: int, output: str | None) -> None:
    ideal = load_machine("ideal")
    dense, joined = spmm(rows, width, "dense", LOCATED), spmm(rows, width, "dcsr", JOINED)
    cases = [
        measure("dense rows", dense, tensors(dense, 1.0), ideal, repeats),
        measure("sparse rows", joined, tensors(joined, 0.02), ideal, repeats),
        measure("depth 16", dense, tensors(dense, 1.0), ideal.model_copy(update={"fifo_depth": 16}), repeats),
    ]
    line = "{name:12} {firings:10,} firings  {seconds:7.3f} s  {ns_per_firing:6.1f} ns each"
    figures = {"rows": rows, "width": width, "repeats": repeats, "cases": cases}
    finish("reference", output, (line.format(**case) for case in cases), figures)


if __name__ == "__main__":
    main()
