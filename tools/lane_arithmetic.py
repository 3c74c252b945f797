"""Lanes by arithmetic against lanes that are made: random lanes of random regions, whose firings must be equal.

    python tools/lane_arithmetic.py [--candidates 500] [--seed 0]

Every candidate gives some indices of a region lanes. Its firings and resources are compared with those of the graph that is made with these
lanes and counted. Where something is reduced over a dealt index, the costs do not follow from one lane, and only cycles are expected by
arithmetic: for those candidates, it prints how far these are from the cycles of the graph.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

import fuseflow as ff
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.lane_costs import LaneCosts
from fuseflow.estimate.program import Estimator
from fuseflow.run.estimator_regions import estimator_regions

ROOT = Path(__file__).resolve().parents[1]
LANES = (2, 3, 4, 5, 8, 16)
MODELS = (
    ("gcn", "random:nodes=40,features=12,classes=3", {}),
    ("graphsage", "random:nodes=30,features=9,classes=4", {}),
    ("sae", "images:side=6", {"small": True}),
    ("gpt", "bigbird:block=4,length=16,features=12", {"decoders": 1, "heads": 3}),
)


def regions() -> Iterator[LaneCosts]:
    """The regions of the paper's models in all granularities."""
    for model, data, options in MODELS:
        for granularity in ("unfused", "partial", "full"):
            schedule = ff.Schedule.load(ROOT / "schedules" / f"{model}_{granularity}.yaml")
            path = ROOT / "models" / "paper" / f"{model}.py"
            compiled = ff.compile(path, data=data, options=options, schedule=schedule, machine="rda")
            estimator = Estimator()
            knowledge = estimator.knowledge(compiled.program, compiled.source.tensors)
            for region, known in zip(compiled.regions, estimator_regions(compiled.regions), strict=True):
                estimator.add_views(known.views_before, knowledge)
                order = region.fused.order
                yield LaneCosts.of(estimator, region.serial, region.table.loops, order, compiled.machine, knowledge)
                estimator.region(known, compiled.machine, knowledge)


def candidates(costs: list[LaneCosts], seed: int) -> Iterator[tuple[LaneCosts, dict[str, int]]]:
    """Random lanes of one or two indices of a region, the outer ones more often."""
    rng = random.Random(seed)
    while True:
        each = rng.choice(costs)
        outer = each.order[: max(1, rng.randint(1, len(each.order)))]
        yield each, {index: rng.choice(LANES) for index in rng.sample(outer, min(len(outer), rng.choice((1, 1, 2))))}


@click.command(help=__doc__.partition("\n")[0])
@click.option("--candidates", "number", default=500, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(number: int, seed: int) -> None:
    compared = wrong = 0
    worst, folded = 0.0, list[float]()
    for costs, lanes in candidates(list(regions()), seed):
        if compared >= number:
            break
        try:
            cost = costs.cost(lanes)
        except FuseFlowError:
            continue
        if not cost.by_arithmetic:
            (near,) = costs.near([(lanes, None)])
            folded += [] if near is None else [near / cost.cycles]
            continue
        made = costs.made(lanes)
        compared += 1
        worst = max(worst, abs(cost.cycles - made.cycles) / made.cycles)
        if (cost.firings, cost.resources) != (made.firings, made.resources):
            wrong += 1
            click.echo(f"{costs.graph.name} {lanes}: {cost} by arithmetic, {made} made")
    click.echo(f"{compared} candidates, {wrong} wrong; cycles differ by {100 * worst:.1f} % at most")
    low, median, high = np.quantile(folded, (0.05, 0.5, 0.95))
    click.echo(f"{len(folded)} folded: {low:.2f}, {median:.2f} and {high:.2f} of their cycles (5 %, median, 95 %)")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
