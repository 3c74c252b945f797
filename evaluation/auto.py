"""How near `--fuse auto` comes to the best of all partitions, each of which is simulated.

    python evaluation/auto.py --store auto.jsonl --data-dir DIR [--only gcn] [--machine ideal]
    python evaluation/auto.py --store auto.jsonl --table

A row of the store is a partition, or what auto chose. Regions that partitions share are simulated once, in one process for each model; a
run that is killed goes on with the partitions that it has no rows of.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import click
from store import DATA_DIR, ROOT, STORE, append, load

from fuseflow.autoscheduler.autoscheduler import choose_schedule
from fuseflow.autoscheduler.simulation_cache import SimulationCache
from fuseflow.compiler import compile_source
from fuseflow.cut.units import (
    UnitPartition,
    UnitRange,
    UnitSequence,
    cheapest_partitions,
    operator_units,
    partition_at,
    product_units,
)
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source
from fuseflow.frontend.sources import load as load_model
from fuseflow.lower.partition import partition_program
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine


@dataclass(frozen=True, slots=True)
class Workload:
    """`level`: what may be cut: every operator, or products with the pointwise operators behind them. `budget`: under which its family is
    compared."""

    name: str
    data: str
    options: dict[str, Any] = field(default_factory=dict)
    level: str = "operators"
    files: bool = False
    budget: str = "medium"


WORKLOADS = (
    Workload("sae", "images:imagenet"),
    Workload("gcn", "cora", files=True),
    Workload("graphsage", "cora", files=True),
    Workload("gpt", "bigbird:block=4,length=16,features=12", {"decoders": 1, "heads": 3}, "products"),
    Workload("gpt", "bigbird:block=8,length=64,features=48", {"decoders": 1, "heads": 3}, "products"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A partition: where it cuts, and the cycles of each region. `state`: `done`, or `refused`, with an `error`."""

    key: str
    model: str
    data: str
    machine: str
    cuts: list[int]
    state: str
    cycles: int = 0
    regions: dict[str, int] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0


def source_of(work: Workload, data_dir: Path | None) -> Source:
    path = ROOT / "models" / "paper" / f"{work.name}.py"
    return load_model(ModelSpec(path, data=work.data, data_dir=data_dir if work.files else None, options=work.options))


def units_of(work: Workload, source: Source) -> UnitSequence:
    none = Schedule.fuse("none")
    partitioned = partition_program(source.program, none)
    found = operator_units(partitioned)
    return product_units(partitioned, found) if work.level == "products" else found


def key_of(work: Workload, machine: str, cuts: Iterable[int]) -> str:
    return f"{machine}/{work.name}/{work.data}/{','.join(map(str, cuts))}"


def singles(units: UnitSequence, part: UnitRange) -> tuple[int, ...]:
    """The cuts of a partition in which nothing but this range is fused."""
    return tuple(cut for cut in range(1, len(units)) if not part[0] < cut < part[1])


def ranges(count: int) -> list[UnitRange]:
    """All of them, short ones first."""
    return sorted(((i, j) for i in range(count) for j in range(i + 1, count + 1)), key=lambda part: (part[1] - part[0], part))


@dataclass(slots=True)
class Study:
    """Of one model on one machine: what was simulated so far."""

    work: Workload
    machine: Machine
    source: Source
    units: UnitSequence
    store: Path
    ran: SimulationCache = field(default_factory=SimulationCache)
    estimator: Estimator = field(default_factory=Estimator)
    rows: dict[str, Row] = field(default_factory=dict)

    @property
    def best(self) -> float:
        return min((row.cycles for row in self.rows.values() if row.state == "done"), default=inf)

    def all_ranges(self) -> None:
        """Every range as one region, all else as single operators; but for a range that takes more than a whole partition does, by the
        firings of its busiest node: it is in none that is better."""
        for part in ranges(len(self.units)):
            self.add(singles(self.units, part), part)

    def sample(self, number: int) -> None:
        """Whole partitions: the best by the sum of their regions, and as many of the others, drawn evenly."""
        cuts = best_sums(self.cycles(), self.units, number)
        for _, found in cuts:
            self.add(tuple(end for _, end in found[:-1]))
        rng = random.Random(0)
        for _ in range(number):
            drawn = tuple(cut for cut in range(1, len(self.units)) if rng.random() < 0.5)
            if total(self.cycles(), self.units, partition_at(drawn, len(self.units))) is not None:
                self.add(drawn)

    def cycles(self) -> dict[str, int]:
        """Simulated cycles of every region that was."""
        return {name: cycles for row in self.rows.values() if row.state == "done" for name, cycles in row.regions.items()}

    def add(self, cuts: tuple[int, ...], part: UnitRange | None = None) -> None:
        """A row of this partition, if there is none."""
        key, start = key_of(self.work, self.machine.name, cuts), time.perf_counter()
        if key in self.rows:
            return
        row = self.found(partition_at(cuts, len(self.units)), part)
        seconds = round(time.perf_counter() - start, 2)
        self.rows[key] = Row(key, self.work.name, self.work.data, self.machine.name, list(cuts), seconds=seconds, **row)
        append(self.store, self.rows[key])

    def found(self, cut: UnitPartition, part: UnitRange | None) -> dict[str, Any]:
        try:
            compiled = compile_source(self.source, self.units.scheduled(Schedule(), cut), self.machine)
            if part is not None and (least := self.least(compiled, self.units.name(part))) > self.best:
                return {"state": "beyond", "cycles": round(least)}
            result = compiled.run(check=False, engine="fast", execute=self.ran)
        except FuseFlowError as error:
            return {"state": "refused", "error": str(error)}
        each = {name: r.cycles for r in result.regions for name in (r.name, *(again.name for again in r.repeats))}
        return {"state": "done", "cycles": result.cycles, "regions": each}

    def least(self, compiled: Compiled, name: str) -> float:
        """The firings of the busiest node of a region, where they were counted."""
        found = compiled.estimate(self.estimator)
        return next((r.bound.compute for r in found.regions if r.name == name and r.work.exact), 0.0)


