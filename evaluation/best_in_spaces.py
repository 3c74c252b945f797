"""What a search within a budget chooses, against the best of all partitions and lanes of five models, simulated.

    python evaluation/best_in_spaces.py --store spaces.jsonl --data-dir DIR

Exit status 1 if a choice takes more than 1.05 times the least that its space may have.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click
from auto import WORKLOADS, source_of
from store import DATA_DIR, ROOT, STORE, append, load

sys.path.append(str(ROOT / "tests" / "support"))

from lane_spaces import BestProgram, LaneSpace

from fuseflow.autoscheduler.budget.costs import RegionRun
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.autoscheduler.budget.trials import SimulateHere
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """The cycles of a region in some lanes, or those of the program that the search chose, with its
    estimate and the seconds of processor time that it took."""

    key: str
    cycles: int
    fifo: int | None = None
    estimate: float = 0.0
    seconds: float = 0.0
    schedule: str = ""


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

    simulate = SimulateHere(source, hardware)
    space = LaneSpace(variant, hardware, budget, estimator, simulate, known, keep)
    best = space.best(seconds)
    promise = f"lanes took {space.broken_promise:.3f} of what they promised at least"
    click.echo(f"{name}: {'proved' if best.is_proved else f'no less than {best.least:,.0f}'}; {promise}", err=True)
    if best.schedule is not None:
        append(store, SpaceRow(f"{name}/best", round(best.cycles), schedule=best.schedule.to_yaml()))
    return best


@click.command(help=__doc__.partition("\n")[0])
@STORE
@DATA_DIR
@click.option("--only", multiple=True, help="Numbers of spaces, from 0 on; all without it.")
@click.option("--budget", default="small", show_default=True)
@click.option("--machine", default="ideal", show_default=True)
@click.option("--orders", default=1, show_default=True, help="The loop orders of each region.")
@click.option("--seconds", default=240.0, show_default=True, help="Processor time for the best of a space.")
def main(
    store: Path, data_dir: Path | None, only: tuple[str, ...], budget: str, machine: str, orders: int, seconds: float
) -> None:
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


if __name__ == "__main__":
    main()
