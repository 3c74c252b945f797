"""How many candidates a second a search under a budget compares by arithmetic: lanes of a region in an order, and depths of its FIFOs.

    python tools/bench/candidate_rate.py [--data cora --data-dir DIR] [--lanes 400] [--repeats 5] [--json FILE|-]

The regions are the two layers of a GCN, and the regions of a decoder of GPT-3 between the splits and merges of its heads. The candidates
are those that the search draws from, of which no two are equal: all lanes of up to two indices that fit into a budget (`medium`, of the
decoder `large`), or `--lanes` of them, drawn by a seed. Each is there with the FIFOs of the machine and with three depths.

Every repetition counts the region anew in one lane. *Count* is that count, and *shapes* the shape of the graph in lanes of each set of
indices, in milliseconds. *Lanes* are candidates for each second with the FIFOs of the machine alone, so that each has lanes of its own,
*deeper* the same lanes with the three depths, and *all* both together. *Cold* is all, with count and shapes. All are asked for at once, and
the collector of cyclic garbage looks rarely, as in the search. Figures are medians, in candidates for each second of processor time. Exits
with 1 if *all* is below the bars: 2,000 of each layer, 300 of each region of the decoder.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from host import JSON, finish, seconds

from fuseflow.autoscheduler.budget.costs import LoweredCosts
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.lane_models import LaneModel
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.garbage_collection import collection_rare
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

ROOT = Path(__file__).resolve().parents[2]
DEPTHS = (256, 1024, 4096)
MACHINE = "rda"


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the paper, the budget of its candidates, its regions as ranges of operators, and the bar."""

    name: str
    options: dict[str, int]
    budget: str
    parts: tuple[tuple[int, int], ...]
    bar: int


GCN = Model("gcn", {}, "medium", ((0, 4), (4, 8)), 2000)
DECODER = Model("gpt", {"decoders": 1}, "large", ((0, 2), (2, 5), (5, 9)), 300)


def regions(model: Model, data: str, data_dir: Path | None, estimator: Estimator) -> list[OrderedRange]:
    """Return the ranges of a model in one lane, each in the order that the compiler ranks best."""
    path = ROOT / "models" / "paper" / f"{model.name}.py"
    source = load(ModelSpec(path, data=data, data_dir=data_dir, options=model.options))
    variant = VariantFactory(source, load_machine(MACHINE), estimator, Schedule.fuse("none"), orders=1)(Schedule.fuse("none"))
    assert variant is not None, "each of its operators can run alone"
    edges: dict[tuple[int, int], OrderedRange] = {}
    for state in variant.graph.states():
        if state.cut < variant.graph.last:
            for edge in variant.graph.edges(state):
                edges.setdefault(edge.part, edge)
        if edges.keys() >= {*model.parts}:
            break
    return [edges[part] for part in model.parts]


def lanes_of(region: OrderedRange, budget: str, most: int) -> list[RegionDecision]:
    """Return lanes of a region that fit into a budget and are known by arithmetic, drawn evenly: each of other numbers or indices."""
    machine = load_machine(MACHINE)
    costs = LoweredCosts(machine, Estimator(assume_unknown=True)).lane_costs(region)
    deals = LaneModel.of(region, costs).with_pairs(costs, every=True).deals(Budget.of(budget), machine.first_depth)
    near = costs.near([(dict(deal.lanes), None) for deal in deals])
    known = [RegionDecision(region.order, deal.lanes) for deal, cycles in zip(deals, near, strict=True) if cycles is not None]
    return random.Random(0).sample(known, min(most, len(known)))


def measure(region: OrderedRange, budget: str, most: int, repeats: int) -> dict[str, Any]:
    """Return the figures of a region."""
    lanes = lanes_of(region, budget, most)
    deeper = [RegionDecision(region.order, one.lanes, depth) for one in lanes for depth in DEPTHS]
    sets = {tuple(index for index, _ in one.lanes) for one in lanes}
    with collection_rare():
        rows = [repetition(region, lanes, deeper) for _ in range(repeats)]
    count, shapes, first, second = (statistics.median(column) for column in zip(*rows, strict=True))
    known = len(lanes) + len(deeper)
    return {
        "nodes": len(region.pieces[-1].serial.nodes),
        "candidates": known,
        "indices": len(sets),
        "count_ms": round(1000 * count, 1),
        "shapes_ms": round(1000 * shapes, 1),
        "lanes": round(len(lanes) / first),
        "deeper": round(len(deeper) / second),
        "all": round(known / (first + second)),
        "cold": round(known / (count + shapes + first + second)),
    }


def repetition(region: OrderedRange, lanes: Sequence[RegionDecision], deeper: Sequence[RegionDecision]) -> list[float]:
    """Return the seconds of the count, of the shapes, of the lanes and of the same lanes with deeper FIFOs."""
    costs = LoweredCosts(load_machine(MACHINE), Estimator(assume_unknown=True))
    sets = {tuple(index for index, _ in one.lanes) for one in lanes}
    own = costs.lane_costs(region)
    count = seconds(lambda: own.near([({}, None)]))
    shapes = seconds(lambda: [own.shape(indices) for indices in sets])
    return [count, shapes, *(seconds(lambda some=some: compare(costs, region, some)) for some in (lanes, deeper))]


def compare(costs: LoweredCosts, region: OrderedRange, candidates: Sequence[RegionDecision]) -> None:
    """Let arithmetic compare candidates. Raises `SystemExit` if it does not know one."""
    for candidate, cycles in zip(candidates, costs.near(region, candidates), strict=True):
        if cycles is None:
            raise SystemExit(f"{region.name}: {candidate} is not known by arithmetic")


@click.command(help=__doc__.partition("\n")[0])
@click.option("--data", default="synthetic:cora_ml", show_default=True, help="The graph of the GCN.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Where the files of the graphs are."
)
@click.option(
    "--lanes", "most", default=400, show_default=True, help="Of each region, the most candidates with FIFOs of the machine."
)
@click.option("--repeats", default=5, show_default=True)
@JSON
def main(data: str, data_dir: Path | None, most: int, repeats: int, output: str | None) -> None:
    figures, slow = dict[str, dict[str, Any]](), list[str]()
    for model, own, directory in ((GCN, data, None if ":" in data else data_dir), (DECODER, "bigbird:block=64", None)):
        for region in regions(model, own, directory, Estimator(assume_unknown=True)):
            figures[region.name] = row = measure(region, model.budget, most, repeats)
            slow += [f"{region.name}: {row['all']:,} < {model.bar:,} a second"] * (row["all"] < model.bar)
    lines = (
        f"{name:14} " + "  ".join(f"{key.replace('_', ' ')} {number:,}" for key, number in row.items())
        for name, row in figures.items()
    )
    finish("candidate_rate", output, lines, {"data": data, "repeats": repeats, "regions": figures}, slow)


if __name__ == "__main__":
    main()
