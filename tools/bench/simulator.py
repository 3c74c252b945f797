"""How fast the simulator's engine runs, and in how much memory.

    python tools/bench/simulator.py [--case spmm_dense]... [--all] [--machine rda] [--set KEY=VALUE]... [--repeats 5] [--json FILE|-]
    python tools/bench/simulator.py --check [--machine rda]

Every case runs in a process of its own, so that `peak_rss_mb` is its own. `seconds` is the median wall time of a simulation, from tensors
to tensors, after a warm-up that loads the compiled kernels. The values are compared with scipy's and the firings of every node with a
closed form (at a memory that takes time, of those that ask for nothing). The machine is `ideal` unless another is named; the FIFOs of a
case that names their depth are as deep as that, so `comal`, whose FIFOs are unbounded, leaves it out. `--check` runs the cases at a small
size on the reference too, which must agree in everything. A check that fails is exit status 1.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import click
import numpy as np
from host import JSON, finish
from scipy import sparse
from simulator_cases import CASES, Case, Problem

from fuseflow.cli.common import parse_settings
from fuseflow.errors import FuseFlowError
from fuseflow.sim import Machine, Simulation, load_machine, simulate, with_settings
from fuseflow.tensors import Tensor

LINE = (
    "{name:20} {seconds:8.3f} s  {firings:14,} firings  {rate:7.1f} M/s  {cycles:13,} cycles  {mflop_per_second:6,} MFLOP/s  "
    "{lines:10,} lines  {peak_rss_mb:6,} MB"
)
TOLERANCE = 1e-6
"""Of the largest magnitude: the simulator computes in 64 bits and rounds once, to 32."""


def measure(case: Case, machine: Machine, repeats: int) -> tuple[dict[str, Any], list[str]]:
    """The figures of a case, and what is wrong with its results."""
    machine = machine_of(case, machine)
    simulate_problem(case.build(case.small), machine)  # loads the kernels
    problem = case.build(case.rows)
    seconds, cpu_seconds = [], []
    for _ in range(repeats):
        result: Any = None  # the outputs of the last run are not part of this one's peak
        wall, cpu = time.perf_counter(), time.process_time()
        result = simulate_problem(problem, machine)
        seconds.append(time.perf_counter() - wall)
        cpu_seconds.append(time.process_time() - cpu)
    median = statistics.median(seconds)
    figures = {
        "name": case.name,
        "seconds": round(median, 4),
        "cpu_seconds": round(statistics.median(cpu_seconds), 4),
        "firings": result.firings,
        "firings_per_second": round(result.firings / median),
        "cycles": result.cycles,
        "mflop_per_second": round(sum(result.operators.values()) / median / 1e6),
        "lines": 0 if result.memory is None else sum(port.requests for _, port in result.memory.ports),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    return figures, list(wrong(problem, result, machine))


def machine_of(case: Case, machine: Machine) -> Machine:
    return with_settings(machine, {} if case.depth is None else {"fifo_depth": case.depth})


def simulate_problem(problem: Problem, machine: Machine) -> Simulation:
    return simulate(problem.graph, problem.tensors, machine, engine="fast")


def wrong(problem: Problem, result: Simulation, machine: Machine) -> Iterator[str]:
    """Firings and values that are not what they must be, without any simulator."""
    asking = set() if result.memory is None else {port.node for port, _ in result.memory.ports}
    for node in result.nodes:
        due = getattr(problem.firings[node.name], machine.rules)
        if node.name not in asking and node.firings != due:
            yield f"`{node.name}` fired {node.firings:,} times, not {due:,}"
    (output,) = result.outputs.values()
    found = difference(output, problem.expected())
    if not found <= TOLERANCE:
        yield f"values differ from scipy's by {found:.1e} of the largest"


def difference(found: Tensor, expected: Any) -> float:
    """The largest difference, relative to the largest expected magnitude; infinite if other entries are stored."""
    if sparse.issparse(expected):
        got, due = found.to_scipy().tocsr(), sparse.csr_array(expected).sorted_indices()
        if not (np.array_equal(got.indptr, due.indptr) and np.array_equal(got.indices, due.indices)):
            return float("inf")
        values, expected = got.data, due.data
    else:
        values = found.values.reshape(found.shape) if found.format.all_dense else found.to_dense()
    return float(np.abs(values - expected).max() / np.abs(expected).max())


def differences(case: Case, machine: Machine) -> Iterator[str]:
    """What the engine does otherwise than the reference at the small size, and what is wrong with both."""
    problem, machine = case.build(case.small), machine_of(case, machine)
    fast = simulate_problem(problem, machine)
    slow = simulate(problem.graph, problem.tensors, machine, engine="reference")
    yield from wrong(problem, fast, machine)
    for name in ("cycles", "tokens", "operators", "traffic", "nodes", "edges", "depths", "memory"):
        if getattr(fast, name) != getattr(slow, name):
            yield f"{name} of the engine differ from the reference's"
    for name, output in fast.outputs.items():
        due = slow.outputs[name]
        if output.values.tobytes() != due.values.tobytes() or not np.array_equal(output.coordinates(), due.coordinates()):
            yield f"`{name}` of the engine differs from the reference's"


def measured_apart(case: Case, name: str, settings: tuple[str, ...], repeats: int) -> dict[str, Any]:
    """The figures of a case from a new process; the message and exit status of one that fails are passed on."""
    words = ["--here", "--case", case.name, "--repeats", str(repeats), "--json", "-", "--machine", name]
    words += [f"--set={setting}" for setting in settings]
    done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    figures: dict[str, Any] = json.loads(done.stdout)["cases"][0]
    return figures


def measured_here(case: Case, machine: Machine, repeats: int) -> dict[str, Any]:
    figures, problems = measure(case, machine, repeats)
    report(case, problems)
    return figures


def report(case: Case, problems: list[str]) -> None:
    """Print what is wrong and end, if anything is."""
    for problem in problems:
        click.echo(f"{case.name}: {problem}", err=True)
    if problems:
        sys.exit(1)


@click.command()
@click.option("--case", "names", multiple=True, type=click.Choice([case.name for case in CASES]), help="else all but the large")
@click.option("--all", "everything", is_flag=True, help="the large cases too")
@click.option("--list", "listing", is_flag=True, help="print the cases and end")
@click.option("--check", is_flag=True, help="compare with the reference at a small size; measure nothing")
@click.option("--machine", "name", default="ideal", show_default=True, help="a machine: its name, or a YAML file")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="change it, as in memory.channels=1")
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(min=1), help="runs of a case; a large one runs once")
@click.option("--here", is_flag=True, help="in this process: peaks of several cases are not told apart")
@JSON
def main(
    names: tuple[str, ...], everything: bool, listing: bool, check: bool, name: str, settings: tuple[str, ...], repeats: int,
    here: bool, output: str | None,
) -> None:  # fmt: skip
    try:
        machine = load_machine(name, parse_settings(settings))
    except FuseFlowError as error:
        raise click.UsageError(str(error)) from error
    chosen = [case for case in CASES if (case.name in names if names else everything or check or listing or not case.large)]
    if machine.rules == "comal" and not listing:
        for case in (case for case in chosen if case.depth is not None):
            click.echo(
                f"{case.name:20} is left out: it has FIFOs of {case.depth} slots, and those of machine `{name}` are unbounded",
                err=True,
            )
        chosen = [case for case in chosen if case.depth is None]
    if listing:
        for case in chosen:
            click.echo(f"{case.name:20} {case.about}")
    elif check:
        for case in chosen:
            report(case, list(differences(case, machine)))
            click.echo(f"{case.name:20} agrees with the reference at {case.small:,} rows")
    else:
        cases = []
        for case in chosen:
            times = 1 if case.large else repeats
            cases.append(measured_here(case, machine, times) if here else measured_apart(case, name, settings, times))
        simulated = {"name": machine.name, **machine.settings}
        lines = (LINE.format(rate=case["firings_per_second"] / 1e6, **case) for case in cases)
        finish("simulator", output, lines, {"repeats": repeats, "simulated": simulated, "cases": cases})


if __name__ == "__main__":
    main()
