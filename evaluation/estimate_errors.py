"""The estimate against the runs of `model_runs.py`: FLOPs, bytes and cycles from tensors and from their statistics alone, in what time.

    python evaluation/estimate_errors.py --runs evaluation/rows/models.jsonl [--data-dir DIR] [--only 'gcn/*'] --store estimate.jsonl
    python evaluation/estimate_errors.py --store estimate.jsonl --summary

A row holds one point of that study: both estimates, the run's numbers, and milliseconds of processor time: `first`, with nothing counted
but the statistics of the tensors, and `again`, of the same point. Nothing is executed. `--extra` also estimates points that no run has.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import click
from claims import markdown
from model_runs_table import NAMES
from store import DATA_DIR, ONLY, ROOT, STORE, like

from fuseflow.costs import measure_statistics
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

GRANULARITIES = ("unfused", "partial", "full")
COLUMNS = (("FLOPs", "tensors"), ("FLOPs", "statistics"), ("bytes", "tensors"), ("bytes", "statistics"), ("cycles", "tensors"))
BARS = {"flops": (0.0, 2.8), "bytes": (1.0, 11.5)}
"""Percent that the mean error may be, from tensors and from statistics: the latter as published for Collab-size data."""
CYCLE_BARS = {"median": 5.0, "worst": 12.0}
"""Percent that the cycles from tensors may be off on `rda`, over all points of CYCLE_MODELS."""
CYCLE_MODELS = ("gcn", "graphsage", "sae")


def runs(path: Path, only: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows that are done, by model and data."""
    by_key = {row["key"]: row for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
    kept = [row for key, row in by_key.items() if row["state"] == "done" and like(key, only)]
    return sorted(kept, key=position)


def position(row: dict[str, Any]) -> tuple[Any, ...]:
    point = row["point"]
    return point["machine"], point["model"], point["data"], tuple(point["options"]), GRANULARITIES.index(point["granularity"])


def _source(row: dict[str, Any]) -> tuple[Any, ...]:
    point = row["point"]
    return point["model"], point["data"], tuple(point["options"])


def estimates(rows: list[dict[str, Any]], data_dir: Path | None) -> Iterator[dict[str, Any]]:
    """Each model is read once, and estimated by one pair of estimators at all of its points."""
    for (model, data, options), group in groupby(sorted(rows, key=_source), key=_source):
        given = dict(option.split("=") for option in options)
        directory = data_dir if ":" not in data else None
        source = load(ModelSpec(ROOT / "models" / "paper" / f"{model}.py", data=data, data_dir=directory, options=given))
        estimators = {"tensors": Estimator(), "statistics": Estimator(statistics_only=True)}
        measuring = _ms(lambda source=source: [(tensor_pattern(t), measure_statistics(t)) for t in source.tensors.values()])
        for row in group:
            yield _row(row, source, estimators, measuring)


def _row(row: dict[str, Any], source: Source, estimators: dict[str, Estimator], measuring: float) -> dict[str, Any]:
    point = row["point"]
    schedule = Schedule.load(ROOT / "schedules" / f"{point['model']}_{point['granularity']}.yaml")
    machine = load_machine(point["machine"])
    partitioned, lowered = lower_for(source.program, schedule, machine, source.tensors)
    program, regions = partitioned.program, tuple(lowered)
    errors: dict[str, Any] = {"key": row["key"], "point": point, "measuring_ms": measuring}
    for kind, estimator in estimators.items():
        results: list[ProgramEstimate] = []

        def once(machine: Machine = machine, estimator: Estimator = estimator, results: list[Any] = results) -> None:
            results.append(estimator.estimate(estimator_regions(regions), program, source.tensors, machine))

        first, again = _ms(once), min(_ms(once) for _ in range(3))
        made = results[0]
        errors[kind] = {**_numbers(made), "exact": made.exact, "first_ms": first, "again_ms": again}
    bytes_ = row["bytes_read"] + row["bytes_written"]
    errors["run"] = {"flops": row["flops"], "bytes": bytes_, "cycles": row["cycles"]} if row["cycles"] else None
    return errors


def _numbers(estimate: ProgramEstimate) -> dict[str, int]:
    moved = estimate.stats["bytes"]
    return {"flops": round(estimate.flops), "bytes": round(moved["read"] + moved["write"]), "cycles": round(estimate.cycles)}


def _ms(run: Any) -> float:
    start = time.process_time()
    run()
    return round(1000 * (time.process_time() - start), 1)


def error(row: dict[str, Any], kind: str, what: str) -> float:
    """In percent of the run."""
    return 100 * (row[kind][what] - row["run"][what]) / row["run"][what]


def groups(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    """The points with a run of each machine, model, data and options, one for each granularity."""
    ran = sorted((row for row in rows if row["run"]), key=position)
    return ((place, list(group)) for place, group in groupby(ran, key=lambda row: position(row)[:4]))


def mean_error(points: list[dict[str, Any]], kind: str, what: str) -> float:
    return sum(abs(error(row, kind, what)) for row in points) / len(points)


def summary(rows: Iterable[dict[str, Any]]) -> str:
    """Markdown: a line for each point, then the means over the granularities of each model and data, and how they rank."""
    heads = [f"{what}, {kind}" for what, kind in COLUMNS]
    lines = []
    kept = sorted(rows, key=position)
    for row in kept:
        point = row["point"]
        errors = [f"{error(row, kind, what.lower()):+.2f} %" if row["run"] else "" for what, kind in COLUMNS]
        data = " ".join([f"`{point['data']}`", *point["options"]])
        times = [f"{row['tensors'][key]:,.0f}" for key in ("first_ms", "again_ms")]
        lines.append([NAMES[point["model"]], data, point["granularity"], point["machine"], *errors, *times])
    table = markdown(["model", "data", "fused", "machine", *heads, "ms, first", "ms, again"], lines, 4)
    return "\n".join([table, _means(kept), *_ranks(kept), "", *_cycles(kept)]) + "\n"


def _means(rows: list[dict[str, Any]]) -> str:
    lines = []
    for (machine, model, data, options), points in groups(rows):
        cells = [f"{mean_error(points, kind, what):.2f} %" for what in BARS for kind in ("tensors", "statistics")]
        lines.append([NAMES[model], " ".join([f"`{data}`", *options]), machine, *cells, str(len(points))])
    heads = "model | data | machine | FLOPs, tensors | FLOPs, statistics | bytes, tensors | bytes, statistics | points"
    return markdown(heads, lines, 3)


def _ranks(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Whether the granularities are in the order of their cycles in the runs."""
    right, all_ = {"tensors": 0, "statistics": 0}, 0
    for place, points in groups(rows):
        if len(points) < 2:
            continue
        all_ += 1
        truth = [row["key"] for row in sorted(points, key=lambda row: row["run"]["cycles"])]
        for kind in right:
            ours = [row["key"] for row in sorted(points, key=lambda row, kind=kind: row[kind]["cycles"])]
            right[kind] += ours == truth
            if ours != truth:
                yield f"- {' '.join(map(str, place))}: from {kind}, {', '.join(ours)}; run, {', '.join(truth)}"
    yield f"Ranked as the runs are: {right['tensors']} of {all_} from tensors, {right['statistics']} of {all_} from statistics."


def cycle_errors(rows: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The median and the worst error of the cycles on `rda` from tensors, in percent; nothing without such runs."""
    points = [row for row in rows if row["run"] and row["point"]["machine"] == "rda" and row["point"]["model"] in CYCLE_MODELS]
    errors = [abs(error(row, "tensors", "cycles")) for row in points]
    return {"points": len(errors), "median": median(errors), "worst": max(errors)} if errors else {}


def _cycles(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    if summary := cycle_errors(rows):
        models = ", ".join(NAMES[model] for model in CYCLE_MODELS)
        yield (
            f"Cycles on `rda` from tensors, {models}: median error {summary['median']:.2f} %, worst {summary['worst']:.2f} %, "
            f"of {summary['points']} points."
        )


def misses(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Means over the granularities, and errors of cycles, that are above a bar."""
    rows = list(rows)
    cycles = cycle_errors(rows)
    lines = [
        f"rda: the {what} error of cycles is {cycles[what]:.2f} %, more than {bar:g} %"
        for what, bar in CYCLE_BARS.items()
        if cycles and cycles[what] > bar
    ]
    for place, points in groups(rows):
        for what, bars in BARS.items():
            for kind, bar in zip(("tensors", "statistics"), bars, strict=True):
                if (mean := mean_error(points, kind, what)) > bar:
                    lines.append(f"{' '.join(map(str, place))}: {what} from {kind} are {mean:.2f} % off, more than {bar:g} %")
    return lines


def extra(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The granularities that no run has, of models and data that some run has."""
    there = {position(row) for row in rows}
    made = {}
    for row in rows:
        for granularity in GRANULARITIES:
            point = {**row["point"], "granularity": granularity}
            key = f"{point['model']}/{point['data']}/{granularity}/{point['machine']}" + "".join(
                f"+{o}" for o in point["options"]
            )
            new = {"key": key, "point": point, "cycles": 0, "flops": 0, "bytes_read": 0, "bytes_written": 0}
            if position(new) not in there:
                made[key] = new
    return list(made.values())


@click.command(help=__doc__.partition("\n")[0])
@click.option("--runs", "path", type=click.Path(path_type=Path, exists=True), help="Rows of model_runs.py.")
@STORE
@DATA_DIR
@ONLY
@click.option("--extra", "more", is_flag=True, help="Estimate granularities without a run, too.")
@click.option("--summary", "only_summary", is_flag=True, help="Estimate nothing; print the tables of what there is.")
def main(path: Path | None, store: Path, data_dir: Path | None, only: tuple[str, ...], more: bool, only_summary: bool) -> None:
    if not only_summary:
        if path is None:
            raise click.UsageError("nothing to compare with: `--runs evaluation/rows/models.jsonl`")
        asked = runs(path, only)
        if not asked:
            raise click.UsageError("no run is like that")
        with store.open("w", encoding="utf-8") as stream:
            for row in estimates([*asked, *(extra(asked) if more else ())], data_dir):
                stream.write(json.dumps(row) + "\n")
                stream.flush()
                click.echo(row["key"], err=True)
    rows = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()]
    click.echo(summary(rows), nl=False)
    for miss in misses(rows):
        click.echo(miss, err=True)
    raise SystemExit(1 if misses(rows) else 0)


if __name__ == "__main__":
    main()
