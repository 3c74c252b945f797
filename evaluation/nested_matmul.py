"""Cycles of T[i,l] = A[i,k] B[k,j] C[j,l] in all 24 loop orders, as one Einsum and as two fused ones (figure 17 of the FuseFlow paper).

    python evaluation/nested_matmul.py [--copies] [--machine ideal]...

A is the karate club's adjacency (34 x 34, csf), B 34 x 34 stored dense and C 34 x 16 csf, both 90 % zeros. Every operand and the result
are stored in the order in which the loops want them; with `--copies` they stay as they are, by rows, and the compiler makes permuted
copies, whose cycles count. Every point runs on the reference and on the engine, which must say the same, and equals the dense product
exactly: the numbers are small integers. `*` marks the 15 orders that the paper plots.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from measured import Differs, Run, must, show

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, FusionError
from fuseflow.frontend.datasets.built_in import karate_club
from fuseflow.report.tables import plain_table

ORDERS = tuple("".join(order) for order in permutations("ikjl"))
PLOTTED = (0, 1, 2, 3, 4, 5, 12, 13, 14, 16, 17, 18, 19, 22, 23)
"""The orders in the paper's figure, by their place among all."""

STORED = {"A": ("ik", "compressed"), "B": ("kj", "dense"), "C": ("jl", "compressed"), "T": ("il", "compressed")}
"""Indices and level formats of what is in memory."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write the product, and to iterate it."""

    name: str
    einsums: tuple[str, ...]
    iteration: str = "factored"


_LEFT = ("D[i, j] = sum(k) A[i, k] * B[k, j]", "T[i, l] = sum(j) D[i, j] * C[j, l]")
_RIGHT = ("D[k, l] = sum(j) B[k, j] * C[j, l]", "T[i, l] = sum(k) A[i, k] * D[k, l]")
FORMS = (
    Form("A B C", ("T[i, l] = sum(k, j) A[i, k] * B[k, j] * C[j, l]",)),
    Form("(A B) C", _LEFT),
    Form("A (B C)", _RIGHT),
    Form("(A B) C global", _LEFT, "global"),
    Form("A (B C) global", _RIGHT, "global"),
)

Operands = Mapping[str, npt.NDArray[np.float32]]


def operands(nodes: int = 34, columns: int = 16, density: float = 0.1, seed: int = 0) -> Operands:
    """The club (its first nodes), and two matrices of random integers."""
    random = np.random.default_rng(seed)

    def sparse(*shape: int) -> npt.NDArray[np.float32]:
        return (random.integers(1, 9, shape) * (random.random(shape) < density)).astype(np.float32)

    return {"A": karate_club().first(nodes).edges.toarray(), "B": sparse(nodes, nodes), "C": sparse(nodes, columns)}


def program_text(form: Form, order: str, given: Operands, copies: bool) -> str:
    """Everything in memory stored in the order of the loops; with `copies` by rows."""
    sizes = dict(zip("ikl", (*given["A"].shape, given["C"].shape[1]), strict=True)) | {"j": given["C"].shape[0]}
    lines = ["program nested_matmul"]
    for name, ((row, column), level) in STORED.items():
        permuted = not copies and order.index(column) < order.index(row)
        lines.append(f"tensor {name}[{sizes[row]}, {sizes[column]}] ({level}, {level}) order {(1, 0) if permuted else (0, 1)}")
    return "\n".join((*lines, *form.einsums, "output T\n"))


