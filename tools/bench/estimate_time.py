"""How long an estimate takes: the statistics of a large matrix, and the paper's models at every granularity, in processor time.

    python tools/bench/estimate_time.py [--data synthetic:collab] [--repeats 5] [--json FILE|-]

`statistics` is what is measured of the tensors once. `first` is the first estimate of a schedule: nothing is counted yet but statistics.
`again` is the median of those that follow, with the same estimator; `statistics only` takes no counts. Exits with 1 above the bars:
1 s for statistics, 50 ms for an estimate with the counts at hand.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from host import JSON, finish, seconds

from fuseflow.costs import measure_statistics
from fuseflow.einsum.nodes import Program
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.lower.program import lower
from fuseflow.lower.regions import CompiledRegion
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

ROOT = Path(__file__).resolve().parents[2]
BARS = {"statistics_ms": 1000, "again_ms": 50, "statistics_only_ms": 50}


def milliseconds(run: Callable[[], object]) -> float:
    return 1000 * seconds(run)


def estimate(estimator: Estimator, source: Source, program: Program, regions: tuple[CompiledRegion, ...]) -> None:
    estimator.estimate(estimator_regions(regions), program, source.tensors, load_machine("comal"))


def cases(model: str, data: str, repeats: int) -> list[dict[str, Any]]:
    source = load(ModelSpec(ROOT / "models" / "paper" / f"{model}.py", data=data))
    measuring = milliseconds(lambda: [(tensor_pattern(t), measure_statistics(t)) for t in source.tensors.values()])
    stored = max(t.stored for t in source.tensors.values() if not t.format.all_dense)
    found = []
    for granularity in ("unfused", "partial", "full"):
        schedule = Schedule.load(ROOT / "schedules" / f"{model}_{granularity}.yaml")
        program, regions = lower(source.program, schedule, source.tensors)
        counting, expecting = (
            partial(estimate, Estimator(statistics_only=only), source, program, regions) for only in (False, True)
        )
        first, _ = milliseconds(counting), expecting()
        row: dict[str, Any] = {"name": f"{model} {data} {granularity}", "stored": stored, "statistics_ms": measuring}
        row["first_ms"] = max(0.0, first - measuring)
        row["again_ms"] = statistics.median(milliseconds(counting) for _ in range(repeats))
        row["statistics_only_ms"] = statistics.median(milliseconds(expecting) for _ in range(repeats))
        found.append({key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()})
    return found


@click.command(help=__doc__.partition("\n")[0])
@click.option("--data", default="synthetic:collab", show_default=True, help="Of the graph networks.")
@click.option("--repeats", default=5, show_default=True)
@JSON
def main(data: str, repeats: int, output: str | None) -> None:
    graphs = [case for model in ("gcn", "graphsage") for case in cases(model, data, repeats)]
    measured = [*graphs, *cases("gpt", "bigbird:block=64", repeats)]
    slow = [f"{row['name']}: {key} {row[key]:g} > {bar}" for row in measured for key, bar in BARS.items() if row[key] > bar]
    finish("estimate", output, map(line, measured), {"repeats": repeats, "cases": measured}, slow)


def line(row: dict[str, Any]) -> str:
    times = "  ".join(f"{key[:-3].replace('_', ' ')} {row[key]:8.1f} ms" for key in row if key.endswith("_ms"))
    return f"{row['name']:36} {row['stored']:>9,} stored  {times}"


if __name__ == "__main__":
    main()
