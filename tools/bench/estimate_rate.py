"""How many estimates a second one core makes of a GCN: over cuts and machines, and over loop orders.

    python tools/bench/estimate_rate.py [--data synthetic:cora_ml] [--data-dir DIR] [--repeats 5] [--json FILE|-]

*Cuts and machines*: partitions of the model, drawn by a seed, each lowered and estimated once before the clock starts. Then each is
estimated on machines of which no two are equal: latencies, FIFO depths, channels and prefetching of the memory are drawn, too.
*Orders*: full fusion in every loop order that the compiler compares, *first* with the tensors' patterns counted but no order estimated yet,
and *again*, on machines of which no two are equal. `order first ms` is the median of the orders: a few of them repeat so much that they
take seconds. Lowering is not measured. Figures are medians, in estimates of the whole program for each second of processor time. Exits
with 1 below the bars: 1,000 over cuts and machines, 200 over orders, both with everything counted.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from host import JSON, finish, seconds

from fuseflow.cut.units import UnitSequence, operator_units, partition_at
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator, EstimatorRegion
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.lower.partition import partition_program
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

ROOT = Path(__file__).resolve().parents[2]
BARS = {"cuts_and_machines": 1000, "orders_again": 200}


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """A program that was lowered by a schedule, as the estimator reads it."""

    program: Program
    regions: tuple[EstimatorRegion, ...]


def lowered(source: Source, schedule: Schedule) -> LoweredProgram:
    program, regions = lower(source.program, schedule, source.tensors)
    return LoweredProgram(program, tuple(estimator_regions(regions)))


def partitions(source: Source, number: int) -> list[LoweredProgram]:
    """Return so many partitions of a program that can be lowered, drawn evenly."""
    none, rng = Schedule.fuse("none"), random.Random(0)
    units: UnitSequence = operator_units(partition_program(source.program, none))
    drawn: dict[tuple[int, ...], LoweredProgram] = {}
    for _ in range(20 * number):
        cuts = tuple(cut for cut in range(1, len(units)) if rng.random() < 0.5)
        if cuts in drawn or len(drawn) == number:
            continue
        try:
            drawn[cuts] = lowered(source, units.scheduled(Schedule(), partition_at(cuts, len(units))))
        except FuseFlowError:
            continue  # a range of it cannot be a region
    return list(drawn.values())


def orders(source: Source) -> list[LoweredProgram]:
    """Return full fusion in each order that the compiler compares."""
    _, (region,) = lower(source.program, Schedule.fuse("full"), source.tensors)
    programs = []
    for candidate in region.fused.compared:
        if candidate.cost is not None:
            try:
                programs.append(lowered(source, Schedule.fuse("full").order(region.name, candidate.order)))
            except FuseFlowError:
                continue  # the names of its loops are those of another way to fuse the region
    return programs


def machines(base: Machine, seed: int) -> Iterator[Machine]:
    """Yield machines of which no two are equal."""
    rng, drawn = random.Random(seed), set[Machine]()
    while True:
        latency = base.latency.model_copy(
            update={unit: rng.randint(1, 40) for unit in ("add", "mul", "div", "transcendental", "memory")}
        )
        memory = base.memory.model_copy(update={"channels": 2 ** rng.randint(0, 5), "prefetch": rng.randint(0, 16)})
        changes = {"latency": latency, "memory": memory, "fifo_depth": "auto", "fifo_depth_start": 2 ** rng.randint(2, 10)}
        machine = base.model_copy(update=changes)
        if machine not in drawn:
            drawn.add(machine)
            yield machine


def rate(number: int, run: Callable[[], object]) -> float:
    """Return how many of so many estimates are made in a second of processor time."""
    return number / seconds(run)


def measure(source: Source, repeats: int) -> dict[str, Any]:
    base, cuts, by_order = load_machine("rda"), partitions(source, 40), orders(source)
    estimator = Estimator()

    def estimate(with_: Estimator, programs: list[LoweredProgram], on: list[Machine]) -> None:
        for machine in on:
            for each in programs:
                _ = with_.estimate(each.regions, each.program, source.tensors, machine).cycles

    estimate(estimator, cuts, [base])
    drawn = machines(base, 0)
    fresh = [[next(drawn) for _ in range(10)] for _ in range(2 * repeats)]
    over_cuts = [rate(10 * len(cuts), lambda on=on: estimate(estimator, cuts, on)) for on in fresh[:repeats]]
    firsts, order_ms = [], []
    for _ in range(repeats):
        new = Estimator()
        new.knowledge(by_order[0].program, source.tensors)
        times = [seconds(lambda new=new, each=each: estimate(new, [each], [base])) for each in by_order]
        firsts.append(len(by_order) / sum(times))
        order_ms.append(1000 * statistics.median(times))
    estimate(estimator, by_order, [base])
    agains = [rate(10 * len(by_order), lambda on=on: estimate(estimator, by_order, on)) for on in fresh[repeats:]]
    return {
        "cuts": len(cuts),
        "regions": sum(len(each.regions) for each in cuts),
        "orders": len(by_order),
        "cuts_and_machines": round(statistics.median(over_cuts)),
        "orders_first": round(statistics.median(firsts)),
        "order_first_ms": round(statistics.median(order_ms)),
        "orders_again": round(statistics.median(agains)),
    }


@click.command(help=__doc__.partition("\n")[0])
@click.option("--data", default="synthetic:cora_ml", show_default=True, help="The graph.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Where the files of the graphs are."
)
@click.option("--repeats", default=5, show_default=True)
@JSON
def main(data: str, data_dir: Path | None, repeats: int, output: str | None) -> None:
    directory = None if ":" in data else data_dir
    source = load(ModelSpec(ROOT / "models" / "paper" / "gcn.py", data=data, data_dir=directory))
    figures = measure(source, repeats)
    slow = [f"{name}: {figures[name]:,} < {bar:,} a second" for name, bar in BARS.items() if figures[name] < bar]
    lines = (f"{name.replace('_', ' '):20} {number:>8,}" for name, number in figures.items())
    finish("estimate_rate", output, lines, {"data": data, "repeats": repeats, **figures}, slow)


if __name__ == "__main__":
    main()