def measure(form: Form, order: str, given: Operands, machine: str, copies: bool) -> Run | str:
    """The run on both simulators, or why the order is refused. Raises `Differs` where either is wrong."""
    program = parse(program_text(form, order, given, copies))
    target = "full" if len(form.einsums) > 1 else "T"
    schedule = ff.Schedule.fuse("full").order(target, tuple(order)).lower(iteration=form.iteration, copies=copies)
    try:
        compiled = ff.compile(program, tensors=given, schedule=schedule, machine=machine)
    except FusionError as refusal:
        return refusal.message
    fast, reference = (compiled.run(check=False, engine=engine) for engine in ("fast", "reference"))
    what = f"{form.name} in order {order} on {machine}"
    for result in (fast, reference):
        must(np.array_equal(result.tensors["T"].to_dense(), given["A"] @ given["B"] @ given["C"]), f"{what}: wrong values")
    for name in ("cycles", "firings", "operators", "traffic"):
        ours, theirs = ([getattr(r.simulation, name) for r in result.regions] for result in (fast, reference))
        must(ours == theirs, f"{what}: {name} of the engine differ from the reference's")
    return Run.of(compiled.regions, fast.regions)


Point = tuple[str, str, str]
"""Form, order, machine."""


def study(given: Operands, machines: Sequence[str], copies: bool) -> dict[Point, Run | str]:
    return {
        (form.name, order, machine): measure(form, order, given, machine, copies)
        for order in ORDERS
        for form in FORMS
        for machine in machines
    }


def cycles(points: Mapping[Point, Run | str], form: str, machine: str) -> dict[str, int]:
    """By order, of those that are not refused."""
    found = {order: points[form, order, machine] for order in ORDERS}
    return {order: run.cycles for order, run in found.items() if isinstance(run, Run)}


def spread(points: Mapping[Point, Run | str], form: str, machine: str) -> dict[str, float]:
    """The most cycles over the least: among the paper's orders and among all."""
    every = cycles(points, form, machine)
    plotted = [every[ORDERS[n]] for n in PLOTTED if ORDERS[n] in every]
    return {"plotted": max(plotted) / min(plotted), "all": max(every.values()) / min(every.values())}


def alike(points: Mapping[Point, Run | str], machines: Sequence[str]) -> dict[str, str]:
    """Forms that take the same cycles everywhere as one before them, and that one."""
    of = {form.name: tuple(tuple(cycles(points, form.name, m).items()) for m in machines) for form in FORMS}
    first: dict[Any, str] = {}
    return {name: same for name, key in of.items() if (same := first.setdefault(key, name)) != name}


def report(points: Mapping[Point, Run | str], machines: Sequence[str]) -> None:
    same = alike(points, machines)
    shown = [(form.name, machine) for machine in machines for form in FORMS if form.name not in same]
    table = plain_table("order", *(f"{form}\n{machine}" for form, machine in shown), numbers_from=1)
    for n, order in enumerate(ORDERS):
        runs = (points[form, order, machine] for form, machine in shown)
        table.add_row(f"{n:2} {order} {'*' if n in PLOTTED else ''}", *(_cell(run) for run in runs))
    table.add_section()
    for who, title in (("plotted", "spread of *"), ("all", "spread of all")):
        table.add_row(title, *(f"{spread(points, form, machine)[who]:.2f}" for form, machine in shown))
    show(table)
    for name, form in same.items():
        click.echo(f"the same cycles as {form}: {name}")
    for line in dict.fromkeys(_refusals(points)):
        click.echo(line)


def _cell(run: Run | str) -> str:
    if isinstance(run, str):
        return "refused"
    return f"{run.cycles:,}" + (f" ({run.copies:,})" if run.copies else "")


def _refusals(points: Mapping[Point, Run | str]) -> Iterator[str]:
    for (form, _, _), run in points.items():
        if isinstance(run, str):
            yield f"refused, {form}: {run}"


@click.command(help=__doc__.partition("\n")[0])
@click.option("--copies", is_flag=True, help="tensors stay by rows; permuted copies are made, and counted")
@click.option("--machine", "machines", multiple=True, default=("ideal", "rda"), show_default=True)
@click.option("--seed", default=0, show_default=True, help="of B and C")
def main(copies: bool, machines: tuple[str, ...], seed: int) -> None:
    try:
        points = study(operands(seed=seed), machines, copies)
    except (Differs, FuseFlowError) as error:
        sys.exit(str(error))
    report(points, machines)


if __name__ == "__main__":
    main()
