"""Compare the default cut with no fusion on the models of tests/zoo, in simulated cycles.

    python tools/bench/default_cut.py rows.jsonl
    python tools/bench/default_cut.py rows.jsonl --every 10 --machine rda

Each model has one line in the file: the cycles of `none` and `best` on each machine, and the processor seconds of their compilation. Models
that are in the file already are not run again, so a run that was stopped goes on. A summary of the file is printed at the end, and exit
status 1 says that a model takes more than 1.25 times the cycles of no fusion by default, or is refused where it runs without fusion.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "zoo"))

from zoo_registry import Model, all_models

from fuseflow import Schedule
from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.sim import load_machine

NEAR, MOST = 1.05, 1.25
"""The cycles of the default are told of that are more than `NEAR` times those of no fusion, and fail the bench above `MOST` times."""


@click.command(help=__doc__)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--machine", "machines", multiple=True, default=("ideal", "rda"), show_default=True)
@click.option("--every", default=1, show_default=True, help="Take each model whose number is a multiple of this.")
def main(file: Path, machines: tuple[str, ...], every: int) -> None:
    done = {row["name"]: row for row in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
    with file.open("a") as rows:
        for name, model in list(all_models().items())[::every]:
            if name not in done:
                done[name] = _row(name, model, machines)
                rows.write(json.dumps(done[name]) + "\n")
                rows.flush()
    failures = [_summary(machine, list(done.values())) for machine in machines]
    sys.exit(any(failures))


def _row(name: str, model: Model, machines: tuple[str, ...]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module, args, keywords = model.bring()
            source = load(ModelSpec(module, args, kwargs=keywords))
        except FuseFlowError as error:
            return {"name": name, "error": error.message}
        cycles = {f"{machine}.{fuse}": _cycles(source, machine, fuse) for machine in machines for fuse in ("none", "best")}
    return {"name": name, **cycles}


def _cycles(source: Source, machine: str, fuse: str) -> list[float | None]:
    """Return the cycles of a model, None if it is refused, and the processor seconds that compiling it took."""
    start = time.process_time()
    try:
        compiled = compile_source(source, Schedule.fuse(fuse), load_machine(machine))
        seconds = round(time.process_time() - start, 2)
        return [compiled.run(check=False).cycles, seconds]
    except FuseFlowError:
        return [None, round(time.process_time() - start, 2)]


def _summary(machine: str, rows: list[dict[str, Any]]) -> bool:
    """Print what becomes of the models on a machine, and return whether one of them is too slow or refused."""
    pairs = {row["name"]: (row[f"{machine}.none"], row[f"{machine}.best"]) for row in rows if f"{machine}.none" in row}
    refused = [name for name, ((none, _), (best, _)) in pairs.items() if best is None and none is not None]
    ratios = {name: best / none for name, ((none, _), (best, _)) in pairs.items() if none and best}
    slower = {name: round(ratio, 3) for name, ratio in ratios.items() if ratio > NEAR}
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios)) if ratios else math.nan
    print(f"{machine}: {len(ratios)} models, geometric mean {mean:.3f}, at most {max(ratios.values(), default=math.nan):.3f}")
    print(f"  more than {NEAR} times no fusion: {slower or 'none'}; refused by default alone: {refused or 'none'}")
    seconds = [sum(pair[n][1] for pair in pairs.values()) for n in (0, 1)]
    print(f"  processor seconds of compiling: {seconds[0]:.1f} without fusion, {seconds[1]:.1f} by default")
    return bool(refused) or any(ratio > MOST for ratio in ratios.values())


if __name__ == "__main__":
    main()
