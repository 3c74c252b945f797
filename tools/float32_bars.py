"""Measures the 32-bit arithmetic: the units in Verilator against NumPy and the simulators, and the functions against mpmath.

    python tools/float32_bars.py [--pairs 10000000] [--edges 2000] [--inputs 1000000] [--seed 0] [--only NAME ...]
    python tools/float32_bars.py --yosys [--only NAME ...]

Correctly rounded units (add, sub, mul, div, sqrt) must equal NumPy's floats of 32 bits, with the annihilators of the table, on random pairs
and on all pairs of edge values. All units must equal the compiled kernels of the simulators bit for bit, on the same pairs. The functions
must be within 1 ulp of mpmath on the inputs, and their units equal to the kernels there. With --yosys, all units are synthesized instead,
which must find no latch and no loop. Exit status 1 if something differs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import float_units as fu

from fuseflow.ops import OPERATORS

CHUNK = 500_000


@click.command(help=__doc__.partition("\n")[0])
@click.option(
    "--pairs", default=10_000_000, show_default=True, type=click.IntRange(0), help="random operands of the rounded units"
)
@click.option(
    "--edges", default=2000, show_default=True, type=click.IntRange(0), help="edge values, of which all pairs are taken"
)
@click.option("--inputs", default=1_000_000, show_default=True, type=click.IntRange(0), help="operands of each function")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--only", multiple=True, type=click.Choice(fu.UNITS), help="of these units")
@click.option("--yosys", is_flag=True, help="synthesize the units")
def main(pairs: int, edges: int, inputs: int, seed: int, only: tuple[str, ...], yosys: bool) -> None:
    if yosys:
        sys.exit(not all(synthesis_bar(name) for name in only or fu.UNITS))
    if shutil.which("verilator") is None:
        raise click.UsageError("Verilator is not installed")
    names = only or fu.UNITS
    wrong = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            unit = fu.Units([name], Path(folder))
            wrong += (
                function_bar(name, unit, inputs, seed) if name in fu.WITHIN_1_ULP else pair_bar(name, unit, pairs, edges, seed)
            )
    sys.exit(wrong > 0)


def synthesis_bar(name: str) -> bool:
    """Print whether yosys makes gates of a unit, and how many cells, and return whether it does."""
    start = time.monotonic()
    made, cells = fu.synthesized(name)
    fine = made and "latch" not in cells.lower()
    count = [line.split()[-1] for line in cells.splitlines() if "Number of cells" in line]
    print(
        f"{name}: {'synthesized' if fine else 'FAILED'}, {count[-1] if count else 'no'} cells, {time.monotonic() - start:.0f} s",
        flush=True,
    )
    return fine


def pair_bar(name: str, unit: fu.Units, pairs: int, edges: int, seed: int) -> bool:
    """Print what a unit gives on pairs, and return whether something differs."""
    start, count, bad, rounded = time.process_time(), 0, 0, 0
    for a, b, c in operands(pairs, edges, seed):
        given = unit(a, b, c)[name]
        bad += int((given != fu.by_simulator(name, a, b, c)).sum())
        if name in fu.ROUNDED:
            rounded += int((given != fu.by_numpy(name, a, b)).sum())
        count += len(a)
    numpy = f", {rounded} differ from NumPy" if name in fu.ROUNDED else ""
    print(f"{name}: {count:,} operands, {bad} differ from the simulators{numpy}, {time.process_time() - start:.0f} s", flush=True)
    return bad + rounded > 0


def operands(pairs: int, edges: int, seed: int) -> Iterator[tuple[fu.Words, fu.Words, fu.Words]]:
    """Random operands and then all pairs of edge values, with any third operand, in chunks."""
    rng = np.random.default_rng(seed)
    for first in range(0, pairs, CHUNK):
        yield fu.random_words(rng, min(CHUNK, pairs - first))
    words = fu.edge_words(edges)
    rows = max(1, CHUNK // max(1, len(words)))
    for first in range(0, len(words), rows):
        a, b = (grid.ravel() for grid in np.meshgrid(words[first : first + rows], words, indexing="ij"))
        yield a, b, rng.permutation(b)


def function_bar(name: str, unit: fu.Units, inputs: int, seed: int) -> bool:
    """Print how far a function is from the exact one, and whether its unit gives the same; return whether that is too far."""
    start, bad, worst, place = time.process_time(), 0, 0.0, ""
    rng = np.random.default_rng(seed)
    arity = OPERATORS[name].arity
    for first in range(0, inputs, CHUNK):
        a, b = fu.function_words(name, rng, min(CHUNK, inputs - first))
        given, kernel = unit(a, b, b)[name], fu.by_simulator(name, a, b, b)
        bad += int((given != kernel).sum())
        columns = [fu.floats(word).astype(float).tolist() for word in (a, b)[:arity]]
        for values in zip(*columns, fu.floats(given).astype(float).tolist(), strict=True):
            error = fu.ulps(name, values[:-1], values[-1])
            if error > worst:
                worst, place = error, f"{name}{values[:-1]} = {values[-1]}"
    a, b, c = fu.random_words(rng, CHUNK)
    bad += int((unit(a, b, c)[name] != fu.by_simulator(name, a, b, c)).sum())
    seconds = time.process_time() - start
    print(
        f"{name}: {inputs:,} operands, {worst:.4f} ulp at most ({place}), {bad} differ from the simulators, {seconds:.0f} s",
        flush=True,
    )
    return bad > 0 or worst > 1


if __name__ == "__main__":
    main()
