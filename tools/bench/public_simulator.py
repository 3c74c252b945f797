"""How fast the engine simulates graphs of the public Comal simulator, beside that simulator: same graphs, data and cycles.

    python tools/bench/public_simulator.py [--comal PATH] [--case elemadd]... [--scale 1.0] [--rounds 5] [--json FILE|-]

PATH is the program of https://github.com/stanford-ppl/comal; without it the engine alone is measured. It reads a graph of
`tests/data/comal` and text files, runs with `--inference`, which makes it faster, and prints the cycles. Both simulate the same random
matrices by turns. Times are processor seconds; those in which Comal reads files and makes channels, as `--breakdowns` prints, do not
count. Cycles that differ are exit status 1. A run of Comal is stopped after ten minutes.
"""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
from host import JSON, finish, seconds
from scipy import sparse

from fuseflow.samml.nodes import Graph
from fuseflow.samml.protobuf import from_proto
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import Tensor, pack
from fuseflow.tensors.array_files import write_fibertree

GRAPHS = Path(__file__).resolve().parents[2] / "tests/data/comal"
ROWS = {"elemadd": 1024, "spmv_intersect": 512, "spmm_ikj": 256, "spmm_ijk": 128}
"""The sizes of the cases that locate nothing, as branch `pyo3` of Comal. A twentieth of a matrix is stored, half of a vector."""
CYCLES, BEFORE = re.compile(r"Elapsed Cycles: (\d+)"), re.compile(r"(?:Parse|Initialization) Time: ([\d.]+)([mµ]?s)")
SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


def problem(name: str, rows: int) -> tuple[Graph, dict[str, Tensor]]:
    """Return a graph with random operands. All rows have equally many entries."""
    graph = from_proto((GRAPHS / f"{name}.bin").read_bytes(), dict.fromkeys("ijk", rows))
    rng, tensors = np.random.default_rng(0), {}
    for tensor in (tensor for tensor in graph.tensors if tensor.name not in graph.outputs):
        lines, entries = (rows, rows // 20) if len(tensor.shape) == 2 else (1, rows // 2)
        columns = np.concatenate([np.sort(rng.choice(rows, entries, replace=False)) for _ in range(lines)])
        values, ends = rng.random(len(columns), dtype=np.float32) + 0.5, np.arange(lines + 1) * entries
        matrix = sparse.csr_array((values, columns, ends), shape=(lines, rows))
        array = matrix.toarray()[0] if lines == 1 else matrix if tensor.format.order == (0, 1) else matrix.T.tocsc()
        tensors[tensor.name] = pack(array, tensor.format)
    return graph, tensors


def run_comal(comal: Path, name: str, folder: str) -> tuple[float, int]:
    """Return the processor seconds and the cycles of Comal."""
    command = [comal.resolve(), "--inference", "--breakdowns", "--proto", GRAPHS / f"{name}.bin", "--data", folder]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, timeout=600).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took - sum(float(n) * SECONDS[unit] for n, unit in BEFORE.findall(said)), int(CYCLES.findall(said)[0])


def measure(name: str, rows: int, rounds: int, comal: Path | None) -> dict[str, Any]:
    graph, tensors = problem(name, rows)
    machine, ours, theirs = load_machine("comal"), [], []
    result = simulate(graph, tensors, machine, engine="fast")
    with tempfile.TemporaryDirectory() as folder:
        for tensor, data in tensors.items():
            write_fibertree(folder, tensor, data)
        for _ in range(rounds):
            simulate(graph, tensors, machine, engine="fast")  # its memory is in use again after Comal
            ours.append(seconds(lambda: simulate(graph, tensors, machine, engine="fast")))
            theirs += [run_comal(comal, name, folder)] if comal else []
    figures = {"name": name, "rows": rows, "firings": result.firings, "cycles": result.cycles, "seconds": median(ours)}
    if theirs:
        ratio = median(there / here for here, (there, _) in zip(ours, theirs, strict=True))
        figures |= {"comal_seconds": median(took for took, _ in theirs), "comal_cycles": theirs[0][1], "ratio": ratio}
    return figures


@click.command(help=__doc__.partition("\n")[0])
@click.option("--comal", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="the public simulator")
@click.option("--case", "names", multiple=True, type=click.Choice(list(ROWS)), help="repeatable; else all")
@click.option("--scale", default=1.0, show_default=True, help="of the numbers of rows and columns")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@JSON
def main(comal: Path | None, names: tuple[str, ...], scale: float, rounds: int, output: str | None) -> None:
    cases = [measure(name, round(ROWS[name] * scale), rounds, comal) for name in names or ROWS]
    line = "{name:15} {rows:5} rows  {firings:12,} firings  {cycles:11,} cycles  {seconds:8.4f} s"
    line += "  Comal {comal_seconds:8.3f} s  {ratio:6.1f} times" if comal else "  skipped: Comal, which `--comal PATH` names"
    differ = (case for case in cases if case.get("comal_cycles", case["cycles"]) != case["cycles"])
    wrong = [f"{case['name']}: Comal takes {case['comal_cycles']:,} cycles, not {case['cycles']:,}" for case in differ]
    finish("public_simulator", output, (line.format(**case) for case in cases), {"rounds": rounds, "cases": cases}, wrong)


if __name__ == "__main__":
    main()
