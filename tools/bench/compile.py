"""How long compilation takes from Linalg MLIR to verified graphs, for each fusion choice of a model.

    python tools/bench/compile.py [--model models/gcn.py] [--data karate] [--repeats 7] [--json FILE|-]

Prints medians in milliseconds: `extract` (MLIR text to Einsum program), `lower` (program to graphs, loop orders ranked) and their sum.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from host import host

from fuseflow import frontend
from fuseflow.compiler import load, lower
from fuseflow.explore import Axis, Space
from fuseflow.schedule import Schedule

CHOICES = Space(Schedule(), (Axis("fuse", "", ("none", "layer1", "layerwise", "full")),))


def median_ms(run: Callable[[], Any], repeats: int) -> float:
    run()  # warm up
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return round(1000 * statistics.median(times), 2)


@click.command()
@click.option("--model", default="models/gcn.py", show_default=True)
@click.option("--data", default="karate", show_default=True)
@click.option("--data-dir", default=None)
@click.option("--repeats", default=7, show_default=True)
@click.option("--json", "output", default=None, help="write the figures as JSON to a file, or `-`")
def main(model: str, data: str, data_dir: str | None, repeats: int, output: str | None) -> None:
    source = load(model, data=data, data_dir=data_dir)
    assert source.mlir is not None
    extract = median_ms(lambda: frontend.read_mlir(source.mlir), repeats)
    cases = []
    for choice, schedule in CHOICES.points():
        ms = median_ms(lambda schedule=schedule: lower(source.program, schedule, source.tensors), repeats)
        regions = lower(source.program, schedule, source.tensors)[1]
        nodes = sum(len(r.graph.nodes) for r in regions)
        cases.append({"name": choice, "extract_ms": extract, "lower_ms": ms, "total_ms": round(extract + ms, 2), "nodes": nodes})
    figures = {"benchmark": "compile", "model": model, "data": data, "repeats": repeats, "machine": host(), "cases": cases}
    if output == "-":
        click.echo(json.dumps(figures, indent=1))
    elif output:
        Path(output).write_text(json.dumps(figures, indent=1) + "\n")
    else:
        for case in cases:
            click.echo(
                "{name:10} extract {extract_ms:8.2f} ms  lower {lower_ms:8.2f} ms  total {total_ms:8.2f} ms  {nodes} nodes".format(
                    **case
                )
            )


if __name__ == "__main__":
    main()