def total(cycles: dict[str, int], units: UnitSequence, cut: UnitPartition) -> int | None:
    """The cycles of a partition, from those of its regions; None if one was not simulated."""
    names = [units.name(part) for part in cut]
    return sum(cycles[name] for name in names) if all(name in cycles for name in names) else None


def best_sums(cycles: dict[str, int], units: UnitSequence, number: int) -> list[tuple[float, UnitPartition]]:
    """The partitions with the fewest cycles, from those of their regions."""
    return list(cheapest_partitions(len(units), lambda part: cycles.get(units.name(part), inf), number))


def study(work: Workload, machine: str, data_dir: Path | None, store: Path) -> Study:
    source, known = source_of(work, data_dir), load(store, Row)
    made = Study(work, load_machine(machine), source, units_of(work, source), store)
    start = key_of(work, machine, ())
    made.rows = {key: row for key, row in known.items() if key.startswith(start)}
    return made


def chosen(made: Study) -> None:
    """What auto takes of the same model, as a row."""
    key = f"{key_of(made.work, made.machine.name, ())}auto"
    if key in made.rows:
        return
    start = time.perf_counter()
    choice = choose_schedule(made.source, Schedule.fuse("auto"), made.machine, engine="fast")
    found = next(t for t in choice.partitions if t.chosen)
    tried = {t.name: t.cycles for t in choice.partitions if t.cycles is not None}
    seconds = round(time.perf_counter() - start, 2)
    state = f"chose {found.name} of {len(choice.partitions)}"
    row = Row(key, made.work.name, made.work.data, made.machine.name, [], state, found.cycles or 0, tried, seconds=seconds)
    made.rows[key] = row
    append(made.store, row)


def table(works: Iterable[Study]) -> str:
    """Markdown: a line for each model."""
    lines = [
        "| model | data | machine | cut between | partitions | regions simulated | best of all | auto | to best | auto's partition |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for made in works:
        auto = next((row for key, row in made.rows.items() if key.endswith("auto")), None)
        whole = [row for row in made.rows.values() if row.state == "done"]
        if not whole:
            continue
        cycles = made.cycles()
        sums = best_sums(cycles, made.units, 1)
        best = min(*(row.cycles for row in whole), round(sums[0][0]) if sums else inf)
        cells = [
            made.work.name,
            f"`{made.work.data}`",
            made.machine.name,
            f"{len(made.units)} {made.units.granularity}",
            f"{2 ** (len(made.units) - 1):,}",
            f"{len(cycles)} of {len(ranges(len(made.units)))}",
            f"{best:,}",
            f"{auto.cycles:,}" if auto else "",
            f"{auto.cycles / best:.3f}" if auto else "",
            _chosen(auto) if auto else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _chosen(auto: Row) -> str:
    """What auto chose, as a cell."""
    return f"`{auto.state.removeprefix('chose ').rpartition(' of ')[0].replace(' | ', ', ')}`"


def deviation(made: Study) -> tuple[int, float]:
    """Of the whole partitions that were simulated: how many, and how far at most the sum of their regions, each taken from another
    partition, is from their cycles."""
    cycles, worst, number = made.cycles(), 0.0, 0
    for row in made.rows.values():
        if row.state == "done":
            found = total(cycles, made.units, partition_at(row.cuts, len(made.units)))
            if found is not None:
                number += 1
                worst = max(worst, abs(found / row.cycles - 1))
    return number, worst


@click.command()
@STORE
@DATA_DIR
@click.option("--only", multiple=True, help="Models; all without it.")
@click.option("--machine", default="ideal", show_default=True)
@click.option("--table", "show", is_flag=True, help="Print the table, run nothing.")
def main(store: Path, data_dir: Path | None, only: tuple[str, ...], machine: str, show: bool) -> None:
    """Simulate every region that a partition may have, and compare the best of all partitions with what auto takes."""
    made = []
    for work in WORKLOADS:
        if only and work.name not in only:
            continue
        here = study(work, machine, data_dir, store)
        if not show:
            here.all_ranges()
            here.sample(8)
            chosen(here)
        made.append(here)
    click.echo(table(made), nl=False)
    for here in made:
        number, worst = deviation(here)
        click.echo(
            f"{here.work.name}, {here.work.data}: {number} whole partitions, at most {worst:.4%} from the sums of their regions"
        )


if __name__ == "__main__":
    main()
