"""How long the selection n:m:g takes, and what it keeps, in processor time on one core.

    python tools/bench/grouped_selection.py [--shape 768x3072] [--pattern 2:4:4 ...] [--repeats 3] [--json FILE|-]

The tensor is `torch.manual_seed(0); torch.randn(rows, columns)`; `n` of `m` are kept in its rows' dimension. Times are the least of the
repeats; the first call, which also compiles the greedy loop or reads its machine code, is not among them. `pack` is the time to store the
tensor in the layout of the selection. Exits with 1 above the bars of 2:4:4 and 768x3072: 1 s for greedy, 30 s for exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import torch
from host import JSON, finish

from fuseflow.selection import Largest, kept
from fuseflow.sparsity.energies import energy
from fuseflow.sparsity.grouped.assignment import Method
from fuseflow.sparsity.grouped.grouping import grouping
from fuseflow.sparsity.grouped.layout import pack

BARS = {"greedy_s": 1.0, "exact_s": 30.0}
METHODS: tuple[Method, ...] = ("greedy", "exact")


def seconds(run: Callable[[], object], repeats: int) -> float:
    def once() -> float:
        start = time.process_time()
        run()
        return time.process_time() - start

    once()
    return min(once() for _ in range(repeats))


def case(array: npt.NDArray[Any], n: int, m: int, g: int, repeats: int) -> dict[str, Any]:
    row: dict[str, Any] = {"name": f"{n}:{m}:{g}", "shape": list(array.shape)}
    row["nm_energy"] = round(energy(array, kept(Largest(n, every=m), array, [0])), 4)
    for method in METHODS:
        row[f"{method}_s"] = round(seconds(lambda method=method: grouping(array, n, m, g, 0, 1, method), repeats), 3)
        chosen = grouping(array, n, m, g, 0, 1, method)
        row[f"{method}_energy"] = round(energy(array, chosen.mask()), 4)
    row["kept"] = round(float(np.mean(chosen.mask())), 4)
    row["pack_s"] = round(seconds(lambda: pack(array, chosen), repeats), 3)
    return row


@click.command(help=__doc__.partition("\n")[0])
@click.option("--shape", default="768x3072", show_default=True)
@click.option("--pattern", "patterns", multiple=True, default=["2:4:4"], show_default=True)
@click.option("--repeats", default=3, show_default=True)
@JSON
def main(shape: str, patterns: tuple[str, ...], repeats: int, output: str | None) -> None:
    torch.manual_seed(0)
    rows, columns = map(int, shape.split("x"))
    array = torch.randn(rows, columns).numpy()
    measured = [case(array, *map(int, pattern.split(":")), repeats) for pattern in patterns]
    lines = (
        f"{row['name']:8} {shape}  " + "  ".join(f"{key} {value}" for key, value in row.items() if key not in ("name", "shape"))
        for row in measured
    )
    barred = [row for row in measured if (shape, row["name"]) == ("768x3072", "2:4:4")]
    slow = [f"{key} {row[key]:g} > {bar:g}" for row in barred for key, bar in BARS.items() if row[key] > bar]
    finish("grouped selection", output, lines, {"repeats": repeats, "cases": measured}, slow)


if __name__ == "__main__":
    main()
