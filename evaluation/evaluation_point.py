"""One point of the evaluation, in a process of its own: compiled, estimated, and run exactly or by samples. Prints the run as JSON.

    python evaluation/evaluation_point.py gcn synthetic:collab full --error 0.02 --firings 1e9 [--data-dir DIR] [--seed 0]

A point is run exactly if the estimate expects at most `--firings` of it; regions that run alike count once. The rule knows neither the
clock nor the computer, so the same points are exact everywhere.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from store import ROOT

import fuseflow as ff
from fuseflow.estimate.program import Estimator
from fuseflow.run.sampled_result import SampledResult


def run_point(
    model: str,
    data: str,
    granularity: str,
    options: dict[str, Any],
    data_dir: Path | None,
    machine: str,
    sample: ff.Sample,
    firings: float,
) -> dict[str, Any]:
    """Return a run as plain values, of kind `exact` or `sampled`, with what it took of the processor, stage by stage.

    The outputs of an exact run are compared with the dense interpreter. Those of a sampled run come from the interpreter, which is
    compared with the simulator at all rows that were sampled; nothing else would be learnt from interpreting the program again. A run
    of which every region turned out to be too short for a sample is exact.
    """
    seconds, start = {}, time.process_time()

    def stage(name: str) -> None:
        nonlocal start
        seconds[name], start = round(time.process_time() - start, 2), time.process_time()

    schedule = ff.Schedule.load(ROOT / "schedules" / f"{model}_{granularity}.yaml")
    path = ROOT / "models" / "paper" / f"{model}.py"
    program = ff.compile(path, schedule=schedule, data=data, data_dir=data_dir, options=options, machine=machine)
    stage("compile")
    estimator = Estimator()
    expected = sum(region.firings for region in program.estimate(estimator).regions)
    stage("estimate")
    result = program.run() if expected <= firings else program.run(sample=sample, check=False, estimator=estimator, outputs=False)
    values = {"kind": "exact", **result.to_dict()}
    if isinstance(result, SampledResult) and not any(region.sample for region in result.regions):
        check = replace(result, check=program.compare(result.tensors)).to_dict()["check"]
        values |= {"kind": "exact", "cycles": round(result.cycles.estimate), "check": check}
        del values["sampled_cycles"], values["rows_check"]
    stage("run")
    return {**values, "expected_firings": round(expected), "processor_seconds": seconds}


def end_with_parent() -> None:
    """End this process when nobody holds the other end of its standard input any more, however that came about."""
    os.read(0, 1)  # `sys.stdin` would hold a lock that the end of the process waits for
    os._exit(1)


@click.command(help=__doc__.partition("\n")[0])
@click.argument("model")
@click.argument("data")
@click.argument("granularity")
@click.option("-O", "--option", "options", multiple=True, metavar="KEY=NUMBER")
@click.option("--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--machine", default="rda", show_default=True)
@click.option("--error", type=float, default=0.02, show_default=True)
@click.option("--firings", type=float, default=1e9, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--while-stdin", is_flag=True, help="End when the standard input is closed.")
def main(
    model: str,
    data: str,
    granularity: str,
    options: tuple[str, ...],
    data_dir: Path | None,
    machine: str,
    error: float,
    firings: float,
    seed: int,
    while_stdin: bool,
) -> None:
    if while_stdin:
        threading.Thread(target=end_with_parent, daemon=True).start()
    numbers = {key: int(number) for key, _, number in (option.partition("=") for option in options)}
    try:
        run = run_point(model, data, granularity, numbers, data_dir, machine, ff.Sample(error=error, seed=seed), firings)
    except ff.FuseFlowError as refused:
        raise click.ClickException(str(refused)) from None
    click.echo(json.dumps(run))


if __name__ == "__main__":
    main()
