"""How near the estimate is to the run for products by rows in 1 to 64 lanes of their rows, on random draws.

    python tools/bench/lane_estimates.py [--seed 0] [--runs 30]

A draw is a product of a sparse matrix and dense ones whose sums are kept in a workspace (alone, with a bias and an activation, scaled and
added to, and of matrices in each row), its sizes, its density, a machine (`ideal` or `rda`) and a number of lanes. Cycles of the run are
compared with those that the estimate expects of the tensors. The constants of the estimate were chosen with seeds 0 and 1: any other seed
draws runs that they do not know. Exits with 1 if the median error is above 10 %, or the largest above 20 %.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import click
import numpy as np
import numpy.typing as npt
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse

BARS = {"median": 10.0, "worst": 20.0}
"""Percent that the cycles may be off."""
A, B, C = "tensor A[{n}, {n}] csr\n", "tensor B[{n}, {m}]\n", "tensor C[{n}, {m}]\n"
ROWS = "[i, j] = sum(k) A[i, k] * B[k, j]\n"
SPARSE = "tensor Y[{n}, {n}] csr\n"
PRODUCTS = {
    "rows": (f"{A}{B}Y{ROWS}output Y", "i,k,j"),
    "layer": (f"{A}{B}tensor b[{{m}}]\nT{ROWS}Y[i, j] = relu(T[i, j] + b[j])\noutput Y", "i,k,j"),
    "scaled": (f"{A}{B}{C}T{ROWS}Y[i, j] = T[i, j] * C[i, j] + C[i, j]\noutput Y", "i,k,j"),
    "matrices": (f"{A}tensor D[{{n}}, 4, {{m}}]\nY[i, h, j] = sum(k) A[i, k] * D[k, h, j]\noutput Y", "i,k,h,j"),
    "compressed": (f"{A}tensor F[{{n}}, {{n}}] csr\nY[i, j] = sum(k) A[i, k] * F[k, j]\n{SPARSE}output Y", "i,k,j"),
    "inner": (f"{A}{B}Y{ROWS}output Y", "i,j,k"),
    "inner-csc": (
        f"{A}tensor F[{{n}}, {{m}}] csc\nY[i, j] = sum(k) A[i, k] * F[k, j]\ntensor Y[{{n}}, {{m}}] csr\noutput Y",
        "i,j,k",
    ),
    "sampled": (
        f"{A}{B}tensor G[{{m}}, {{n}}]\nY[i, j] = sum(k) A[i, j] * B[i, k] * G[k, j]\n{SPARSE}output Y",
        "i,j,k",
    ),
    "vector": (f"{A}tensor v[{{n}}]\nY[i] = sum(k) A[i, k] * v[k]\noutput Y", "i,k"),
    "attention": (
        f"tensor S[{{n}}, {{n}}] csr\n{B}tensor G[{{n}}, {{m}}]\n{C}"
        "T[i, j] = sum(k) S[i, j] * B[i, k] * G[j, k]\nm[i] = max(j) T[i, j]\nE[i, j] = S[i, j] * exp(T[i, j] - m[i])\n"
        "s[i] = sum(j) E[i, j]\nP[i, j] = E[i, j] / s[i]\nY[i, l] = sum(j) P[i, j] * C[j, l]\noutput Y",
        "i,j,k,l",
    ),
}
"""The statements of each product, and the order of its loops."""
LANES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Draw:
    """A run: `product` is one of `PRODUCTS`, of `n` rows and `m` columns, and the sparse matrix stores a share `density` of its entries."""

    product: str
    n: int
    m: int
    density: float
    lanes: int
    machine: str


def draw(rng: random.Random) -> Draw:
    """Draw a run."""
    n, m = rng.choice((100, 128, 150, 200, 250, 400)), rng.choice((8, 16, 24, 32))
    return Draw(
        rng.choice(tuple(PRODUCTS)), n, m, rng.choice((0.02, 0.03, 0.05, 0.1)), rng.choice(LANES), rng.choice(("ideal", "rda"))
    )


def measure(run: Draw, seed: int) -> float:
    """Estimate a draw, run it, and return how many percent of its cycles the estimate is off."""
    schedule = ff.Schedule.fuse("full").order("full", PRODUCTS[run.product][1])
    schedule = schedule.par(i=run.lanes) if run.lanes > 1 else schedule
    compiled = ff.compile(program(run), schedule=schedule, tensors=tensors(run, seed), machine=run.machine)
    cycles, expected = compiled.run().cycles, compiled.estimate().cycles
    error = 100 * (round(expected) / cycles - 1)
    what = f"{run.product:8} {run.n:4} x {run.m:2} at {run.density:4}, {run.lanes:2} lanes, {run.machine:5}"
    click.echo(f"{what}  {cycles:9,} cycles, expected {expected:9,.0f} ({error:+.1f} %)")
    return error


def program(run: Draw) -> Program:
    """Return the statements of a draw."""
    return parse(PRODUCTS[run.product][0].format(n=run.n, m=run.m))


def tensors(run: Draw, seed: int) -> Mapping[str, npt.NDArray[np.float32]]:
    """Return the tensors of a draw."""
    rng, known = np.random.default_rng(seed), dict[str, npt.NDArray[np.float32]]()
    for tensor in program(run).inputs:
        if tensor.format is None:
            values = rng.standard_normal(tensor.shape)
        else:
            values = sparse.random(*tensor.shape, run.density, random_state=rng).toarray()
        known[tensor.name] = values.astype(np.float32)
    return known


@click.command(help=__doc__)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--runs", type=click.IntRange(min=1), default=30, show_default=True)
def main(seed: int, runs: int) -> None:
    rng = random.Random(seed)
    errors = [abs(measure(draw(rng), 1000 * seed + at)) for at in range(runs)]
    found = {"median": statistics.median(errors), "worst": max(errors)}
    click.echo(f"{runs} runs of seed {seed}: median {found['median']:.1f} %, worst {found['worst']:.1f} %")
    sys.exit(any(found[name] > bar for name, bar in BARS.items()))


if __name__ == "__main__":
    main()
