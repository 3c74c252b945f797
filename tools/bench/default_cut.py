"""Compare the default cut, `auto`, `layerwise` and `full` with no fusion, in simulated cycles.

    python tools/bench/default_cut.py rows.jsonl
    python tools/bench/default_cut.py rows.jsonl --every 10 --machine rda --fuse best
    python tools/bench/default_cut.py rows.jsonl --data-dir DIR

The models are those of tests/zoo; with `--data-dir`, the directory of the graphs, those of docs/measured/models.md at real sizes. Each way
to fuse a model on a machine is one line of the file. What stands in the file is not run again, so a run that was stopped goes on. What is
expected to take over eight times the cycles of no fusion is not simulated: the line has the estimate. A summary of the file is printed at
the end, and exit status 1 says that a bar is missed.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "zoo"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "evaluation"))

import zoo_registry
from real_model_list import MODELS

from fuseflow import Schedule
from fuseflow.autoscheduler.autoscheduler import FAR, choose_schedule
from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.sim import load_machine

FUSE = ("none", "layerwise", "full", "best", "auto")
NEAR, MOST, MEAN, SHARE = 1.05, 1.25, 0.8, 0.98
"""By default, a share of `SHARE` of all models takes at most `NEAR` times the cycles of no fusion, each at most `MOST`, and the geometric
mean is at most `MEAN`."""
CONTEXT = multiprocessing.get_context("forkserver")

Point = tuple[str, str, str]
"""A model, a machine and what is fused."""
Row = dict[str, Any]


@click.command(help=__doc__)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--machine", "machines", multiple=True, default=("ideal", "rda"), show_default=True)
@click.option("--fuse", multiple=True, default=FUSE, show_default=True, type=click.Choice(FUSE))
@click.option("--every", default=1, show_default=True, help="Take each model whose number is a multiple of this.")
@click.option("--only", multiple=True, help="Take these models.")
@click.option("--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Where the files of graphs are.")
@click.option("--limit", default=300.0, show_default=True, help="Seconds that each line may take.")
def main(
    file: Path,
    machines: tuple[str, ...],
    fuse: tuple[str, ...],
    every: int,
    only: tuple[str, ...],
    data_dir: Path | None,
    limit: float,
) -> None:
    multiprocessing.set_forkserver_preload(["__main__", *zoo_registry.FILES])
    names = [m.name for m in MODELS] if data_dir else list(zoo_registry.all_models())
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(row["name"], row["machine"], row["fuse"]) for row in rows}
    with file.open("a") as lines:
        for name in only or names[::every]:
            points = [(name, *rest) for rest in product(machines, dict.fromkeys(("none", *fuse))) if (name, *rest) not in done]
            for row in _rows(points, data_dir, limit):
                rows.append(row)
                lines.write(json.dumps(row) + "\n")
                lines.flush()
    missed = [_summary(machine, rows) for machine in machines]
    sys.exit(any(missed))


def _rows(points: list[Point], data_dir: Path | None, limit: float) -> Iterator[Row]:
    """Yield what becomes of points of one model. They run in a process, which is ended and begun again where one takes too long."""
    while points:
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_work, args=(points, data_dir, theirs), daemon=True)
        process.start()
        theirs.close()
        while points:
            point, points = points[0], points[1:]
            row: Row = {"error": f"took more than {limit:g} s"}
            try:
                row = ours.recv() if ours.poll(limit) else row
            except EOFError:
                row = {"error": "the process ended"}
            yield {**dict(zip(("name", "machine", "fuse"), point, strict=True)), **row}
            if "cycles" not in row and "expected" not in row:
                break
        process.kill()
        process.join()


def _work(points: Iterable[Point], data_dir: Path | None, pipe: Connection) -> None:
    """Send what becomes of each point of a model."""
    warnings.simplefilter("ignore")
    source, alone = None, dict[str, float]()
    for name, machine, fuse in points:
        try:
            source = source or load(_spec(name, data_dir))
            alone[machine] = alone.get(machine) or _compiled(source, machine, "none").estimate().cycles
            pipe.send(_row(source, machine, fuse, FAR * alone[machine]))
        except FuseFlowError as error:
            pipe.send({"error": error.message})


def _spec(name: str, data_dir: Path | None) -> ModelSpec:
    if data_dir is None:
        module, arguments, keywords = zoo_registry.all_models()[name].bring()
        return ModelSpec(module, arguments, kwargs=keywords)
    model = next(m for m in MODELS if m.name == name)
    module, inputs = model.bring(data_dir)
    return ModelSpec(module, inputs, formats=model.formats)


def _row(source: Source, machine: str, fuse: str, most: float) -> Row:
    """Return the cycles of a model, or those that are expected if they are more than `most`; and the processor seconds of compiling it."""
    start = time.process_time()
    compiled = _compiled(source, machine, fuse)
    seconds, expected = round(time.process_time() - start, 2), compiled.estimate().cycles
    cycles = {"expected": round(expected)} if expected > most else {"cycles": compiled.run(check=False).cycles}
    return {**cycles, "seconds": seconds}


def _compiled(source: Source, machine: str, fuse: str) -> Any:
    hardware = load_machine(machine)
    if fuse == "auto":
        return choose_schedule(source, Schedule.fuse("auto"), hardware).compiled
    return compile_source(source, Schedule.fuse(fuse), hardware)


def _summary(machine: str, rows: list[Row]) -> bool:
    """Print what becomes of the models on a machine, and return whether a bar is missed."""
    models: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["machine"] == machine:
            models.setdefault(row["name"], {})[row["fuse"]] = row
    runs = {name: {fuse: row["cycles"] for fuse, row in of.items() if "cycles" in row} for name, of in models.items()}
    runs = {name: cycles for name, cycles in runs.items() if "none" in cycles}
    default = _ratios(runs, "best", lambda cycles: cycles["none"])
    auto = _ratios(runs, "auto", lambda cycles: min(n for fuse, n in cycles.items() if fuse in ("none", "layerwise", "full")))
    slower = {name: round(ratio, 3) for name, ratio in default.items() if ratio > NEAR}
    mean = math.exp(sum(map(math.log, default.values())) / len(default)) if default else math.nan
    late = {name: round(ratio, 3) for name, ratio in auto.items() if ratio > 1}
    errors = [
        (name, fuse, row["error"]) for name in runs for fuse, row in models[name].items() if fuse != "none" and "error" in row
    ]
    print(
        f"{machine}: {len(default)} models by default, geometric mean {mean:.3f}, at most {max(default.values(), default=0):.3f}"
    )
    print(f"  more than {NEAR} times no fusion by default: {slower or 'none'}")
    print(f"  auto, {len(auto)} models: slower than none, layerwise or full: {late or 'none'}")
    print(f"  runs without fusion, and not else: {errors or 'none'}")
    worst = max(default.values(), default=0)
    return bool(late or errors) or worst > MOST or mean > MEAN or len(slower) > (1 - SHARE) * len(default)


def _ratios(runs: Mapping[str, Mapping[str, int]], fuse: str, against: Callable[[Mapping[str, int]], int]) -> dict[str, float]:
    """Return how many times the cycles of another way to fuse it each model takes."""
    return {name: cycles[fuse] / against(cycles) for name, cycles in runs.items() if fuse in cycles and against(cycles)}


if __name__ == "__main__":
    main()
