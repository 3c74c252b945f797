"""How long compilation takes, from Linalg MLIR or program text to verified graphs: every model of the repository at its small
size under every schedule, 12 decoders, and chains of 64 Einsums that reuse their results.

    python tools/bench/compile_time.py [--case NAME] [--repeats 7] [--json FILE|-]

Prints medians in milliseconds, `extract` (MLIR or text to Einsum program) and `lower` (program to graphs, loop orders ranked), and how
many nodes the graphs have. Times are of the processor.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from host import JSON, finish

from fuseflow import frontend
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule
from fuseflow.tensors import Tensor

ROOT = Path(__file__).resolve().parents[2]
CHOICES = ("none", "layerwise", "full")
DEEP = "12 decoders of gpt_bigbird.py"
"""The name of the deepest model."""
NO_MODEL = "weights.py"
"""A file beside the models."""
LAYER = {
    "residual": """T{k}[i, j] = sum(k) A[i, k] * {before}[k, j]
        U{k}[i, j] = T{k}[i, j] + {before}[i, j]
        V{k}[i, j] = relu(U{k}[i, j])
        Y{k}[i, j] = V{k}[i, j] * 0.5""",
    "softmax": """T{k}[i] = max(j) {before}[i, j]
        U{k}[i, j] = exp({before}[i, j] - T{k}[i])
        V{k}[i] = sum(j) U{k}[i, j]
        Y{k}[i, j] = U{k}[i, j] / V{k}[i]""",
    "diamond": """T{k}[i, j] = relu({before}[i, j])
        U{k}[i, j] = {before}[i, j] * T{k}[i, j]
        V{k}[i, j] = T{k}[i, j] - U{k}[i, j]
        Y{k}[i, j] = U{k}[i, j] + V{k}[i, j]""",
}
"""Four Einsums each; a chain is 16 of them."""


@dataclass(frozen=True)
class Case:
    name: str
    program: Program
    tensors: dict[str, Tensor]
    schedule: Schedule
    extract: Callable[[], object]


def cases(wanted: str) -> list[Case]:
    """Those whose names contain this; other models are not loaded."""
    made = []
    for path in sorted((ROOT / "models").rglob("*.py")):
        name = path.relative_to(ROOT / "models").as_posix()
        if path.name != NO_MODEL and any(wanted in f"{name} {choice}" for choice in (*CHOICES, "global")):
            source = load(ModelSpec(path, options={"small": True}))
            made += scheduled(name, source.program, dict(source.tensors), reading(source))
    if any(wanted in f"{DEEP} {choice}" for choice in (*CHOICES, "global")):
        source = load(ModelSpec(ROOT / "models" / "gpt_bigbird.py", options={"small": True, "decoders": 12}))
        made += scheduled(DEEP, source.program, dict(source.tensors), reading(source))
    return [case for case in made + [chain(name) for name in LAYER] if wanted in case.name]


def reading(source: Source) -> Callable[[], object]:
    """From MLIR or text to a program. The paper's models are programs: there is no MLIR of them."""
    if source.mlir is None:
        return partial(parse, show(source.program))
    return partial(frontend.read_mlir, source.mlir)


def scheduled(name: str, program: Program, tensors: dict[str, Tensor], extract: Callable[[], object]) -> list[Case]:
    schedules = {choice: Schedule.fuse(choice) for choice in CHOICES}
    schedules["global"] = Schedule.fuse("full").lower(iteration="global")
    return [Case(f"{name} {choice}", program, tensors, schedule, extract) for choice, schedule in schedules.items()]


def chain(name: str) -> Case:
    layers = [LAYER[name].format(k=k, before=f"Y{k - 1}" if k else "X") for k in range(16)]
    text = "\n".join(["tensor A[64, 64] csr", "tensor X[64, 16] dense", *layers, "output Y15"])
    return Case(f"64 Einsums: {name}", parse(text), {}, Schedule.fuse("full"), partial(parse, text))


def median_ms(run: Callable[[], Any], repeats: int) -> float:
    run()  # warm up
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return round(1000 * statistics.median(times), 2)


def measure(case: Case, repeats: int) -> dict[str, Any]:
    compile = partial(lower, case.program, case.schedule, case.tensors)
    nodes = sum(len(region.graph.nodes) for region in compile()[1])
    return {
        "name": case.name,
        "extract_ms": median_ms(case.extract, repeats),
        "lower_ms": median_ms(compile, repeats),
        "nodes": nodes,
    }


@click.command()
@click.option("--case", "wanted", default="", help="only cases whose name contains this")
@click.option("--repeats", default=7, show_default=True)
@JSON
def main(wanted: str, repeats: int, output: str | None) -> None:
    measured = [measure(case, repeats) for case in cases(wanted)]
    line = "{name:32} extract {extract_ms:8.2f} ms  lower {lower_ms:8.2f} ms  {nodes} nodes"
    finish("compile", output, (line.format(**case) for case in measured), {"repeats": repeats, "cases": measured})


if __name__ == "__main__":
    main()
