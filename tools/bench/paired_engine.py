"""The processor time of the simulator's engine in this tree and in another, simulation by simulation: whether a change made it slower.

    python tools/bench/paired_engine.py --base DIR [--case union]... [--machine rda] [--rounds 11] [--most 1.03] [--json FILE|-]

The cases are those of `simulator.py`, but for the large ones, which are named if they are meant, and attention with 16 and 64 lanes as in
`engine_with_lanes.py` (`attention_4x4`, `attention_4x16`; `--data` and `--heads` say how large). For each case, both trees have one
process, which prepares the case and simulates it once. Then they simulate it by turns, and who begins changes from round to round. So
both meet the same load of the machine, and nothing but simulations is measured, from tensors to tensors.

It prints the medians of the processor seconds, and the median over the rounds of this tree's time divided by the other's, with its
quartiles. Cycles that differ, or a median of ratios above `--most`, are exit status 1. Both trees need these cases in their `tools/bench`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
ATTENTION = {f"attention_{heads}x{rows}": (heads, rows) for heads, rows in ((4, 4), (4, 16))}
"""Lanes of heads and of rows, by the name of the case."""


@dataclass(frozen=True, slots=True)
class Size:
    """The mask of attention, and how many heads it has."""

    data: str
    heads: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Medians of the seconds of a case in two trees, and of the ratios of the rounds with their quartiles: above 1 this tree is slower."""

    name: str
    cycles: int
    base: float
    here: float
    ratio: float
    lower: float
    upper: float


class Worker:
    """A process that simulates a case with the packages of a tree whenever it is asked to."""

    def __init__(self, tree: Path, case: str, machine: str, size: Size) -> None:
        words = [sys.executable, "-P", __file__, "--base", str(tree), "--serve", case, "--machine", machine]
        words += ["--data", size.data, "--heads", str(size.heads)]
        path = os.pathsep.join([str(tree), str(tree / "tools" / "bench")])
        self.tree = tree
        self.process = subprocess.Popen(
            words, cwd=tree, env={**os.environ, "PYTHONPATH": path}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    def simulate(self) -> tuple[float, int]:
        """Return the processor seconds and the cycles of one simulation."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            print(file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise click.ClickException(f"the simulation in {self.tree} failed, as it says above")
        seconds, cycles = json.loads(answer)
        return seconds, cycles


def serve(simulation: Callable[[], int]) -> None:
    """Simulate once for every line of the input, and print the processor seconds and the cycles."""
    for _ in sys.stdin:
        start = time.process_time()
        cycles = simulation()
        print(json.dumps((time.process_time() - start, cycles)), flush=True)


def simulation_of(name: str, machine: str, size: Size) -> Callable[[], int]:
    """Return a function that simulates a case of the tree in the path, and returns its cycles."""
    if name in ATTENTION:
        from engine_with_lanes import compiled, seconds

        program = compiled(*ATTENTION[name], size.data, size.heads, machine)
        return lambda: seconds(program)[2]
    from simulator import machine_of, simulate_problem
    from simulator_cases import CASES

    from fuseflow.sim import load_machine

    case = next(case for case in CASES if case.name == name)
    problem, chosen = case.build(case.rows), machine_of(case, load_machine(machine))
    return lambda: simulate_problem(problem, chosen).cycles


def case_names(large: bool, machine: str = "ideal") -> list[str]:
    """Return the cases that run on a machine: with `rules: comal`, those whose FIFOs have no depth."""
    from simulator_cases import CASES

    from fuseflow.sim import load_machine

    any_depth = load_machine(machine).rules != "comal"
    return [case.name for case in CASES if (large or not case.large) and (any_depth or case.depth is None)] + list(ATTENTION)


def compare(base: Path, name: str, machine: str, size: Size, rounds: int) -> Comparison:
    """Simulate a case in both trees by turns."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(tree, name, machine, size)) for tree in (base, ROOT)]
        cycles = [worker.simulate()[1] for worker in workers]  # loads the kernels
        if cycles[0] != cycles[1]:
            raise click.ClickException(f"{name} has {cycles[0]:,} cycles in {base}, and {cycles[1]:,} here")
        runs: tuple[list[float], list[float]] = ([], [])
        for number in range(rounds):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                runs[which].append(workers[which].simulate()[0])
    ratios = [here / other for other, here in zip(*runs, strict=True)]
    lower, middle, upper = statistics.quantiles(ratios, n=4) if rounds > 1 else ratios * 3
    other, here = (statistics.median(seconds) for seconds in runs)
    return Comparison(name, cycles[0], round(other, 4), round(here, 4), round(middle, 4), round(lower, 4), round(upper, 4))


@click.command(help=__doc__.partition("\n")[0])
@click.option("--base", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), help="the other tree")
@click.option(
    "--case", "names", multiple=True, type=click.Choice(case_names(large=True)), help="repeatable; all but the large ones"
)
@click.option("--machine", default="ideal", show_default=True)
@click.option("--data", default="bigbird:block=64,length=256", show_default=True, help="the mask of attention")
@click.option("--heads", default=4, show_default=True, type=click.IntRange(1), help="of the attention")
@click.option("--rounds", default=11, show_default=True, type=click.IntRange(1), help="measured simulations in each tree")
@click.option("--most", default=1.03, show_default=True, help="the largest ratio that is no failure")
@click.option("--json", "output", help="write the figures as JSON to a file, or `-`")
@click.option("--serve", "served", hidden=True, help="be a worker for this case")
def main(
    base: Path, names: tuple[str, ...], machine: str, data: str, heads: int, rounds: int, most: float, output: str | None,
    served: str | None,
) -> None:  # fmt: skip
    size = Size(data, heads)
    if served is not None:
        return serve(simulation_of(served, machine, size))
    found: list[Comparison] = []
    for name in names or case_names(large=False, machine=machine):
        found.append(compare(base.resolve(), name, machine, size, rounds))
        if output != "-":
            show(found[-1])
    figures = {"benchmark": "paired_engine", "simulated": machine, "rounds": rounds, "cases": [asdict(c) for c in found]}
    if output == "-":
        click.echo(json.dumps(figures, indent=1))
    elif output:
        Path(output).write_text(json.dumps(figures, indent=1) + "\n")
    if slower := [c.name for c in found if c.ratio > most]:
        sys.exit(f"slower than {most} times the other tree: {', '.join(slower)}")


def show(c: Comparison) -> None:
    click.echo(
        f"{c.name:20} base {c.base:8.4f} s  here {c.here:8.4f} s  ratio {c.ratio:.3f} ({c.lower:.3f} to {c.upper:.3f})"
        f"  {c.cycles:13,} cycles  {c.cycles / c.here:14,.0f} cycles a second"
    )


if __name__ == "__main__":
    main()
