"""Factored against global iteration: cycles and firings of a triple product and of GCN layers, both checked.

    python evaluation/iteration.py [--data-dir planetoid] [--machine ideal]

The triple product is T[i,l] = sum_kj A[i,k] B[k,j] C[j,l] of random square matrices, written as two fused Einsums, D = A B and T = D C.
It must equal scipy's exactly; the numbers are small integers. The layers are those of models/gcn.py, each a region, on the karate
club, a random graph and, with `--data-dir`, Cora; they are checked against PyTorch. Both iterations take the loop order that the
compiler ranks best.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import numpy as np
from measured import Differs, Run, must, show
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.report.tables import plain_table
from fuseflow.sim import Engine

MODEL = Path(__file__).resolve().parents[1] / "models" / "gcn.py"
ITERATIONS = ("factored", "global")
PRODUCTS = ((200, 0.02), (200, 0.05), (200, 0.1), (500, 0.02), (500, 0.05), (1000, 0.01), (2000, 0.005), (2000, 0.01))
"""Rows and columns, and the share of entries that are stored."""
GRAPHS = ("karate", "random:nodes=1000,degree=8,features=64")
CORA = ("cora:nodes=500", "cora")


@dataclass(frozen=True, slots=True)
class Case:
    """A region in both iterations."""

    name: str
    factored: Run
    globally: Run


def triple_product(size: int, density: float, machine: str, seed: int = 0, engine: Engine = "fast") -> Case:
    """Raises `Differs` where the values differ from scipy's."""
    random = np.random.default_rng(seed)
    values = partial(random.integers, 1, 9)
    a, b, c = (
        sparse.random_array((size, size), density=density, format="csr", dtype=np.float32, rng=random, data_sampler=values)
        for _ in range(3)
    )
    program = parse(
        f"""program triple_product
        tensor A[{size}, {size}] csr
        tensor B[{size}, {size}] csr
        tensor C[{size}, {size}] csr
        D[i, j] = sum(k) A[i, k] * B[k, j]
        T[i, l] = sum(j) D[i, j] * C[j, l]
        output T
        """
    )
    expected = (a @ b @ c).toarray()
    runs = []
    for iteration in ITERATIONS:
        schedule = ff.Schedule.fuse("full").lower(iteration=iteration)
        compiled = ff.compile(program, tensors={"A": a, "B": b, "C": c}, schedule=schedule, machine=machine)
        result = compiled.run(check=False, engine=engine)
        must(np.array_equal(result.tensors["T"].to_dense(), expected), f"{iteration}: values differ from scipy's")
        runs.append(Run.of(compiled.regions, result.regions))
    return Case(f"A B C {size:,} x {size:,}, {density:.1%}", *runs)


def gcn_layers(data: str, machine: str, data_dir: str | None = None, engine: Engine = "fast") -> tuple[Case, ...]:
    """One case for each layer. Raises `Differs` where the model's output differs from PyTorch's."""
    layers: dict[str, list[Run]] = {}
    for iteration in ITERATIONS:
        schedule = ff.Schedule.fuse("layerwise").lower(iteration=iteration)
        compiled = ff.compile(MODEL, data=data, data_dir=data_dir, schedule=schedule, machine=machine)
        result = compiled.run(engine=engine)
        must(result.check is not None and result.check.passed, f"{iteration}: {data} differs from PyTorch: {result.check}")
        for region, run in zip(compiled.regions, result.regions, strict=True):
            layers.setdefault(region.name, []).append(Run.of((region,), (run,)))
    return tuple(Case(f"GCN {layer}, {data}", *runs) for layer, runs in layers.items())


def cases(machine: str, data_dir: str | None) -> Iterator[Case]:
    for size, density in PRODUCTS:
        yield triple_product(size, density, machine)
    for data in GRAPHS:
        yield from gcn_layers(data, machine)
    for data in CORA if data_dir else ():
        yield from gcn_layers(data, machine, data_dir)


def report(found: list[Case]) -> None:
    columns = [f"{what}\n{which}" for what in ("cycles", "firings", "FLOPs") for which in (*ITERATIONS, "ratio")]
    table = plain_table("", "loops\nfactored", "loops\nglobal", *columns, numbers_from=3)
    for case in found:
        numbers = []
        for name in ("cycles", "firings", "flops"):
            ours, theirs = (getattr(run, name) for run in (case.factored, case.globally))
            numbers += [f"{ours:,}", f"{theirs:,}", f"{theirs / ours:.2f}"]
        table.add_row(case.name, ",".join(case.factored.order), ",".join(case.globally.order), *numbers)
    show(table)


@click.command(help=__doc__.partition("\n")[0])
@click.option("--data-dir", default=None, help="where the Planetoid files of Cora are; without it Cora is left out")
@click.option("--machine", default="ideal", show_default=True)
def main(data_dir: str | None, machine: str) -> None:
    try:
        found = list(cases(machine, data_dir))
    except (Differs, FuseFlowError) as error:
        sys.exit(str(error))
    report(found)


if __name__ == "__main__":
    main()
