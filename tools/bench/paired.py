"""The processor time of a command in this tree and in another, by turns: whether a change made something slower.

    python tools/bench/paired.py --base DIR [--rounds 5] [--json FILE|-] -- python tools/bench/simulator.py --case union --json -
    python tools/bench/paired.py --base DIR -- python -c 'import fuseflow'

In every round each tree runs COMMAND once, in its own directory and with its own packages first on PYTHONPATH; who begins changes from
round to round. So both meet the same load of the machine. After one run of each that is not counted, it prints for each tree the median
of user and system time of all processes of a run, and the median over the rounds of this tree's time divided by the other's.

If COMMAND prints JSON, as the benchmarks do with `--json -`, the numbers that differ from run to run are compared in the same way, each by
where it stands: these leave out what a benchmark spends on its preparations. Only numbers that both trees have are compared.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from host import JSON, finish

ROOT = Path(__file__).resolve().parents[2]
PROCESSOR = "processor seconds"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Medians of a figure in two trees, and the median of the ratios of the rounds: above 1 this tree has more."""

    name: str
    base: float
    here: float
    ratio: float


@click.command(help=__doc__.partition("\n")[0])
@click.option("--base", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), help="the other tree")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="measured runs in each tree")
@click.option("--allow", default=0, metavar="STATUS", help="an exit status of COMMAND besides 0 that is no failure")
@JSON
@click.argument("command", nargs=-1, required=True)
def main(base: Path, rounds: int, allow: int, output: str | None, command: tuple[str, ...]) -> None:
    trees = (base.resolve(), ROOT)
    for tree in trees:
        measure(tree, command, allow)
    runs: tuple[list[dict[str, float]], ...] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            runs[which].append(measure(trees[which], command, allow))
    compared = list(comparisons(*runs))
    figures = {c.name: {"base": c.base, "here": c.here, "ratio": round(c.ratio, 4)} for c in compared}
    lines = (f"{c.name:60} base {c.base:12.4f}  here {c.here:12.4f}  ratio {c.ratio:.3f}" for c in compared)
    finish("paired", output, lines, {"command": list(command), "rounds": rounds, "figures": figures})


def measure(tree: Path, command: Sequence[str], allow: int) -> dict[str, float]:
    """Processor seconds of one run and of the processes that it starts, and the numbers that it prints as JSON."""
    words = [sys.executable if word == "python" else word for word in command]
    before = children()
    done = subprocess.run(words, cwd=tree, env=environment(tree), capture_output=True, text=True, check=False)
    if done.returncode not in (0, allow):
        raise click.ClickException(f"in {tree}, exit status {done.returncode}: {done.stderr.strip()[-2000:]}")
    return {PROCESSOR: children() - before, **dict(numbers(parsed(done.stdout)))}


def children() -> float:
    """Processor seconds of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def environment(tree: Path) -> dict[str, str]:
    """That of this process, with the packages of the tree before all others."""
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [path for path in others if path and not Path(path).resolve().is_relative_to(ROOT)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), *kept])}


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def numbers(value: Any, where: str = "") -> Iterator[tuple[str, float]]:
    """Every number in JSON and where it stands. An entry of a list that has a name stands below its name."""
    match value:
        case bool():
            return
        case int() | float():
            yield where, float(value)
        case dict():
            for key, entry in value.items():
                yield from numbers(entry, f"{where}.{key}".lstrip("."))
        case list():
            for place, entry in enumerate(value):
                name = entry.get("name", place) if isinstance(entry, dict) else place
                yield from numbers(entry, f"{where}.{name}".lstrip("."))


def comparisons(base: list[dict[str, float]], here: list[dict[str, float]]) -> Iterator[Comparison]:
    """Of every figure that both have in every run, and that is not always the same and never 0."""
    for name in base[0]:
        if not all(name in run for run in (*base, *here)):
            continue
        old, new = [run[name] for run in base], [run[name] for run in here]
        if len({*old, *new}) == 1 or 0.0 in old:
            continue
        ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
        yield Comparison(name, statistics.median(old), statistics.median(new), ratio)


if __name__ == "__main__":
    main()
