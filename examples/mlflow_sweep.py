"""MLflow logs a sweep: one run for each point, with its schedule, its numbers and the page of the sweep, in a local file.

    pip install mlflow
    python examples/mlflow_sweep.py             # 12 points, 15 seconds of a core
    mlflow ui --backend-store-uri sqlite:///mlflow.db

Nothing is sent anywhere: `mlflow.db` and the folder `mlartifacts` beside it hold everything.
"""

from __future__ import annotations

from pathlib import Path

import click
import mlflow

import fuseflow as ff

SPACE = {
    "model": str(Path(__file__).parents[1] / "models" / "gcn.py"),
    "data": "karate",
    "machine": ["hbm2", "ddr4-3200"],
    "vary": {"fuse": ["none", "layerwise", "full"], "par": [{}, {"i": 4}]},
    "mode": "simulate",
}
NUMBERS = ("cycles", "bytes_read", "bytes_written", "flops", "energy_pj")


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="Where the runs are kept.")
@click.option("--jobs", default=2, show_default=True)
def main(folder: Path, jobs: int) -> None:
    sweep = ff.sweep(SPACE, jobs=jobs, store=folder / "gcn.sqlite")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    name = "gcn on karate"
    if mlflow.get_experiment_by_name(name) is None:
        mlflow.create_experiment(name, artifact_location=(folder / "mlartifacts").absolute().as_uri())
    mlflow.set_experiment(name)
    for row, schedule in zip(sweep, sweep.schedules, strict=True):
        with mlflow.start_run(run_name=" ".join(f"{axis}={row[axis]}" for axis in sweep.space.axes)):
            mlflow.log_params({axis: row[axis] for axis in sweep.space.axes})
            mlflow.log_text(schedule.to_yaml(), "schedule.yaml")
            mlflow.set_tag("status", row["status"])
            mlflow.log_metrics({number: float(row[number]) for number in NUMBERS if row.get(number) is not None})
    with mlflow.start_run(run_name="all points"):
        mlflow.log_text(ff.report(sweep).html, "sweep.html")
        mlflow.log_table(sweep.to_pandas(), "points.json")
    runs = mlflow.search_runs(order_by=["metrics.cycles ASC"], filter_string="metrics.cycles > 0")
    print(runs[["tags.mlflow.runName", "metrics.cycles"]].to_string(index=False))


if __name__ == "__main__":
    main()
