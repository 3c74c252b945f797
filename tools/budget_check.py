"""Whether schedules under a budget are what they say: the best of all candidates, within the budget, and the same after a kill.

    python tools/budget_check.py exhaustive --programs 200
    python tools/budget_check.py spaces --store spaces.jsonl --data-dir DIR
    python tools/budget_check.py within --programs 500
    python tools/budget_check.py kills --kills 10 --small
    python tools/budget_check.py same --runs 10 --small

`exhaustive` compares with all partitions, orders and lanes of random programs, each compiled as a whole. `spaces` compares with the best of
all partitions and lanes of the paper's models, simulated. `within` draws random programs of every kind and random searches. It adds up what
is chosen, and simulates and computes it once more. `kills` ends a search with -9 at random moments and begins it again. `same` searches ten
times in other circumstances. Each prints what it saw, and ends with 1 if something is wrong.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "evaluation")]

from auto import WORKLOADS, source_of  # noqa: E402
from budget_draws import BudgetDraw  # noqa: E402
from budget_spaces import AllCandidates, random_source  # noqa: E402
from lane_spaces import BestProgram, LaneSpace  # noqa: E402
from random_programs import Case, cases  # noqa: E402
from store import append, load  # noqa: E402

from fuseflow.autoscheduler.budget.budget_schedule import budget_schedule  # noqa: E402
from fuseflow.autoscheduler.budget.costs import LoweredCosts  # noqa: E402
from fuseflow.autoscheduler.budget.range_costs import RangeCosts  # noqa: E402
from fuseflow.autoscheduler.budget.request import BudgetRequest  # noqa: E402
from fuseflow.autoscheduler.budget.search import ALL_LEVERS, BudgetSearch  # noqa: E402
from fuseflow.autoscheduler.budget.trials import RegionRun, SimulateHere  # noqa: E402
from fuseflow.autoscheduler.budget.variants import VariantFactory  # noqa: E402
from fuseflow.autoscheduler.simulation_cache import SimulationCache  # noqa: E402
from fuseflow.errors import UsageError  # noqa: E402
from fuseflow.estimate.program import Estimator  # noqa: E402
from fuseflow.frontend.source import Source  # noqa: E402
from fuseflow.resources.budget import Budget  # noqa: E402
from fuseflow.schedule import Schedule  # noqa: E402
from fuseflow.sim import load_machine  # noqa: E402

ORDERS = 2
"""The orders of each range, so that all combinations can be compiled."""


def random_budget(rng: np.random.Generator) -> Budget:
    """Return a budget of some components, most of which leave room."""
    limits = {"mul": int(rng.integers(1, 12)), "add": int(rng.integers(4, 40)), "port": int(rng.integers(8, 80))}
    limits |= {"stream": int(rng.integers(20, 200)), "fifo": int(rng.integers(8, 96)) * 1024}
    kept = [name for name in limits if rng.random() < 0.5] or ["mul"]
    return Budget.of({name: limits[name] for name in kept})


@click.group(help=__doc__.partition("\n")[0] if __doc__ else "")
def main() -> None: ...


@main.command()
@click.option("--programs", default=200, show_default=True)
@click.option("--first", default=0, show_default=True, help="The first seed.")
def exhaustive(programs: int, first: int) -> None:
    """Compare the best with all candidates."""
    machine, base, tally = load_machine("rda"), Schedule.fuse("none"), Counter[str]()
    for number in range(first, first + programs):
        source, budget = random_source(number), random_budget(np.random.default_rng(number))
        estimator = Estimator(assume_unknown=True)
        variant = VariantFactory(source, machine, estimator, base, orders=ORDERS)(base)
        if variant is None:
            tally["cannot be cut"] += 1
            continue
        costs = RangeCosts(machine, LoweredCosts(machine, estimator), tried=None)
        outcome = BudgetSearch((variant,), costs).cheapest(budget, 1, ALL_LEVERS.without("stages").without("depths"))
        oracle = AllCandidates(source, machine, budget, base, ORDERS)
        best, chosen = oracle.best(), outcome.programs[0].cycles if outcome.programs else float("inf")
        same = best == chosen or abs(best - chosen) <= 1e-9 * best
        tally["no room" if best == float("inf") and same else "equal" if same else "different"] += 1
        tally["compiled for all"] += oracle.compiled
        tally["lowered by the search"] += costs.evaluated
        if not same:
            click.echo(f"program {number}, {budget}: {chosen} for {best}")
        if (number + 1) % 5 == 0:
            click.echo(f"{number + 1}: {dict(tally)}")
    click.echo(dict(tally))
    sys.exit(tally["different"] > 0)


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """A row of the store of `spaces`: the cycles of a region in some lanes, or those of the program that the search chose, with its
    estimate and the seconds of processor time that it took."""

    key: str
    cycles: int
    fifo: int | None = None
    estimate: float = 0.0
    seconds: float = 0.0
    schedule: str = ""


@main.command()
@click.option("--store", type=click.Path(path_type=Path), required=True, help="The runs, as JSON lines.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where the files of data sets are.")
@click.option("--only", multiple=True, help="Numbers of spaces, from 0 on; all without it.")
@click.option("--budget", default="small", show_default=True)
@click.option("--machine", default="ideal", show_default=True)
@click.option("--orders", default=1, show_default=True, help="The loop orders of each region.")
@click.option("--seconds", default=240.0, show_default=True, help="Processor time for the best of a space.")
def spaces(
    store: Path, data_dir: Path | None, only: tuple[str, ...], budget: str, machine: str, orders: int, seconds: float
) -> None:
    """Compare with the best of all partitions and lanes of five models, simulated."""
    click.echo("| model | data | chosen | best | factor | at most | simulated | counted | seconds to choose |")
    click.echo("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    worst = 0.0
    for number, work in enumerate(WORKLOADS):
        if only and str(number) not in only:
            continue
        source = source_of(work, data_dir)
        name = f"{machine}/{budget}/{work.name}/{work.data}"
        chosen = _chosen(source, name, machine, Budget.of(budget), store)
        best = _best(source, f"{name}/{orders}", machine, Budget.of(budget), orders, store, seconds)
        fewest = min(best.cycles, chosen.cycles)
        worst = max(worst, chosen.cycles / best.least)
        cells = [
            work.name,
            f"`{work.data}`",
            f"{chosen.cycles:,}",
            f"{best.cycles:,.0f}",
            f"{chosen.cycles / best.cycles:.3f}",
            f"{chosen.cycles / min(best.least, fewest):.3f}",
            f"{best.simulated:,}",
            f"{best.counted:,}",
            f"{chosen.seconds:.0f}",
        ]
        click.echo(f"| {' | '.join(cells)} |")
    sys.exit(worst > 1.05)


def _chosen(source: Source, name: str, machine: str, budget: Budget, store: Path) -> SpaceRow:
    """Return what the search chooses, simulated."""
    key = f"{name}/chosen"
    rows = load(store, SpaceRow)
    if key not in rows:
        start = time.process_time()
        choice = budget_schedule(source, Schedule(), load_machine(machine), BudgetRequest(budget))
        cycles = choice.chosen.cycles
        assert cycles is not None
        seconds = round(time.process_time() - start, 1)
        rows[key] = SpaceRow(key, cycles, None, round(choice.chosen.estimate), seconds, choice.schedule.to_yaml())
        append(store, rows[key])
    return rows[key]


def _best(source: Source, name: str, machine: str, budget: Budget, orders: int, store: Path, seconds: float) -> BestProgram:
    """Return the best program of a space, as far as it is found in some seconds."""
    hardware, estimator, base = load_machine(machine), Estimator(assume_unknown=True), Schedule.fuse("none")
    variant = VariantFactory(source, hardware, estimator, base, orders=orders)(base)
    if variant is None:
        raise click.ClickException(f"{name} cannot be cut")
    variant.graph.orders_at_once = orders > 1
    known = {
        key.removeprefix(f"{name}/"): RegionRun(row.cycles, row.fifo)
        for key, row in load(store, SpaceRow).items()
        if key.startswith(f"{name}/")
    }

    def keep(key: str, run: RegionRun) -> None:
        known[key] = run
        append(store, SpaceRow(f"{name}/{key}", run.cycles, run.fifo))

    simulate = SimulateHere(source, hardware, "auto", SimulationCache())
    space = LaneSpace(variant, hardware, budget, estimator, simulate, known, keep)
    best = space.best(seconds)
    promise = f"lanes took {space.broken_promise:.3f} of what they promised at least"
    click.echo(f"{name}: {'proved' if best.is_proved else f'no less than {best.least:,.0f}'}; {promise}", err=True)
    if best.schedule is not None:
        append(store, SpaceRow(f"{name}/best", round(best.cycles), schedule=best.schedule.to_yaml()))
    return best


@main.command()
@click.option("--programs", default=500, show_default=True)
@click.option("--draw", default=0, show_default=True, help="The seed of the draws.")
def within(programs: int, draw: int) -> None:
    """Look at what is chosen for random programs: what it occupies, takes and computes."""
    tally = Counter[str]()

    @seed(draw)
    @settings(
        max_examples=programs, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(cases(max_einsums=4))
    def check(case: Case) -> None:
        source = Source("random", case.program, case.tensors)
        search = BudgetDraw.of(source)
        try:
            choice = search.choice(source)
        except UsageError:
            tally["no room"] += 1
            return
        tally["chosen"] += 1
        tally["simulated"] += choice.chosen.cycles is not None
        for lever in ("buffers", "preloads", "splits"):
            tally[f"with {lever}"] += bool(getattr(choice.schedule, lever))
        if tally["chosen"] % 25 == 0:
            click.echo(dict(tally))
        faults = list(search.faults(source, choice))
        if faults:
            tally["wrong"] += 1
            click.echo("\n".join([*faults, repr(search), str(choice.schedule), repr(case)]))

    check()
    click.echo(dict(tally))
    sys.exit(tally["wrong"] > 0)


@main.command()
@click.option("--kills", default=10, show_default=True)
@click.option("--draw", default=0, show_default=True, help="The seed of the moments.")
@click.option("--small", is_flag=True, help="Search for a model that takes seconds.")
def kills(kills: int, draw: int, small: bool) -> None:
    """End a search with -9 at random moments, and let it come to its end."""
    chance = random.Random(draw)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.monotonic()
        if _search(folder, "peace", small).wait() != 0:
            raise click.ClickException("the search fails in peace")
        seconds = time.monotonic() - start
        rows = _rows(folder / "peace.sqlite")
        for number in range(kills):
            running = _search(folder, "killed", small)
            time.sleep(chance.uniform(0.05, 1.0) * seconds)
            running.send_signal(signal.SIGKILL)
            running.wait()
            click.echo(f"kill {number + 1}: {len(_rows(folder / 'killed.sqlite'))} of {len(rows)} simulations kept")
        if _search(folder, "killed", small).wait() != 0:
            raise click.ClickException("the search fails after the kills")
        same = (folder / "peace.yaml").read_bytes() == (folder / "killed.yaml").read_bytes()
        again = [key for key, finished in _rows(folder / "killed.sqlite").items() if key not in rows]
        click.echo(f"the same schedule: {same}; simulations beside those in peace: {len(again)}")
        sys.exit(not same or bool(again))


@main.command()
@click.option("--runs", default=10, show_default=True)
@click.option("--small", is_flag=True, help="Search for a model that takes seconds.")
def same(runs: int, small: bool) -> None:
    """Search again and again with another order of hashing, and one process or two."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(runs):
            running = _search(folder, f"run{number}", small, jobs=1 + number % 2, hash_seed=number)
            if running.wait() != 0:
                raise click.ClickException(f"run {number} fails")
        written = {(folder / f"run{number}.yaml").read_bytes() for number in range(runs)}
        click.echo(f"{runs} runs, {len(written)} schedules")
        sys.exit(len(written) != 1)


MODELS = {
    False: [ROOT / "models/paper/gcn.py", "--data", "karate", "--budget", "small"],
    True: [ROOT / "models/paper/sae.py", "--small", "--machine", "ideal", "--budget", "small"],
}
"""What is searched: a model that takes half a minute, and one that takes seconds."""


def _search(folder: Path, name: str, small: bool, jobs: int = 2, hash_seed: int | None = None) -> subprocess.Popen[bytes]:
    files = ["--store", folder / f"{name}.sqlite", "-o", folder / f"{name}.yaml", "--quiet", "--jobs", jobs]
    environment = os.environ if hash_seed is None else {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.Popen(
        [str(word) for word in (sys.executable, "-m", "fuseflow", "schedule", *MODELS[small], *files)], env=environment
    )


def _rows(store: Path) -> dict[str, float]:
    """Return when each simulation in a store finished."""
    if not store.exists():
        return {}
    with closing(sqlite3.connect(store, timeout=30)) as database:
        if not database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'rows'").fetchone()[0]:
            return {}
        return dict(database.execute("SELECT key, finished FROM rows").fetchall())


if __name__ == "__main__":
    main()
