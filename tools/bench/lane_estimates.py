"""How near the estimate is to the run for products in 1 to 64 lanes of their rows, on random draws.

    python tools/bench/lane_estimates.py [--seed 0] [--runs 30] [--json FILE|-]

A draw is a kind of product, its sizes, its density, a machine (`ideal` or `rda`) and a number of lanes. Kinds are products by rows, of a
sparse matrix and dense ones (alone, with a bias and an activation, scaled and added to, and of matrices in each row) or of two sparse ones;
inner products, with a dense matrix and with a sparse one; sampled products; a product with a vector; and masked attention, of scores, a
softmax and a product. Cycles of the run are compared with those that the estimate expects of the tensors. The constants of the estimate
were chosen with seeds 0 and 1: any other seed draws runs that they do not know. Exits with 1 if the median error is above 10 %, or the
largest above 20 %.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import click
import numpy as np
import numpy.typing as npt
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse

BARS = {"median": 10.0, "worst": 20.0}
"""Percent that the cycles may be off."""
PRODUCTS = {
    "rows": ("tensor A[{n}, {n}] csr\ntensor B[{n}, {m}]\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y", "i,k,j"),
    "layer": (
        "tensor A[{n}, {n}] csr\ntensor B[{n}, {m}]\ntensor b[{m}]\nT[i, j] = sum(k) A[i, k] * B[k, j]\nY[i, j] = relu(T[i, j] + b[j])\n"
        "output Y",
        "i,k,j",
    ),
    "scaled": (
        "tensor A[{n}, {n}] csr\ntensor B[{n}, {m}]\ntensor C[{n}, {m}]\nT[i, j] = sum(k) A[i, k] * B[k, j]\n"
        "Y[i, j] = T[i, j] * C[i, j] + C[i, j]\noutput Y",
        "i,k,j",
    ),
    "matrices": (
        "tensor A[{n}, {n}] csr\ntensor D[{n}, 4, {m}]\nY[i, h, j] = sum(k) A[i, k] * D[k, h, j]\noutput Y",
        "i,k,h,j",
    ),
    "compressed": (
        "tensor A[{n}, {n}] csr\ntensor F[{n}, {n}] csr\ntensor Y[{n}, {n}] csr\nY[i, j] = sum(k) A[i, k] * F[k, j]\noutput Y",
        "i,k,j",
    ),
    "inner": ("tensor A[{n}, {n}] csr\ntensor B[{n}, {m}]\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y", "i,j,k"),
    "inner-csc": (
        "tensor A[{n}, {n}] csr\ntensor F[{n}, {m}] csc\ntensor Y[{n}, {m}] csr\nY[i, j] = sum(k) A[i, k] * F[k, j]\noutput Y",
        "i,j,k",
    ),
    "sampled": (
        "tensor A[{n}, {n}] csr\ntensor B[{n}, {m}]\ntensor G[{m}, {n}]\ntensor Y[{n}, {n}] csr\n"
        "Y[i, j] = sum(k) A[i, j] * B[i, k] * G[k, j]\noutput Y",
        "i,j,k",
    ),
    "vector": ("tensor A[{n}, {n}] csr\ntensor v[{n}]\nY[i] = sum(k) A[i, k] * v[k]\noutput Y", "i,k"),
    "attention": (
        "tensor S[{n}, {n}] csr\ntensor B[{n}, {m}]\ntensor G[{n}, {m}]\ntensor C[{n}, {m}]\n"
        "T[i, j] = sum(k) S[i, j] * B[i, k] * G[j, k]\nm[i] = max(j) T[i, j]\nE[i, j] = S[i, j] * exp(T[i, j] - m[i])\n"
        "s[i] = sum(j) E[i, j]\nP[i, j] = E[i, j] / s[i]\nY[i, l] = sum(j) P[i, j] * C[j, l]\noutput Y",
        "i,j,k,l",
    ),
}
"""The statements of each product, and the order of its loops."""
LANES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Draw:
    """A run: `product` is one of `PRODUCTS`, of `n` rows and `m` columns, and sparse matrices store a share `density` of their entries."""

    product: str
    n: int
    m: int
    density: float
    lanes: int
    machine: str


@dataclass(frozen=True, slots=True)
class Row:
    """A draw with the cycles that it took, and those that were expected."""

    draw: Draw
    cycles: int
    expected: int

    @property
    def error(self) -> float:
        """How many percent of the cycles the estimate is off."""
        return 100 * (self.expected / self.cycles - 1)


def draw(rng: random.Random) -> Draw:
    """Draw a run."""
    n, m = rng.choice((100, 128, 150, 200, 250, 400)), rng.choice((8, 16, 24, 32))
    return Draw(
        rng.choice(tuple(PRODUCTS)), n, m, rng.choice((0.02, 0.03, 0.05, 0.1)), rng.choice(LANES), rng.choice(("ideal", "rda"))
    )


def measure(run: Draw, seed: int) -> Row:
    """Estimate a draw, and run it."""
    schedule = ff.Schedule.fuse("full").order("full", PRODUCTS[run.product][1])
    schedule = schedule.par(i=run.lanes) if run.lanes > 1 else schedule
    compiled = ff.compile(program(run), schedule=schedule, tensors=tensors(run, seed), machine=run.machine)
    return Row(run, compiled.run().cycles, round(compiled.estimate().cycles))


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
            rows, columns = tensor.shape
            values = sparse.random(rows, columns, run.density, random_state=rng).toarray()
        known[tensor.name] = values.astype(np.float32)
    return known


@click.command(help=__doc__)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--runs", type=click.IntRange(min=1), default=30, show_default=True)
@click.option("--json", "target", type=click.Path(dir_okay=False, allow_dash=True))
def main(seed: int, runs: int, target: str | None) -> None:
    rng = random.Random(seed)
    rows = [measure(draw(rng), 1000 * seed + at) for at in range(runs)]
    for row in rows:
        d = row.draw
        what = f"{d.product:10} {d.n:4} x {d.m:2} at {d.density:4}, {d.lanes:2} lanes, {d.machine:5}"
        click.echo(f"{what}  {row.cycles:9,} cycles, expected {row.expected:9,} ({row.error:+.1f} %)")
    errors = [abs(row.error) for row in rows]
    found = {"median": statistics.median(errors), "worst": max(errors)}
    click.echo(f"{runs} runs of seed {seed}: median {found['median']:.1f} %, worst {found['worst']:.1f} %")
    if target is not None:
        with click.open_file(target, "w") as file:
            json.dump({"seed": seed, "rows": [asdict(row) for row in rows], **found}, file)
    sys.exit(any(found[name] > bar for name, bar in BARS.items()))


if __name__ == "__main__":
    main()
